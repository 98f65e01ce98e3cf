/// The interface of the data plane: one member's tagged, non-blocking transfers with its peers. inproc, shm, tcp, ucx and mpi
/// implement it. Exchange algorithms and the contract tests (tests/transport/) use only this interface.
///
/// Connecting. Each of two members makes an endpoint. Control messages carry the addresses. *Both* members call connect() with the
/// other's address. A member may post operations as soon as its connect() has returned; they move once the peer has connected too.
///
/// Matching. A receive names one peer and one tag. Messages and receives of the same (peer, tag) match in the order in which they
/// were posted. Different tags do not wait for each other. Either side may come first. Lengths must be equal; otherwise both
/// operations fail with Errc::corrupt (the message is consumed, the connection stays). A message of zero bytes is a normal message.
///
/// Completion. Every started operation ends with exactly one Completion in the endpoint's queue; this needs no thread of the
/// caller. A send is done when the peer's receive holds the whole message. Until then an endpoint may retransmit from the sender's
/// memory, and the credit stays in use. A send that failed with Errc::peer_lost may still have reached the lost peer.
///
/// Memory. Posting lends the memory to the endpoint. Only the completion returns it, whatever its outcome; no deadline ends an
/// operation. To give up, call cancel() and wait for the completion that follows. Device memory must be ready before it is posted:
/// endpoints know no streams.
///
/// Loss. When a peer closes, dies or is disconnected, every outstanding operation with it fails with Errc::peer_lost and a message
/// that names the peer. Later operations are refused with the same error. Messages that were not received are discarded. A lost
/// handle stays lost; connecting again gives a new one. An endpoint may mend a broken connection by itself if everything still
/// arrives exactly once. To notice a loss while idle, keep a receive posted.
///
/// Damage. A message that was damaged on the way fails its receive with Errc::corrupt, which names peer and tag, and its peer is
/// lost. tcp, ucx and mpi detect damage by checksums: tcp with TLS by those of TLS; ucx and mpi check long messages only between
/// hosts, see EndpointOptions::check_within_host. Messages that stay in memory (inproc, shm) are not checked.
///
/// Back-pressure. See Credit: a send without credit is refused at once and starts nothing.
///
/// Thread-safe except for the destructor. Broken preconditions (a foreign handle, memory of a space that capabilities() does not
/// list, a message above max_message_bytes) are bugs and throw std::invalid_argument or std::out_of_range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "transport/completion_queue.hpp"
#include "transport/memory_view.hpp"
#include "transport/tag.hpp"

namespace troupe::transport {

class MappedMemory;
class NativeReduction;

/// Where an endpoint can be reached: "<endpoint name>:<rest>", printable ASCII, at most a few KiB. The endpoint defines the format
/// of the rest (it encodes binary addresses). The text ends in the member's name, so that error messages can show it.
struct Address {
  std::string text;
  bool operator==(const Address&) const = default;
};

/// Limit of what one endpoint has outstanding to one peer: messages that send() accepted and no receive holds yet. It bounds the
/// memory that either side needs for a peer that does not receive. A message above `bytes` is accepted when no other payload is
/// outstanding.
struct Credit {
  std::size_t messages = 256;
  std::size_t bytes = std::size_t{64} << 20;
};

/// The order that an endpoint guarantees beyond that of messages with equal peer and tag.
enum class Ordering : std::uint8_t {
  per_tag,   ///< none
  per_peer,  ///< receives posted before their messages arrive complete in the order of the sends
};

/// What an endpoint can do. Constant for its life; the code that chooses an algorithm asks once.
struct Capabilities {
  std::string name;                       // as in make_endpoint
  std::vector<core::MemorySpace> spaces;  // memory it sends from and receives into
  std::size_t max_message_bytes = 0;
  Ordering ordering = Ordering::per_tag;
  bool maps_peer_memory = false;  // mapped_memory() is not null
  bool between_hosts = false;     // peers on other hosts can use its address
  bool encrypted = false;         // both ends are authenticated and bytes are encrypted
  [[nodiscard]] bool takes(core::MemorySpace space) const noexcept;
};

/// Payload of operations that ended with Outcome::done, without framing and retransmission.
struct Traffic {
  std::uint64_t messages_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t bytes_received = 0;
  bool operator==(const Traffic&) const = default;
  [[nodiscard]] std::uint64_t sum() const noexcept {
    return messages_sent + bytes_sent + messages_received + bytes_received;
  }
};

/// `established` completes when the peer has connected too, or fails with the reason. Cancelling it gives the connection up, as
/// disconnect() does.
struct Connection {
  Peer peer{};
  OperationId established{};
};

class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  /// Closes. No call may be in progress.
  virtual ~Endpoint() = default;

  [[nodiscard]] virtual const Capabilities& capabilities() const noexcept = 0;
  [[nodiscard]] virtual const Address& address() const noexcept = 0;
  [[nodiscard]] virtual CompletionQueue& completions() const noexcept = 0;
  /// Null unless capabilities().maps_peer_memory. Owned by the endpoint.
  [[nodiscard]] virtual MappedMemory* mapped_memory() noexcept = 0;

  /// Null where the library underneath has no reduction. Owned by the endpoint.
  [[nodiscard]] virtual NativeReduction* native_reduction() noexcept { return nullptr; }

  /// Errc::usage: this endpoint's own address, an address of another kind of endpoint, or a peer that is already connected.
  /// Errc::peer_lost: it is known at once that the peer does not exist.
  [[nodiscard]] virtual core::Result<Connection> connect(const Address& remote) = 0;
  /// Whether a message of so many bytes to or from this peer may now be given in device memory, to this endpoint as it is. Where not, and
  /// capabilities() do not list device memory, a StagedEndpoint copies it. Either end decides for itself.
  [[nodiscard]] virtual bool takes_device(Peer /*peer*/, std::size_t /*bytes*/) const { return false; }

  /// Gives the peer up (the control plane reports it lost). Its outstanding operations fail with Errc::peer_lost and `why`; the
  /// peer sees a loss too. No effect on a lost peer.
  virtual void disconnect(Peer peer, std::string_view why) = 0;

  /// Never blocks on the peer. No value: there is no credit and nothing was started; credit returns when an outstanding send to
  /// this peer completes. Errors: Errc::peer_lost, and Errc::usage after close().
  [[nodiscard]] virtual core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory) = 0;
  /// Never blocks on the peer. Errors as send(). Needs no credit: the caller bounds what it posts.
  [[nodiscard]] virtual core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory) = 0;

  /// Asks an operation to end. Its completion reports the result: `cancelled` (a cancelled send is never delivered, a cancelled
  /// receive leaves its message to the next receive), or the outcome that came first. The memory is free with that completion, not
  /// with this call. No effect on completed operations.
  virtual void cancel(OperationId operation) = 0;

  [[nodiscard]] virtual Traffic traffic(Peer peer) const = 0;

  /// A number without a unit. It grows while messages to or from the peer move, also in part. It stands still while none moves, so
  /// a caller can give up a transfer that has stalled for too long. Traffic that only keeps a connection alive does not count.
  [[nodiscard]] virtual std::uint64_t progress(Peer peer) const = 0;

  /// Ends everything at once: outstanding operations complete as `cancelled`, and peers see this endpoint as lost. When it returns,
  /// all completions are in the queue and no lent memory is touched. Waits for no peer: for a graceful end, collect the completions
  /// first. Idempotent.
  virtual void close() noexcept = 0;
};

}  // namespace troupe::transport
