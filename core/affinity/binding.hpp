/// Threads that run on cpus of their own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>

#include "core/affinity/machine.hpp"
#include "core/clock.hpp"

namespace troupe::core {

/// The cpus that this process may use: those of its main thread, which is never bound. Any thread. Empty: the kernel does not say.
[[nodiscard]] Cpus usable_cpus();

/// Whether the kernel says how long threads wait for a cpu: without it a ThreadBinding cannot tell when it does harm.
[[nodiscard]] bool tells_waits();

/// The calling thread, and the threads that it creates from then on, on cpus of their own. Their memory follows them: the kernel takes a
/// page from the memory node of the thread that first writes it. Other programs may be bound to the same cpus; then such threads wait while
/// other cpus are idle: ask now and then, and release them.
///
/// One thread, the bound one. Destruction changes no thread.
class ThreadBinding {
 public:
  /// Errc::config: the process may not use these cpus.
  [[nodiscard]] static Result<ThreadBinding> bind_this_thread(const Cpus& cpus);

  [[nodiscard]] const Cpus& cpus() const noexcept { return cpus_; }

  /// The greatest share of the time since the last call in which one of the bound threads was ready to run and another thread had its cpu:
  /// 0 to 1. None at the first call. Cost: a few system calls for each thread of the process.
  [[nodiscard]] std::optional<double> waited(Duration now);

  /// All cpus of the process are open again to the bound threads.
  void release();

  /// Looks once a second. True, once: a bound thread waited for more than kMostWait of the time, and the threads are released.
  [[nodiscard]] bool release_if_crowded(Duration now);
  static constexpr double kMostWait = 0.2;

 private:
  explicit ThreadBinding(Cpus cpus) : cpus_(std::move(cpus)) {}
  [[nodiscard]] std::vector<pid_t> bound_threads() const;

  Cpus cpus_;
  bool released_ = false;
  std::optional<Duration> asked_;
  std::map<pid_t, std::chrono::nanoseconds> waits_;  // of each thread, up to asked_
};

}  // namespace troupe::core
