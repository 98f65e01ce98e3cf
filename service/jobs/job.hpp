/// A job of the service: what its user has submitted, and what has become of it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "service/jobs/job_state.hpp"
#include "service/jobs/process_identity.hpp"

namespace troupe::service {

enum class JobKind : std::uint8_t {
  train,   // `troupe train`
  launch,  // `troupe launch`: a program of the user's
  grid,    // `troupe grid`
};
[[nodiscard]] std::string_view name(JobKind kind) noexcept;
[[nodiscard]] std::optional<JobKind> job_kind(std::string_view name) noexcept;

struct JobSpec {
  std::string name = {};
  JobKind kind = JobKind::train;
  std::string config = {};                // TOML: a configuration, or a grid file; a launch may have none
  std::vector<std::string> command = {};  // of a launch: the program and its arguments
  std::int64_t priority = 0;              // higher first
  std::string nodes = {};                 // "h1:4242,h2:4242"; empty: this host
  std::int64_t workers = 0;               // cluster.workers, for the list; 0: unknown
  std::string user = {};                  // who submitted it
};

inline constexpr std::size_t kLongestJobName = 100;  // bytes
/// Errc::config, as one line: a name that cannot be a file's, a kind without what it needs.
[[nodiscard]] core::Result<void> check_spec(const JobSpec& spec);

struct Job {
  std::int64_t id = 0;  // never used again, also after the job was deleted
  JobSpec spec;
  JobState state = JobState::queued;
  std::string submitted, started, ended;  // ISO 8601 UTC; empty: not yet
  std::optional<int> exit_code;           // of the latest attempt that has ended; 128 + the number of a signal
  std::string error;                      // why it failed, one line
  std::string run;           // relative to the service's directory: `run` or `grid/run`; of a grid its directory
  std::int64_t attempt = 0;  // how many times it was ordered to start
  bool resume = false;       // the next attempt, or the present one, goes on from a checkpoint
  bool kill = false;         // the present attempt is to end at once
  std::optional<ProcessIdentity> process;  // of the present attempt's supervisor, when it is known
};

/// What happened to a job, in order.
struct JobHistoryLine {
  std::string at;  // ISO 8601 UTC
  std::string event;
};

}  // namespace troupe::service
