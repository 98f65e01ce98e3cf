/// Starts queued jobs, follows their processes and stores what becomes of them: carries out what next_state() decides. JobRunner gives it a
/// thread. One scheduler per directory, over all processes.
///
/// A change is stored before it is carried out, and carrying it out a second time does no harm; so a scheduler that is killed at any moment
/// leaves a store from which the next one goes on (job_folder.hpp): a job is `running` before its supervisor is started, and `stopping` before
/// a signal is sent, which the next scheduler sends again. Only a full disk keeps no user from stopping a job, which may be what fills it: the
/// signal is sent at once, and the order is stored when there is room. If the scheduler is killed before that, the next one does not know the order:
/// it takes a job that was killed for a failed one.
///
/// Thread rule: one thread at a time. No call waits for a job.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "experiment/directory/directory_lock.hpp"
#include "service/jobs/job.hpp"
#include "service/jobs/job_command.hpp"
#include "service/jobs/job_folder.hpp"
#include "service/jobs/job_process.hpp"
#include "service/jobs/job_store.hpp"

namespace troupe::service {

struct JobOptions {
  JobPaths paths;
  std::vector<std::string> supervisor;               // program and first arguments: {"/usr/bin/troupe", "supervise"}
  std::size_t slots = 1;                             // jobs at once
  std::function<void(const Job&)> on_change = {};    // after each stored change; must not call back, nor block
  std::function<void(std::int64_t)> on_remove = {};  // the same, of a job that is no more
  std::function<void(const core::Error&)> on_error = {};  // a failure that no caller is told of; it is tried again
  /// The program of an attempt, in place of command_line().
  std::function<std::vector<std::string>(const Job&, const JobFolder&)> command = {};
  CrashPoint crash = nullptr;
};

/// A job with what is shown of it alone.
struct JobDetails {
  Job job;
  std::string command_line;  // of the latest attempt, or of the next one
  std::vector<JobHistoryLine> history;
};

class JobScheduler {
 public:
  /// Takes over `<paths.run_directory>/.service`: jobs that run go on. Errc::timeout: another service is at work in the directory; io, no_space,
  /// corrupt.
  [[nodiscard]] static core::Result<JobScheduler> open(JobOptions options);

  /// Errc::config: check_spec(spec). `start` = false: the job is `stopped` until it is started.
  [[nodiscard]] core::Result<Job> submit(const JobSpec& spec, bool start);
  /// Errc::config: there is no such job; usage: its state does not allow it. Of `kind` only those of the user, without `remove`.
  [[nodiscard]] core::Result<Job> order(std::int64_t id, JobEvent::Kind kind);
  [[nodiscard]] core::Result<Job> set_priority(std::int64_t id, std::int64_t priority);
  /// Removes the job's row and its folder, never its run. Errors as order().
  [[nodiscard]] core::Result<void> remove(std::int64_t id);

  [[nodiscard]] core::Result<std::vector<Job>> list();
  [[nodiscard]] core::Result<std::optional<Job>> find(std::int64_t id);
  [[nodiscard]] core::Result<std::optional<Job>> find_by_run(const std::string& run) { return store_.find_by_run(run); }
  [[nodiscard]] core::Result<std::optional<JobDetails>> details(std::int64_t id);
  [[nodiscard]] JobFolder folder(std::int64_t id) const;

  /// Looks at all processes, then starts jobs while a slot is free.
  void look();
  /// After which time to look again, if no descriptor becomes readable before.
  [[nodiscard]] std::chrono::milliseconds patience() const;
  [[nodiscard]] std::vector<int> descriptors() const;
  [[nodiscard]] std::size_t active() const noexcept { return active_.size(); }
  [[nodiscard]] std::size_t slots() const noexcept { return options_.slots; }

 private:
  struct Active {
    Job job;
    JobProcess process;
    bool ours = false;                   // this scheduler has started it
    bool seen = false;                   // or has found its lock held: the processes of process.json are its
    JobEffect wanted = JobEffect::none;  // interrupt or kill, until it has been delivered
    std::string unstored{};              // the text of an order for which the store had no room
    bool run_is_known = false;
    std::chrono::steady_clock::time_point next_look{};  // while processes outlive their supervisor
  };

  JobScheduler(JobOptions options, std::string directory, experiment::DirectoryLock lock, JobStore store);
  core::Result<void> recover();
  void remove_orphans();
  bool begin_next();
  core::Result<void> prepare(const Job& job) const;
  /// True: it has ended, and that is stored.
  bool look_at(Active& active);
  bool look_for_end(Active& active);
  void store_order(Active& active);
  void learn_process(Active& active);
  void learn_run(Active& active);
  void deliver(Active& active);
  bool store_end(Active& active, const JobEvent& event, const std::string& error);
  core::Result<void> store(Job& to, Job changed, const std::string& event);
  /// What the store has not yet been told of the job.
  void add_unstored(Job& job) const;
  std::vector<std::string> command_of(const Job& job) const;
  void report(const core::Error& error) const;
  void at(std::string_view point) const;

  JobOptions options_;
  std::string directory_;  // `<run.dir>/.service`
  experiment::DirectoryLock lock_;
  JobStore store_;
  std::map<std::int64_t, Active> active_;  // by id
  bool failing_ = false;                   // the last look could not store something
};

}  // namespace troupe::service
