/// Calls to members of other processes. A call lends a vector for its duration, as a message with a BorrowedView does within one process.
/// The floats travel to the callee, which works on a copy, or back, or both ways; a short header travels each way. A call takes one round
/// trip, for any length of the vector.
///
///     caller                                    callee
///     envelope, vector ────────────────────▶    handler(header, vector)
///     answered(header)  ◀──────────────────     reply(header): vector, envelope
///
/// The calls of one peer reach the handler in the peer's order: a call without a vector waits for the vector of the call before. Answers
/// may come in any order.
///
/// Memory that a peer can occupy at the callee: vectors of unanswered calls, together at most kMostVectors of the greatest length (further
/// calls wait, in order), and kMostCalls envelopes. A vector whose change is sent back counts twice. The memory is reused for later calls.
///
/// Vectors may be rounded to 16 bits for transfer, where core::Rounding permits it. Payload on the wire: 4 or 2 bytes per float and
/// direction, and 256 bytes per envelope. Where the 16-bit format cannot represent the change (NaN, infinity, above 65,504 in fp16), the
/// callee sends the rounded vector itself, which replaces the caller's.
///
/// In place. Where a site has arenas in a device's memory (arenas.hpp), it offers them to a peer of its host. The peer tries: it maps a small
/// arena, and its device reads and writes it. If it can, later calls with vectors in arenas send their place instead of their floats, and the
/// callee lends the caller's memory itself to its member, until it has answered: as in one process. The floats are those of a call by
/// messages. If it cannot, vectors travel. Vectors that are rounded or packed travel in any case. A caller that has given the peer up does not know
/// when the peer stops to use a vector that it has lent; its end is the run's, or the vector is only read.
///
/// Farewell. Freeing memory that a peer still maps may be undefined (docs/gpu.md). Therefore a site that ends sends a farewell to each peer that maps its
/// arenas or whose arenas it maps. A site sends its farewell once it uses none of the peer's memory and has unmapped it. The peer answers with its own
/// farewell under the same rule. Where nothing was mapped, nothing is sent.
///
/// Vectors are in the memory of the kernels. On a device they should travel in pieces, so that copies to and
/// from the host overlap with transfers (pieces.hpp); all members of a run have the same options.
///
/// Not thread-safe: the thread of the operation queue makes the calls; handlers and answers run within its callbacks. A call ends exactly
/// once: with the answer, with the callee's error, or with Errc::peer_lost. Calls have no deadline: at a deadline disconnect the peer
/// (Endpoint::disconnect). A malformed envelope, a vector of another length than announced, an answer without a call, or more than
/// kMostCalls calls end the connection (Errc::corrupt). A caller keeps below that: its further calls wait, in order, until some are answered.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/exchange/operation_queue.hpp"
#include "transport/exchange/packing.hpp"
#include "transport/exchange/pieces.hpp"
#include "transport/exchange/vector_pool.hpp"

namespace troupe::exchange {

/// What the callee may do with the caller's vector.
enum class Lend : std::uint8_t {
  nothing,  ///< no vector, only a header
  read,     ///< the callee receives its floats
  write,    ///< only space; its floats return with the answer
  both,
};

/// Greatest length of a header, in bytes.
inline constexpr std::size_t kMostHeader = 216;
/// Limits of one peer's unanswered calls.
inline constexpr std::size_t kMostVectors = 8;
inline constexpr std::size_t kMostCalls = 4096;
/// Calls that a caller has under way with one peer. Half: an answer may arrive before the callee knows that it has been sent.
inline constexpr std::size_t kMostCallsBegun = kMostCalls / 2;

struct Envelope;

struct Call {
  std::string_view header{};  // copied
  core::Span vector{};        // lent by the caller until the answer
  Lend lend = Lend::nothing;
  std::optional<core::HalfKind> half{};  // 16-bit format on the wire, where `rounding` permits it
  core::Rounding rounding = core::Rounding::both;
  const Packing* packing = nullptr;     // the vector travels without its padding; outlives the call
  std::size_t offset = 0;               // of the vector in the packing's arena
  std::shared_ptr<const void> owner{};  // of the vector, held until the answer
};

class Arenas;

class Rpc {
 public:
  /// The header is valid during the call of the function.
  using Answered = std::function<void(core::Result<std::string_view>)>;
  class Reply;
  struct Incoming;
  using Handler = std::function<void(Incoming)>;
  using Lost = std::function<void(transport::Peer, const core::Error&)>;

  /// `lost` is called once for every lost peer; calls to it end with the same error when none of their memory is lent. All arguments
  /// outlive the object. Destroy it after the endpoint was closed and its completions were delivered. Incoming calls may have vectors of up
  /// to `most_floats`: the connection to a peer that announces more is closed. `arenas`: of the kernels' memory; null: nothing is lent in place.
  Rpc(transport::Endpoint& endpoint, OperationQueue& operations, const core::Kernels& kernels, core::Allocator& memory,
      std::size_t most_floats, std::uint8_t run, Handler handler, Lost lost, const PieceOptions& pieces = {},
      Arenas* arenas = nullptr);
  ~Rpc();
  Rpc(const Rpc&) = delete;
  Rpc& operator=(const Rpc&) = delete;

  /// Memory that is reused from call to call.
  [[nodiscard]] VectorPool& vectors() noexcept { return vectors_; }

