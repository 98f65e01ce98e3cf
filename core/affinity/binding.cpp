#include "core/affinity/binding.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace troupe::core {
namespace {

/// More than any kernel has.
constexpr std::size_t kMostCpus = std::size_t{1} << 16;

using CpuSet = std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)>;

CpuSet make_cpu_set(std::size_t cpus) {
  CpuSet set(CPU_ALLOC(cpus), [](cpu_set_t* memory) { CPU_FREE(memory); });
  if (set) CPU_ZERO_S(CPU_ALLOC_SIZE(cpus), set.get());
  return set;
}

/// The cpus of a thread of this host; 0: the calling thread. Empty: unknown, like those of a thread that has ended.
Cpus affinity_of(pid_t thread) {
  for (std::size_t size = 1024; size <= kMostCpus; size *= 2) {  // the kernel's own size is not known
    const auto set = make_cpu_set(size);
    if (!set) return {};
    const auto bytes = CPU_ALLOC_SIZE(size);
    if (::sched_getaffinity(thread, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue;
      return {};
    }
    Cpus cpus;
    for (std::size_t cpu = 0; cpu < size; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.push_back(static_cast<unsigned>(cpu));
    return cpus;
  }
  return {};
}

bool set_affinity(pid_t thread, const Cpus& cpus) {
  if (cpus.empty() || cpus.back() >= kMostCpus) return false;
  const auto set = make_cpu_set(cpus.back() + std::size_t{1});
  if (!set) return false;
  const auto bytes = CPU_ALLOC_SIZE(cpus.back() + std::size_t{1});
  for (const auto cpu : cpus) CPU_SET_S(cpu, bytes, set.get());
  return ::sched_setaffinity(thread, bytes, set.get()) == 0;
}

/// How long a thread of this process has waited for a cpu since it began.
std::optional<std::chrono::nanoseconds> waits_of(pid_t thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/schedstat", thread));
  std::int64_t ran = 0, waited = 0;
  if (!(file >> ran >> waited)) return std::nullopt;
  return std::chrono::nanoseconds(waited);
}

}  // namespace

Cpus usable_cpus() { return affinity_of(::getpid()); }

bool tells_waits() { return waits_of(::getpid()).has_value(); }

Result<ThreadBinding> ThreadBinding::bind_this_thread(const Cpus& cpus) {
  if (!set_affinity(0, cpus))
    return fail(Errc::config,
                fmt::format("this process may not use {} {}", cpus.size() == 1 ? "cpu" : "cpus", to_text(cpus)));
  return ThreadBinding(affinity_of(0));  // the kernel leaves out cpus that the process may not use
}

std::vector<pid_t> ThreadBinding::bound_threads() const {
  std::vector<pid_t> threads;
  std::error_code none;
  std::filesystem::directory_iterator tasks("/proc/self/task", none);
  for (const std::filesystem::directory_iterator end; tasks != end; tasks.increment(none)) {
    const auto name = tasks->path().filename().string();
    pid_t thread = 0;
    const auto [last, error] = std::from_chars(name.data(), name.data() + name.size(), thread);
    // A thread inherits the cpus of the one that creates it: the same cpus mean a thread of this binding.
    if (error == std::errc{} && last == name.data() + name.size() && affinity_of(thread) == cpus_)
      threads.push_back(thread);
    if (none) break;
  }
  return threads;
}

std::optional<double> ThreadBinding::waited(Duration now) {
  std::map<pid_t, std::chrono::nanoseconds> waits;
  std::chrono::nanoseconds longest{0};
  for (const auto thread : bound_threads()) {
    const auto waited = waits_of(thread);
    if (!waited) continue;
    waits[thread] = *waited;
    if (const auto before = waits_.find(thread); before != waits_.end())
      longest = std::max(longest, *waited - before->second);
  }
  waits_ = std::move(waits);
  const auto before = std::exchange(asked_, now);
  if (!before || now <= *before) return std::nullopt;
  return std::clamp(std::chrono::duration<double>(longest) / std::chrono::duration<double>(now - *before), 0.0, 1.0);
}

void ThreadBinding::release() {
  const auto all = usable_cpus();
  for (const auto thread : bound_threads()) set_affinity(thread, all);
  released_ = true;
}

bool ThreadBinding::release_if_crowded(Duration now) {
  if (released_ || (asked_ && now - *asked_ < std::chrono::seconds(1))) return false;
  if (waited(now).value_or(0) <= kMostWait) return false;
  release();
  return true;
}

}  // namespace troupe::core
