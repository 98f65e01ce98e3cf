/// The jobs of a service in SQLite, `<run.dir>/.service/jobs.sqlite`. It is the truth about what users have ordered; the jobs' folders are the
/// truth about what processes have done. Every call that changes something is one transaction, which survives a power failure. On a full disk
/// the end of a job and its removal are stored in room that was kept for them, beside the database, in `jobs.sqlite.room`.
/// Thread rule: one thread at a time. Errors: those of store::Database; Errc::corrupt also for a store of a later version.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "service/jobs/job.hpp"
#include "service/jobs/reserved_room.hpp"
#include "store/database.hpp"

namespace troupe::service {

class JobStore {
 public:
  static constexpr std::int64_t kVersion = 1;

  /// Opens or creates the file.
  [[nodiscard]] static core::Result<JobStore> open(const std::string& path);

  /// `state`: queued, or stopped for a job that is not started yet. REQUIRES check_spec(spec).
  [[nodiscard]] core::Result<Job> submit(const JobSpec& spec, JobState state, const std::string& at);
  /// Stores all of the job but its specification, of which only the priority changes, and a line of history.
  [[nodiscard]] core::Result<void> save(const Job& job, const std::string& at, const std::string& event);
  /// The job and its history are no more. Its id is not used again.
  [[nodiscard]] core::Result<void> remove(std::int64_t id);

  [[nodiscard]] core::Result<std::optional<Job>> find(std::int64_t id);
  /// The newest job whose run, or whose grid's directory, it is.
  [[nodiscard]] core::Result<std::optional<Job>> find_by_run(const std::string& run);
  /// Newest first.
  [[nodiscard]] core::Result<std::vector<Job>> list();
  [[nodiscard]] core::Result<std::vector<Job>> active();
  /// The queued job with the highest priority, the oldest of several.
  [[nodiscard]] core::Result<std::optional<Job>> next();
  [[nodiscard]] core::Result<std::vector<JobHistoryLine>> history(std::int64_t id);

 private:
  JobStore(std::unique_ptr<store::Database> database, ReservedRoom room)
      : database_(std::move(database)), room_(std::move(room)) {}
  core::Result<void> try_to_save(const Job& job, const std::string& at, const std::string& event);
  core::Result<void> try_to_remove(std::int64_t id);
  core::Result<std::vector<Job>> select(const std::string& condition, const std::vector<store::Cell>& values);
  core::Result<std::optional<Job>> select_first(const std::string& condition, const std::vector<store::Cell>& values);
  template <class Result>
  core::Result<Result> checked(Result result);

  std::unique_ptr<store::Database> database_;  // Statements need it to stay where it is
  ReservedRoom room_;
};

}  // namespace troupe::service