  /// Accepts calls from a connected peer. Once per peer.
  void listen(transport::Peer peer);
  void call(transport::Peer peer, Call call, Answered answered);
  /// Offers this site's arenas to a peer of its host. `answered` once: without an error, calls to it lend in place from now on. REQUIRES arenas.
  void offer(transport::Peer peer, std::function<void(core::Result<void>)> answered);

  /// Begins this site's end: it maps and lends nothing any more, and says farewell as soon as it uses no memory of a peer. Idempotent.
  void part();
  /// Looks again whether memory of peers that part is unused: users on other threads do not tell. Call it about once a second, and more often
  /// after part().
  void advance_farewells();
  /// True after part() when every connected peer has unmapped this site's memory, and has received the farewell that this site owes it.
  [[nodiscard]] bool parted() const;
  /// Who may still use arenas of this site.
  enum class Users : std::uint8_t {
    none,
    lost,      ///< only peers that were lost before they said farewell
    connected  ///< a peer that has not said it yet
  };
  [[nodiscard]] Users users() const;
  /// Disconnects the peer: at once if its memory is in use here, because what uses it may wait for the peer; else after the farewell has
  /// arrived, or some advance_farewells() later.
  void leave(transport::Peer peer, std::string_view why);

 private:
  struct Channel;
  struct Outgoing;
  struct ServedCall;

  void receive(Channel& channel);
  void handle(Channel& channel, const Envelope& envelope);
  void serve(Channel& channel, const Envelope& envelope);
  void make_room(Channel& channel);
  void receive_place(Channel& channel, const std::shared_ptr<ServedCall>& served);
  void hand_over(Channel& channel);
  [[nodiscard]] core::Result<void> try_arena(Channel& channel, std::string_view place);
  void begin_parting(Channel& channel);
  void advance_farewell(Channel& channel);
  void free_room(Channel& channel, ServedCall& served);
  void answer(const std::shared_ptr<ServedCall>& served, core::Result<std::string_view> result);
  void answered(Channel& channel, const Envelope& envelope);
  void send_vector(Channel& channel, const std::shared_ptr<Outgoing>& outgoing);
  void receive_vector(Channel& channel, const std::shared_ptr<Outgoing>& outgoing);
  void send_place(Channel& channel, const std::shared_ptr<Outgoing>& outgoing);
  void operation_ended(Channel& channel, Outgoing& outgoing, std::size_t moves);
  void begin(Channel& channel, const std::shared_ptr<Outgoing>& outgoing);
  void send_call(Channel& channel, const std::shared_ptr<Outgoing>& outgoing);
  void complete_if_done(Channel& channel, std::uint32_t id);
  /// `next` holds the envelope.
  void send_envelope(Channel& channel, const Envelope& envelope, std::function<void()> next);
  void drop(Channel& channel, const core::Error& error);
  [[nodiscard]] transport::TagFields fields(transport::TagKind kind, std::uint32_t id) const;
  /// Sends or receives a vector. Calls `next` when none of its memory is lent any more: it has moved, or the channel is lost.
  void move(bool sends, Channel& channel, transport::TagKind kind, std::uint32_t id, transport::MemoryView memory,
            std::function<void()> next);
  /// Drops the channel after an operation that has failed.
  void check(Channel& channel, const transport::Completion& completion);
  /// Calls `next` at the operation's end; after a failure it drops the channel first.
  [[nodiscard]] OperationQueue::Done then(Channel& channel, std::function<void()> next);

  transport::Endpoint& endpoint_;
  OperationQueue& operations_;
  const core::Kernels& kernels_;
  VectorPool vectors_;
  const std::size_t most_floats_;
  const std::uint8_t run_;
  const PieceOptions pieces_;
  Arenas* const arenas_;
  const Handler handler_;
  const Lost lost_;
  std::map<transport::Peer, std::unique_ptr<Channel>> channels_;
};

/// Answers a call. Call it once, at any later time, on the thread of the operation queue. The result is the header, which is copied, or an
/// error. A value; copies answer the same call.
class Rpc::Reply {
 public:
  Reply() = default;
  void operator()(core::Result<std::string_view> result) const;

 private:
  friend class Rpc;
  friend struct Rpc::Incoming;
  Reply(Rpc& rpc, std::shared_ptr<ServedCall> served) : rpc_(&rpc), served_(std::move(served)) {}
  Rpc* rpc_ = nullptr;
  std::shared_ptr<ServedCall> served_;
};

struct Rpc::Incoming {
  transport::Peer from{};
  std::string_view header{};  // valid until the reply
  Lend lend = Lend::nothing;
  /// Owned by the callee until it replies: a copy, or zeros for Lend::write; or the caller's vector itself.
  core::Span vector{};
  Reply reply{};

  /// The vector with the padding of a slice of `floats` floats at `offset` of an arena: padding is zero. `vector` is not used any more. The
  /// packing outlives the reply. Errors: the allocator's.
  [[nodiscard]] core::Result<core::Span> padded(const Packing& packing, std::size_t offset, std::size_t floats) const;
  /// Keeps the vector of a call that is not answered; the memory of an answered one is used again.
  [[nodiscard]] std::shared_ptr<const void> owner() const { return reply.served_; }
};

}  // namespace troupe::exchange
