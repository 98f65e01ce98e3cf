#include "service/jobs/job_runner.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace troupe::service {

core::Result<std::unique_ptr<JobRunner>> JobRunner::open(JobOptions options) {
  auto scheduler = JobScheduler::open(std::move(options));
  if (!scheduler) return tl::unexpected(std::move(scheduler.error()));
  std::unique_ptr<JobRunner> runner(new JobRunner(std::move(*scheduler)));
  if (!runner->wake_) return tl::unexpected(core::from_errno(errno, "create", "an eventfd"));
  runner->thread_ = std::thread([here = runner.get()] { here->work(); });
  return runner;
}

JobRunner::JobRunner(JobScheduler scheduler)
    : slots_(scheduler.slots()), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), scheduler_(std::move(scheduler)) {}

JobRunner::~JobRunner() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void JobRunner::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto ignored = ::write(wake_.get(), &one, sizeof one);
}

void JobRunner::work() {
  for (;;) {
    std::vector<pollfd> watched{{wake_.get(), POLLIN, 0}};
    std::chrono::milliseconds patience{};
    {
      const std::scoped_lock lock(mutex_);
      if (over_) return;
      scheduler_.look();
      for (const int descriptor : scheduler_.descriptors()) watched.push_back({descriptor, POLLIN, 0});
      patience = scheduler_.patience();
    }
    // Only this thread closes descriptors of processes, or one that a user's order finds readable: then poll returns at once.
    ::poll(watched.data(), watched.size(), static_cast<int>(patience.count()));
    std::uint64_t count = 0;
    [[maybe_unused]] const auto ignored = ::read(wake_.get(), &count, sizeof count);
  }
}

core::Result<Job> JobRunner::submit(const JobSpec& spec, bool start) {
  const std::scoped_lock lock(mutex_);
  auto job = scheduler_.submit(spec, start);
  wake();
  return job;
}

core::Result<Job> JobRunner::order(std::int64_t id, JobEvent::Kind kind) {
  const std::scoped_lock lock(mutex_);
  auto job = scheduler_.order(id, kind);
  wake();
  return job;
}

core::Result<Job> JobRunner::stop(std::int64_t id, bool checkpoint) {
  return order(id, checkpoint ? JobEvent::Kind::stop : JobEvent::Kind::kill);
}

core::Result<Job> JobRunner::set_priority(std::int64_t id, std::int64_t priority) {
  const std::scoped_lock lock(mutex_);
  return scheduler_.set_priority(id, priority);
}

core::Result<void> JobRunner::remove(std::int64_t id) {
  const std::scoped_lock lock(mutex_);
  return scheduler_.remove(id);
}

core::Result<std::vector<Job>> JobRunner::list() {
  const std::scoped_lock lock(mutex_);
  return scheduler_.list();
}

core::Result<std::optional<Job>> JobRunner::find(std::int64_t id) {
  const std::scoped_lock lock(mutex_);
  return scheduler_.find(id);
}

core::Result<std::optional<JobDetails>> JobRunner::details(std::int64_t id) {
  const std::scoped_lock lock(mutex_);
  return scheduler_.details(id);
}

core::Result<JobFolder::LogPart> JobRunner::log(std::int64_t id, std::uint64_t from, std::uint64_t limit) {
  const std::scoped_lock lock(mutex_);
  return scheduler_.folder(id).read_log(from, limit);
}

std::optional<std::int64_t> JobRunner::job_of_run(const std::string& run) {
  const std::scoped_lock lock(mutex_);
  const auto job = scheduler_.find_by_run(run);
  return job && *job ? std::optional((*job)->id) : std::nullopt;
}

std::size_t JobRunner::running() {
  const std::scoped_lock lock(mutex_);
  return scheduler_.active();
}

}  // namespace troupe::service
