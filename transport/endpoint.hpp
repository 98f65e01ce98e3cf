/// The data plane's seam: one member's end of tagged, non-blocking transfers with its peers. inproc, shm, tcp, ucx
/// and mpi implement it; exchange algorithms and the contract test suite (tests/transport/) know nothing else.
///
/// How two members meet: each makes an endpoint, control messages carry the addresses, and *both* connect to the
/// other's. Operations may be posted as soon as connect() has returned; they move once the peer has connected too.
///
/// Matching. A receive names one peer and one tag. Messages and receives of the same (peer, tag) match in the order
/// they were posted; different tags do not wait for each other, and either side may come first. Lengths must be
/// equal: otherwise both operations fail with Errc::corrupt (the message is consumed, the connection stays). Zero
/// bytes are a message like any other.
///
/// Completion. Every operation that was started ends with exactly one Completion in the endpoint's queue, with no
/// thread of the caller's needed in between. A send is done when the peer's receive holds the whole message: until
/// then an endpoint may retransmit from the sender's memory, and credit is back when the completion is there. A send
/// that failed with Errc::peer_lost may still have been received, by a peer that is lost.
///
/// Memory. Posting lends the memory to the endpoint; the completion gives it back, whatever its outcome. Nothing else
/// does: no deadline ends an operation. Whoever gives up calls cancel() and waits for the completion that follows. A
/// caller's device memory must be ready before it is posted: endpoints know no streams.
///
/// Loss. When a peer closes, dies or is disconnected, every outstanding operation with it fails with Errc::peer_lost
/// and a message that names it; later ones are refused so. Messages nobody had received are gone. A handle that was
/// lost stays lost; connecting again gives a new one. An endpoint may mend a broken connection by itself as long as
/// everything still arrives exactly once. To hear of a loss while idle, keep a receive posted.
///
/// Damage. A message whose bytes were damaged on the way fails its receive with Errc::corrupt, which names peer and tag, and its
/// peer is lost: tcp, ucx and mpi find out by checksums (tcp with TLS by its own; ucx and mpi check long messages between hosts
/// only, see EndpointOptions::check_within_host). What stays in memory (inproc, shm) is not checked.
///
/// Back-pressure. See Credit: a send that has none is refused at once, and costs nothing.
///
/// Thread-safe but for the destructor. Broken preconditions (a foreign handle, memory of a space that capabilities()
/// does not list, a message above max_message_bytes) are bugs and throw std::invalid_argument or std::out_of_range.
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

/// Where an endpoint can be reached: "<endpoint name>:<rest>", printable ASCII, at most a few KiB. What follows the
/// colon is the endpoint's own business (binary addresses are encoded), and ends in the member's name so that
/// messages can use it.
struct Address {
  std::string text;
  bool operator==(const Address&) const = default;
};

/// How much one endpoint may have under way to one peer: accepted by send() and not yet in a receive. It bounds what
/// either side holds for a peer that does not receive. A message above `bytes` is accepted when no other payload is
/// under way.
struct Credit {
  std::size_t messages = 256;
  std::size_t bytes = std::size_t{64} << 20;
};

/// Which order an endpoint adds to that of messages with equal peer and tag.
enum class Ordering : std::uint8_t {
  per_tag,   ///< none
  per_peer,  ///< receives that were posted in time complete in the order of the sends, whatever their tags
};

/// What an endpoint can do: the same for its whole life, asked once by whoever chooses an algorithm.
struct Capabilities {
  std::string name;                       // as in make_endpoint
  std::vector<core::MemorySpace> spaces;  // memory it sends from and receives into
  std::size_t max_message_bytes = 0;
  Ordering ordering = Ordering::per_tag;
  bool maps_peer_memory = false;  // mapped_memory() is there
  bool between_hosts = false;     // an address means something on another host
  bool encrypted = false;         // both ends are authenticated and bytes are secret on the way
  [[nodiscard]] bool takes(core::MemorySpace space) const noexcept;
};

/// Payload of operations that ended with Outcome::done; framing and retransmission are not in it.
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

/// `established` completes when the peer has connected too, or fails with what stood in the way. Cancelling it gives
/// the connection up, as disconnect() does.
struct Connection {
  Peer peer{};
  OperationId established{};
};

class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  /// Closes. No call may be under way.
  virtual ~Endpoint() = default;

  [[nodiscard]] virtual const Capabilities& capabilities() const noexcept = 0;
  [[nodiscard]] virtual const Address& address() const noexcept = 0;
  [[nodiscard]] virtual CompletionQueue& completions() const noexcept = 0;
  /// Null unless capabilities().maps_peer_memory. Lives as long as the endpoint.
  [[nodiscard]] virtual MappedMemory* mapped_memory() noexcept = 0;

  /// Null where the library underneath has no reduction of its own. Lives as long as the endpoint.
  [[nodiscard]] virtual NativeReduction* native_reduction() noexcept { return nullptr; }

  /// Errc::usage for this endpoint's own address, one of another kind of endpoint or a peer that is connected already;
  /// Errc::peer_lost when it is known at once that nobody is there.
  [[nodiscard]] virtual core::Result<Connection> connect(const Address& remote) = 0;
  /// Gives the peer up (the control plane says it is lost). Its outstanding operations fail with Errc::peer_lost and
  /// `why`; the peer sees a loss too. No effect on one that is lost already.
  virtual void disconnect(Peer peer, std::string_view why) = 0;

  /// Never blocks on the peer. No value: no credit now; nothing was started. There will be some when a send to this
  /// peer that is under way completes. Errors: Errc::peer_lost, and Errc::usage after close().
  [[nodiscard]] virtual core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory) = 0;
  /// Never blocks on the peer. Errors as send(). Needs no credit: what is posted is the caller's to bound.
  [[nodiscard]] virtual core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory) = 0;

  /// Asks for an operation to end. Its completion says what came of it: `cancelled` (a cancelled send is never
  /// delivered, a cancelled receive leaves its message to the next), or what it had come to already. The memory is
  /// free with that completion, not with this call. No effect on operations that have completed.
  virtual void cancel(OperationId operation) = 0;

  [[nodiscard]] virtual Traffic traffic(Peer peer) const = 0;

  /// A number without a unit that grows while messages to the peer or from it move, also in part, and stands still while none does:
  /// a transfer is given up when it has stood still for too long. What only keeps a connection alive does not count.
  [[nodiscard]] virtual std::uint64_t progress(Peer peer) const = 0;

  /// Ends everything at once: outstanding operations complete as `cancelled`, peers see this one lost. When it
  /// returns, all completions are in the queue and no lent memory is touched. Waits for no peer: for a graceful end,
  /// collect the completions first. Idempotent.
  virtual void close() noexcept = 0;
};

}  // namespace troupe::transport
