/// Allgather and reduce-scatter of a vector in parts of any lengths, one part for each rank: for a computation whose values are spread over
/// the ranks (cpu/neurons/). As other collectives (collective.hpp) these are state machines of the operation queue's thread.
///
///   allgather        each rank's part, sent by it to all others
///   reduce-scatter   part r at rank r ← the sum of part r of the ranks 0 … summands − 1, in rank order; the other parts stay
///
/// A part is one message to each peer, so it must not be longer than the endpoint's longest message. Bytes that a rank sends: allgather
/// (n − 1) · own part; reduce-scatter all parts but its own. Memory beside the vector: for reduce-scatter one own part for each summand of
/// another rank.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/buffer.hpp"
#include "transport/exchange/collectives/collective.hpp"

namespace troupe::exchange {

struct PartsTask {
  core::Span vector{};  ///< in place; need not be aligned
  std::span<const core::Slice>
      parts{};                 ///< of the vector, by rank; a part of 0 floats is not sent. Outlives the collective
  std::size_t summands = 0;    ///< reduce-scatter: so many ranks, from rank 0, have something to add; at least 1
  Scratch* scratch = nullptr;  ///< as in CollectiveTask
  transport::TagFields tag{};  ///< as in CollectiveTask
};

/// `operations` outlives the collective, which must live until `done` has been called. Bug (std::invalid_argument): a rank outside the
/// group, or not one part for each rank, or no summand.
[[nodiscard]] std::unique_ptr<Collective> make_allgather(OperationQueue& operations, Group group, const PartsTask& task,
                                                         Collective::Done done);
[[nodiscard]] std::unique_ptr<Collective> make_reduce_scatter(OperationQueue& operations, Group group,
                                                              const PartsTask& task, Collective::Done done);

}  // namespace troupe::exchange
