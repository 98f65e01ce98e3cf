/// The processes of one attempt as the service sees them: started by it, or found by a service that has restarted. Thread rule: one thread at
/// a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "service/jobs/job_folder.hpp"
#include "service/jobs/process_identity.hpp"

namespace troupe::service {

class JobProcess {
 public:
  /// Starts `supervisor` (a program and its first arguments) for this attempt of `command`, in a session of its own, with its output appended to
  /// the log and without any other descriptor of this process. Returns when the supervisor is executed. Errc::io.
  [[nodiscard]] static core::Result<JobProcess> start(const JobFolder& folder, std::int64_t attempt,
                                                      const std::vector<std::string>& supervisor,
                                                      const std::vector<std::string>& command);
  /// The attempt that another service has started. Its processes are known when `adopt` is called.
  [[nodiscard]] static JobProcess of_other_service() { return JobProcess(); }

  /// The processes of the attempt, from process.json.
  void adopt(const ProcessRecord& record);
  [[nodiscard]] bool is_known() const noexcept { return record_.has_value(); }

  /// Readable when the supervisor has ended; -1: unknown.
  [[nodiscard]] int descriptor() const noexcept { return ended_.get(); }
  /// Whether the supervisor has ended, or was never there; reaps it. False: it runs, or is not known.
  [[nodiscard]] bool supervisor_ended();

  /// False: no process is known to take the signal. SIGINT, SIGUSR1: to the supervisor, or to a program that has lost it.
  [[nodiscard]] bool send(int signal);
  /// Kills all processes of the attempt. False: none is known.
  [[nodiscard]] bool kill();

 private:
  JobProcess() = default;
  void watch(pid_t supervisor);

  pid_t child_ = 0;  // the supervisor, if this process has to reap it
  std::optional<ProcessRecord> record_;
  core::FileDescriptor ended_;  // a pidfd of the supervisor
  bool gone_ = false;
};

}  // namespace troupe::service
