/// An Endpoint over a Fabric: it implements matching, credit, cancel and loss (transport/endpoint.hpp) in software, over frames and
/// bulk transfers. The endpoints ucx and mpi are this class.
///
/// The sender offers a message; a short message is in the offer. The receiver matches the offer, then takes the short message or
/// accepts the long one, and sends done when the message is complete; that completes the send. A long message moves only when both
/// memories are known, straight between them. So only offers wait for a receive, and the receiver decides about a withdrawal.
///
/// Damage. Every frame is checked, with the short message in it; a long message is checked as a whole when it comes from another
/// host. A damaged message fails its receive with Errc::corrupt and ends the link. Any other damaged frame that can be attributed
/// to a link ends that link; otherwise the number of the next frame reveals the gap. A library's own sum (`ar`) is not checked.
///
/// Device memory. Where the library takes it, long messages may be given in it (takes_device), between hosts if the device itself computes their
/// checksums (EndpointOptions::checksum): nothing of these is put into a frame, so the host never reads them. All others must be staged
/// (transport/device/). The memory stays lent while the device sums it, also when the peer is lost meanwhile. A device that fails at that ends the
/// operation with its error, and the link: the peer waits for the sum.
///
/// Connecting. Each side sends hello over its own wire, with the run's secret and the other side's link number, as far as known. A
/// link is established when the peer has named it. Link numbers are never reused, so frames of an earlier link match nothing.
///
/// Thread-safe as Endpoint is: one mutex. One thread drives the fabric and sleeps while nothing moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "transport/common/matcher.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"
#include "transport/fabric/checksums.hpp"
#include "transport/fabric/fabric.hpp"
#include "transport/fabric/frame.hpp"
#include "transport/native_reduction.hpp"

