/// For endpoints whose library sums vectors itself (mpi): the algorithm `ar`, the MPI library's all-reduce. Every member of the job
/// takes part.
///
/// Thread-safe. All members must begin their sums in the same order and with equal lengths: only the order identifies a sum. A
/// started sum cannot be cancelled. It ends when every member has begun it, and not if a member is lost.
#pragma once

#include <cstddef>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/completion_queue.hpp"

namespace troupe::transport {

class NativeReduction {
 public:
  virtual ~NativeReduction() = default;
  /// All members of the job, this one included.
  [[nodiscard]] virtual std::size_t members() const noexcept = 0;
  /// vector ← Σ of all members' vectors, in an order that the library chooses. The memory is lent until the completion, which names
  /// no peer. Errc::usage after close().
  [[nodiscard]] virtual core::Result<OperationId> sum(core::Span vector) = 0;
};

}  // namespace troupe::transport
