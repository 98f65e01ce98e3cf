/// One reduction or broadcast of a flat vector over a group, as a machine that posts operations and goes on when they end.
/// It never blocks, has no thread and looks at no clock: whoever drives the courier drives it, and gives it up at a deadline.
///
/// Every member of the group makes one, with the same algorithm, length, scale and tag, and its own rank. Ranks order the sum: the
/// result is the same bits at every member and in every run, whatever arrives first.
///
///   asa, asa16     x ← scale · ((x_0 + x_1) + x_2 + …), in rank order. asa16 rounds what goes over the wire to 16 bits,
///                  a member's own part and the sums not; the result once, before it goes to everyone.
///   ring           each slice is summed around the ring, beginning with the rank that has its number: (x_s + x_s+1) + …
///   hierarchical   the sums of the hosts' members, in rank order, and of these sums in the order of the hosts' first members
///   shm            as asa, in place over arenas that are mapped (transport/exchange/arenas.hpp, transport/exchange/reduce.hpp)
///   ar             by the library under the endpoint, in the order that it chooses; the group must be all of the job, and
///                  members must start these in the same order. It cannot be given up half-way.
///
/// Bytes that a member puts on the wire: collective_bytes(). Memory beside the vector: of asa a window of chunks per peer and no more
/// than the own slice per peer; of the others less. It comes from a Scratch, and goes back there.
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
#include "transport/exchange/courier.hpp"
#include "transport/exchange/scratch.hpp"

namespace troupe::exchange {

class Arenas;

/// The members, seen from one of them.
struct Group {
  std::size_t rank = 0;                ///< its own
  std::vector<transport::Peer> peers;  ///< by rank; its own entry is not looked at
  std::vector<std::uint32_t> hosts{};  ///< by rank, any numbers that tell hosts apart; none: all on one
  [[nodiscard]] std::size_t size() const noexcept { return peers.size(); }
};

/// How the vector is cut for the wire: chunks of so many floats (a multiple of core::kAlignmentFloats), so many of them under way
/// per peer and phase. A sender is never further ahead than that.
struct Chunking {
  std::size_t floats = std::size_t{64} << 10;
  std::size_t window = 8;
};

struct CollectiveTask {
  Algorithm algorithm = Algorithm::asa;        ///< not automatic
  core::HalfKind half = core::HalfKind::fp16;  ///< asa16
  std::optional<std::size_t> root{};           ///< a broadcast of this rank's vector; none: a reduction
  float scale = 1;                             ///< of the sum
  core::Span vector{};                         ///< in place; aligned to core::kAlignment
  Arenas* arenas = nullptr;                    ///< shm: what the vector's memory is of; outlives the collective
  Scratch* scratch = nullptr;                  ///< outlives the collective; none: memory of its own
  transport::TagFields tag{};                  ///< run, exchange and shard; kind and chunk are the algorithm's
  Chunking chunks{};
};

class Collective {
 public:
  /// Called once, from within the courier's callbacks: the memory is free. The vector is whole, or with an error anything between
  /// old and new: Errc::peer_lost with the endpoint's words, Errc::interrupted after cancel(). After an error in shm others may still
  /// write to the vector: nobody is to go on with it.
  using Done = std::function<void(core::Result<void>)>;

  virtual ~Collective() = default;
  /// Posts what can be posted. To be called once; `done` may come from within when there is nobody to wait for.
  virtual void start() = 0;
  /// The rank whose first word came last, once a word of every rank that this one waits for has come: whom the exchange had to wait
  /// for. A ring waits for the rank before; hierarchical does not say.
  [[nodiscard]] virtual std::optional<std::size_t> last_heard() const { return {}; }
  /// Gives it up; done comes when nothing is lent any more.
  virtual void cancel() = 0;
};

/// Whether the endpoint under `courier` can sum by itself over a group of so many: what `ar` needs.
[[nodiscard]] bool has_library(const Courier& courier, std::size_t members);

/// `courier` and `kernels` must outlive it, and it must live until done has been called. Broken preconditions (an algorithm that is none,
/// ar without has_library(), a rank outside the group, shm with a vector that is in no arena) are bugs: std::invalid_argument.
[[nodiscard]] std::unique_ptr<Collective> make_collective(Courier& courier, const core::Kernels& kernels, Group group,
                                                          CollectiveTask task, Collective::Done done);

/// Payload that member `rank` of `group` sends for a reduction of so many floats; for a broadcast from `root`. None for ar: what
/// the library sends is not known here.
[[nodiscard]] std::uint64_t collective_bytes(const CollectiveTask& task, const Group& group, std::size_t floats);

}  // namespace troupe::exchange
