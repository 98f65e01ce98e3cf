/// The processes that one launcher (mpirun, srun) has started together, before they know each other in any other way: how many there
/// are, which one this is, and a few words between all of them. troupe_mpi.so exports one beside its Fabric.
///
/// Thread rule: one thread. Words are collective: every rank calls the same ones in the same order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::transport {

class Job {
 public:
  /// Asked every few milliseconds of a wait: true ends it.
  using GiveUp = std::function<bool()>;

  virtual ~Job() = default;
  [[nodiscard]] virtual std::size_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;

  /// What rank 0 says, at every rank; the others' `text` is not looked at. Errc::timeout when it is given up, peer_lost: then the
  /// job is abandoned.
  [[nodiscard]] virtual core::Result<std::string> broadcast(std::string text, const GiveUp& give_up) = 0;
  /// At rank 0 what every rank says, by rank; elsewhere nothing. Below 2 GiB together. Errors as above.
  [[nodiscard]] virtual core::Result<std::vector<std::string>> gather(std::string text, const GiveUp& give_up) = 0;

  /// This process will not wait for the others when it ends. A launcher takes that for a failure and ends them.
  virtual void abandon() noexcept = 0;
};

/// Exported as "troupe_join_job". Collective: returns when every rank has called it, and there is no deadline to that; a launcher
/// ends the ranks that wait for one that has ended.
using JoinJob = void(core::Result<std::unique_ptr<Job>>& joined);

/// Loads troupe_mpi.so and joins the job that this process is a rank of. Call before other threads start; collective, see JoinJob.
/// Errc::config when it cannot be loaded, and what MPI says.
[[nodiscard]] core::Result<std::unique_ptr<Job>> join_job();

}  // namespace troupe::transport
