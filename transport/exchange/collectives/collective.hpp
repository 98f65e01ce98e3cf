/// One reduction or broadcast of a flat vector over a group: a state machine that posts operations and continues at their completions. It
/// never blocks, and has no thread and no clock: the thread that drives the operation queue drives it, and cancels it at a deadline.
///
/// Every member of the group creates one with the same algorithm, length, scale and tag, and its own rank. Ranks define the order of the
/// sum: the result has the same bits at every member and in every run, for any order of arrival.
///
///   asa, asa16     direct reduce-scatter + allgather (Theano-MPI's alltoall-sum-allgather): x ← scale · ((x_0 + x_1) + …), in rank
///                  order. asa16 rounds sent parts to 16 bits, not the own part or partial sums; the result once, before sending
///   ring           each slice is summed around the ring, beginning with the rank of the slice's number: (x_s + x_s+1) + …
///   hierarchical   sums per host, in rank order; then the sum of these, in the order of the hosts' first members
///   shm            as asa, in place over mapped arenas (transport/exchange/arenas.hpp, transport/exchange/reduce.hpp)
///   ar             the MPI library's all-reduce, in the library's order, over the whole job. Members start these in the same
///                  order. It cannot be cancelled
///   nccl           NCCL's all-reduce over all workers, in its order, otherwise as ar; its abort ends it
///
/// Bytes that a member sends: collective_bytes(). Memory beside the vector: for asa a window of chunks per peer, at most one own slice per
/// peer; for the others less. A Scratch provides the memory and takes it back.
///
/// Vector and scratch are in the memory of the kernels, which do the sums: on a device where they are (the endpoint takes its memory).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/exchange/collectives/algorithm.hpp"
#include "transport/exchange/operation_queue.hpp"
#include "transport/exchange/scratch.hpp"

namespace troupe::exchange {

class Arenas;

/// The members, seen from one member.
struct Group {
  std::size_t rank = 0;                ///< this member's rank
  std::vector<transport::Peer> peers;  ///< by rank; the own entry is ignored
  std::vector<std::uint32_t> hosts{};  ///< by rank, numbers that identify hosts; none: all on one host
  [[nodiscard]] std::size_t size() const noexcept { return peers.size(); }
};

/// How the vector is cut for transfer: chunks of `floats` floats (a multiple of core::kAlignmentFloats), `window` chunks under way per peer
/// and phase. A sender is never further ahead.
struct Chunking {
  std::size_t floats = std::size_t{64} << 10;
  std::size_t window = 8;
};

struct CollectiveTask {
  Algorithm algorithm = Algorithm::asa;        ///< not `automatic`
  core::HalfKind half = core::HalfKind::fp16;  ///< asa16
  std::optional<std::size_t> root{};           ///< a broadcast of this rank's vector; none: a reduction
  float scale = 1;                             ///< factor of the sum
  core::Span vector{};                         ///< in place; aligned to core::kAlignment
  Arenas* arenas = nullptr;                    ///< shm: allocator of the vector's memory; outlives the collective
  Scratch* scratch = nullptr;                  ///< outlives the collective; null: own memory of the host
  transport::TagFields tag{};                  ///< run, exchange and shard; the algorithm sets kind and chunk
  Chunking chunks{};
};

class Collective {
 public:
  /// Called once, within the operation queue's callbacks: the memory is then free. After an error the vector's contents are undefined:
  /// Errc::peer_lost with the endpoint's message, Errc::interrupted after cancel(). After an error in shm, others may still write to the
  /// vector: it must not be used again.
  using Done = std::function<void(core::Result<void>)>;

  virtual ~Collective() = default;
  /// Posts the first operations. Call once; calls `done` within the call when there is no peer to wait for.
  virtual void start() = 0;
  /// The rank whose first message came last, once every awaited rank has sent one: the exchange waited for this rank. In a ring a member
  /// waits for the previous rank only; hierarchical does not report it.
  [[nodiscard]] virtual std::optional<std::size_t> last_heard() const { return {}; }
  /// Cancels the exchange; `done` follows when no memory is lent any more.
  virtual void cancel() = 0;
};

/// Whether `operations` has a native reduction over `members` members: `ar` and `nccl` need it.
[[nodiscard]] bool has_library(const OperationQueue& operations, std::size_t members);

/// `operations` and `kernels` outlive the collective; it must live until `done` has been called. Broken preconditions are bugs
/// (std::invalid_argument): an invalid algorithm, ar without has_library(), a rank outside the group, shm with a vector outside all arenas.
[[nodiscard]] std::unique_ptr<Collective> make_collective(OperationQueue& operations, const core::Kernels& kernels,
                                                          Group group, CollectiveTask task, Collective::Done done);

/// Payload bytes that member `rank` of `group` sends for a reduction of `floats` floats; with `root` for a broadcast. None for ar: the
/// library's traffic is unknown.
[[nodiscard]] std::uint64_t collective_bytes(const CollectiveTask& task, const Group& group, std::size_t floats);
/// The same as runs count it. In shm members send addresses only: the payload that would travel without mapped memory counts, asa's.
[[nodiscard]] std::uint64_t counted_bytes(CollectiveTask task, const Group& group, std::size_t floats);

}  // namespace troupe::exchange
