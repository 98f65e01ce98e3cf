/// How a scheduler takes over what another one has left.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "service/jobs/job_scheduler.hpp"
#include "service/jobs/service_folder.hpp"

namespace troupe::service {
namespace {

/// A service that was killed holds its lock until the kernel has ended it.
core::Result<experiment::DirectoryLock> take_service(const std::string& directory) {
  constexpr std::chrono::seconds kPatience{5};
  constexpr std::chrono::milliseconds kBetweenTries{20};
  for (const auto until = std::chrono::steady_clock::now() + kPatience;;) {
    auto lock = experiment::DirectoryLock::take(directory);
    if (lock || lock.error().code != core::Errc::timeout || std::chrono::steady_clock::now() > until) return lock;
    std::this_thread::sleep_for(kBetweenTries);
  }
}

}  // namespace

core::Result<JobScheduler> JobScheduler::open(JobOptions options) {
  std::error_code error;
  const auto root = std::filesystem::absolute(options.paths.run_directory, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "find", options.paths.run_directory));
  options.paths.run_directory = root.lexically_normal().string();  // jobs may change their directory
  auto directory = service_folder(options.paths.run_directory);
  if (!directory) return tl::unexpected(std::move(directory.error()));
  std::filesystem::create_directory(*directory + "/jobs", error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "make", *directory + "/jobs"));
  auto lock = take_service(*directory);
  if (!lock) return tl::unexpected(std::move(lock.error()));
  auto store = JobStore::open(*directory + "/jobs.sqlite");
  if (!store) return tl::unexpected(std::move(store.error()));
  JobScheduler scheduler(std::move(options), std::move(*directory), std::move(*lock), std::move(*store));
  if (auto recovered = scheduler.recover(); !recovered) return tl::unexpected(std::move(recovered.error()));
  return scheduler;
}

core::Result<void> JobScheduler::recover() {
  auto jobs = store_.active();
  if (!jobs) return tl::unexpected(std::move(jobs.error()));
  for (auto& job : *jobs) {
    const auto id = job.id;
    Active active{std::move(job), JobProcess::of_other_service()};
    if (active.job.state == JobState::stopping)
      active.wanted = active.job.kill ? JobEffect::kill : JobEffect::interrupt;
    // Without its supervisor a program would get the interrupt itself: a second one ends it without its checkpoint.
    const auto record = folder(id).process();
    if (active.wanted == JobEffect::interrupt && record && record->attempt == active.job.attempt &&
        !is_alive(record->supervisor))
      active.wanted = JobEffect::none;
    active_.emplace(id, std::move(active));
  }
  remove_orphans();
  return {};
}

/// Folders of jobs that were deleted: the row goes first.
void JobScheduler::remove_orphans() {
  const auto jobs = store_.list();
  if (!jobs) return;
  std::error_code error;
  std::vector<std::filesystem::path> orphans;
  for (std::filesystem::directory_iterator entry(directory_ + "/jobs", error), end; !error && entry != end;
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    std::int64_t id = 0;
    const auto [rest, bad] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (bad == std::errc{} && rest == name.data() + name.size() &&
        std::ranges::none_of(*jobs, [&](const Job& job) { return job.id == id; }))
      orphans.push_back(entry->path());
  }
  for (const auto& orphan : orphans) std::filesystem::remove_all(orphan, error);
}

}  // namespace troupe::service
