/// The jobs of a service, by a thread that starts and follows them. They survive the service: its end stops none, and the next one on the
/// same directory goes on with them. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "service/jobs/job_scheduler.hpp"

namespace troupe::service {

class JobRunner {
 public:
  /// Errors as JobScheduler::open. Callbacks of `options` are called on any thread.
  [[nodiscard]] static core::Result<std::unique_ptr<JobRunner>> open(JobOptions options);
  /// Jobs go on.
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// These do as JobScheduler says. An order is stored when they return, but for a stop on a full disk, which is stored later; a transaction waits at most store::kBusyWait.
  [[nodiscard]] core::Result<Job> submit(const JobSpec& spec, bool start = true);
  [[nodiscard]] core::Result<Job> start(std::int64_t id) { return order(id, JobEvent::Kind::start); }
  [[nodiscard]] core::Result<Job> resume(std::int64_t id) { return order(id, JobEvent::Kind::resume); }
  /// `checkpoint` = false: ends at once, with all processes of the job. A second stop does the same.
  [[nodiscard]] core::Result<Job> stop(std::int64_t id, bool checkpoint = true);
  /// The run saves a checkpoint and goes on.
  [[nodiscard]] core::Result<Job> checkpoint(std::int64_t id) { return order(id, JobEvent::Kind::save); }
  [[nodiscard]] core::Result<Job> set_priority(std::int64_t id, std::int64_t priority);
  [[nodiscard]] core::Result<void> remove(std::int64_t id);

  /// Newest first.
  [[nodiscard]] core::Result<std::vector<Job>> list();
  [[nodiscard]] core::Result<std::optional<Job>> find(std::int64_t id);
  [[nodiscard]] core::Result<std::optional<JobDetails>> details(std::int64_t id);
  /// Of a job that exists.
  [[nodiscard]] core::Result<JobFolder::LogPart> log(std::int64_t id, std::uint64_t from, std::uint64_t limit);

  /// The newest job that has made this run, or the grid that it is of; nothing also where the store cannot be read.
  [[nodiscard]] std::optional<std::int64_t> job_of_run(const std::string& run);

  [[nodiscard]] std::size_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::size_t running();

 private:
  explicit JobRunner(JobScheduler scheduler);
  core::Result<Job> order(std::int64_t id, JobEvent::Kind kind);
  void work();
  void wake() const;

  const std::size_t slots_;
  core::FileDescriptor wake_;  // an eventfd
  std::mutex mutex_;           // guards the two below
  JobScheduler scheduler_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace troupe::service
