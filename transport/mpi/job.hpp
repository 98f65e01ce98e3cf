/// The processes that one launcher (mpirun, srun) has started together, before they have other connections: their number, this
/// process's rank, and short texts between all of them. troupe_mpi.so exports a Job beside its Fabric.
///
/// Thread rule: one thread. broadcast(), gather() and read_together() are collective: every rank makes the same calls in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::transport {

class Job {
 public:
  /// Called every few milliseconds during a wait: true ends the wait.
  using GiveUp = std::function<bool()>;

  virtual ~Job() = default;
  [[nodiscard]] virtual std::size_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;

  /// Returns rank 0's `text` at every rank; the other ranks' `text` is ignored. Errc::timeout: `give_up` returned true.
  /// Errc::peer_lost: MPI failed. After either error the job is abandoned.
  [[nodiscard]] virtual core::Result<std::string> broadcast(std::string text, const GiveUp& give_up) = 0;
  /// Returns at rank 0 the texts of all ranks, by rank; elsewhere nothing. Below 2 GiB together. Errors as above.
  [[nodiscard]] virtual core::Result<std::vector<std::string>> gather(std::string text, const GiveUp& give_up) = 0;

  /// A part of a file: bytes [begin, end).
  struct FilePart {
    std::string path;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  /// Gets the bytes of a part in ascending order; `offset` is theirs in the file.
  using TakeBytes = std::function<core::Result<void>(std::uint64_t offset, std::span<const std::byte> bytes)>;
  /// Collective: every rank names the same file, and its part of it. MPI reads all parts together (MPI_File_read_at_all), so that the file
  /// system sees few large requests; memory: `piece` bytes. MPI knows no deadline here: if a rank ends, the launcher ends the others. Errc::io:
  /// at every rank if one cannot open the file, or at the one whose bytes cannot be read; that of `take`, after which the rank goes on reading
  /// with the others. `give_up` as above.
  [[nodiscard]] virtual core::Result<void> read_together(const FilePart& part, std::size_t piece, const TakeBytes& take,
                                                         const GiveUp& give_up) = 0;

  /// This process will not wait for the others when it ends. A launcher treats that as a failure and ends them.
  virtual void abandon() noexcept = 0;
};

/// Exported as "troupe_join_job". Collective: returns when every rank has called it, without a deadline. If a rank has ended, the
/// launcher ends the ranks that wait for it.
using JoinJob = void(core::Result<std::unique_ptr<Job>>& joined);

/// Loads troupe_mpi.so and joins the job of this process. Call it before other threads start; collective, see JoinJob. Errc::config
/// when the module cannot be loaded; otherwise the errors of MPI.
[[nodiscard]] core::Result<std::unique_ptr<Job>> join_job();

}  // namespace troupe::transport