namespace troupe::transport {

class FabricEndpoint final : public Endpoint, private FabricEvents, private NativeReduction {
 public:
  /// `kind` is the name of the endpoint and of its addresses. Starts the thread.
  FabricEndpoint(std::string kind, std::unique_ptr<Fabric> fabric, const EndpointOptions& options);
  ~FabricEndpoint() override { close(); }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] const Address& address() const noexcept override { return address_; }
  [[nodiscard]] CompletionQueue& completions() const noexcept override { return *completions_; }
  [[nodiscard]] MappedMemory* mapped_memory() noexcept override { return nullptr; }
  [[nodiscard]] NativeReduction* native_reduction() noexcept override { return native_sum_ ? this : nullptr; }
  [[nodiscard]] bool takes_device(Peer peer, std::size_t bytes) const override;
  [[nodiscard]] core::Result<Connection> connect(const Address& remote) override;
  void disconnect(Peer peer, std::string_view why) override;
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory) override;
  [[nodiscard]] core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory) override;
  void cancel(OperationId operation) override;
  [[nodiscard]] Traffic traffic(Peer peer) const override;
  [[nodiscard]] std::uint64_t progress(Peer peer) const override;
  void close() noexcept override;

 private:
  struct Posted {
    OperationId operation;
    MemoryView memory;
  };
  struct Offered {
    OperationId operation;  // the sender's
    std::size_t size = 0;
    std::vector<std::byte> bytes{};  // of a short message
  };
  /// A send from its post to its completion.
  struct Sending {
    Tag tag{};
    ConstMemoryView memory{};
    bool offered = false;
    bool moving = false;   // the fabric has the memory
    bool summing = false;  // the device reads the memory
    std::optional<FrameHead> done{};
    std::optional<core::Error> failed{};  // why the device could not sum it
    [[nodiscard]] bool is_in_use() const noexcept { return moving || summing; }
  };
  /// A long receive from its acceptance to its completion.
  struct Arriving {
    Posted posted;
    Tag tag{};
    OperationId sender{};                // the sender's operation
    bool whole = false;                  // the fabric has released the memory
    bool summing = false;                // the device reads the memory
    std::optional<std::uint64_t> sum{};  // hash of the message, as the sender read it
  };
  /// One connect(): a peer and everything pending with it.
  struct Link {
    Peer peer{};
    std::string address;
    std::string name;  // the address, shortened for error messages
    std::uint64_t id = 0;
    WireId wire{};
    std::uint64_t heard = 0;        // the peer's link, from its hello
    std::uint64_t told = 0;         // the peer's link that our last hello named
    std::uint64_t remote = 0;       // the peer's link once established
    std::uint64_t frames_sent = 0;  // since then
    std::uint64_t frames_seen = 0;
    bool sums = false;  // long messages are checked: the peer is on another host
    std::optional<OperationId> establishing{};
    Matcher<Posted, Offered> matcher{};
    std::map<OperationId, Sending> sends{};  // in the order of posting
    std::size_t bytes = 0;                   // payload of sends
    std::map<TransferId, Arriving> arriving{};
    Traffic traffic{};
    std::uint64_t pieces = 0;  // completed pieces of long messages, not in traffic
    bool lost = false;
    Outcome ending = Outcome::failed;  // outcome of outstanding operations when lost
    core::Error error{};
  };
  /// An operation that cancel() can find.
  struct Waiting {
    enum class Kind : std::uint8_t { connect, send, receive } kind;
    Peer peer;
    Tag tag{};
  };
  struct Moving {
    enum class Kind : std::uint8_t { send, receive, sum } kind;
    Peer peer{};  // unused for a sum
    OperationId operation;
    std::size_t bytes = 0;
  };

  /// A sum that the device computes: of a send, for the peer's `transfer`, or of the receive that `transfer` is.
  struct Summing {
    Peer peer;
    OperationId operation;
    TransferId transfer;
    bool is_send;
  };

  [[nodiscard]] std::size_t members() const noexcept override { return native_sum_->members(); }
  [[nodiscard]] core::Result<OperationId> sum(core::Span vector) override;

  // All below with mutex_ held, except drive() and check().
  void drive();
  void check(core::MemorySpace space, std::size_t bytes) const;
  [[nodiscard]] core::Result<Link*> live(Peer peer) const;
  [[nodiscard]] Link& at(Peer peer) const { return *links_.at(static_cast<std::size_t>(peer)); }
  [[nodiscard]] Link* connected_to(std::string_view address) const;
  [[nodiscard]] Link* link_of(std::uint64_t id) const;
  void wake_if_asleep();

  void greet(Link& link);
  /// Sends goodbye to a member that waits for this member's connect(), which will not come.
  void dismiss(const std::string& address, std::uint64_t caller);
  void offer(Link& link, OperationId operation, Sending& sending);
  void deliver(Link& link, Tag tag, Offered offered, Posted posted);
  void complete_send(Link& link, OperationId operation);
  void complete_receive(Link& link, TransferId transfer);
  /// Ends the receive, whose message has this sum.
  void check_receive(Link& link, TransferId transfer, std::uint64_t sum);
  void summed(const Checksums::Ended& ended);
  void summed_send(Link& link, const Summing& summing, const core::Result<std::uint64_t>& sum);
  void summed_receive(Link& link, const Summing& summing, const core::Result<std::uint64_t>& sum);
  /// Completes a send of a lost link once nothing uses its memory.
  void release_send(Link& link, OperationId operation);
  /// The completion of an operation of a lost link.
  [[nodiscard]] static Completion lost_with(const Link& link, OperationId operation);
  /// Numbers the frame and sends it.
  void reply(Link& link, FrameHead head, std::span<const std::byte> body = {});
  void finish(Completion completion);
  /// Ends the link. Operations whose memory neither the fabric nor the device uses complete now, the others when it is free.
  void end(Link& link, Outcome ending, std::string_view why, std::string_view tell_peer);

  void on_frame(std::span<const std::byte> bytes) override;
  void on_transferred(TransferId transfer, bool whole) override;
  void on_piece(TransferId transfer) override;
  void on_wire_lost(WireId wire, std::string why) override;
  void on_hello(const FabricFrame& frame);
  void on_goodbye(const FabricFrame& frame);
  void on_damaged(const FabricFrame& frame);
  void fail_damaged(const Link& link, OperationId operation, Tag tag);
  /// The link to which a damaged frame most likely belongs; null for a pending connection's.
  [[nodiscard]] Link* suspect(const FabricFrame& frame) const;
  void on_offer(Link& link, const FabricFrame& frame);
  void on_accept(Link& link, const FrameHead& head);
  void on_sum(Link& link, const FrameHead& head);
  void on_done(Link& link, const FrameHead& head);

  const std::shared_ptr<CompletionQueue> completions_;
  const Credit credit_;
  const std::string secret_;
  const std::uint64_t host_;                          // 0: no peer counts as being on this host
  const std::shared_ptr<core::DeviceCopier> device_;  // may be null
  const std::unique_ptr<Fabric> fabric_;
  Checksums checksums_;
  NativeSum* const native_sum_;  // the fabric's
  const Address address_;
  const Capabilities capabilities_;

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Link>> links_;                   // by Peer
  std::unordered_map<std::uint64_t, Peer> ids_;                // of links that are not lost
  std::map<std::string, std::uint64_t, std::less<>> callers_;  // links of members that sent hello first, by address
  std::unordered_map<OperationId, Waiting> waiting_;           // operations that are not completed
  std::unordered_map<TransferId, Moving> moving_;
  std::map<Checksums::Id, Summing> summing_;
  std::uint64_t next_transfer_ = 1;
  std::uint64_t next_link_ = 1;
  bool asleep_ = false;
  bool closed_ = false;

  std::mutex closing_;
  bool stop_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace troupe::transport
