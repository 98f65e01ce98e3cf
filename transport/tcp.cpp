#include "transport/tcp.hpp"

#include <limits>
#include <stdexcept>
#include <utility>

#include "transport/tcp_member.hpp"

namespace troupe::transport {
namespace {

class TcpEndpoint final : public Endpoint {
 public:
  explicit TcpEndpoint(std::unique_ptr<TcpMember> member)
      : member_(std::move(member)),
        capabilities_{
            .name = "tcp",
            .spaces = {core::MemorySpace::host, core::MemorySpace::host_shared, core::MemorySpace::host_pinned},
            .max_message_bytes = std::numeric_limits<std::ptrdiff_t>::max(),
            .ordering = Ordering::per_tag,
            .maps_peer_memory = false,
            .between_hosts = member_->encrypted(),
            .encrypted = member_->encrypted()} {}
  ~TcpEndpoint() override { member_->close(); }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] const Address& address() const noexcept override { return member_->address(); }
  [[nodiscard]] CompletionQueue& completions() const noexcept override { return member_->completions(); }
  [[nodiscard]] MappedMemory* mapped_memory() noexcept override { return nullptr; }

  [[nodiscard]] core::Result<Connection> connect(const Address& remote) override { return member_->connect(remote); }
  void disconnect(Peer peer, std::string_view why) override { member_->disconnect(peer, why); }
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory) override {
    check_memory(memory.space, memory.size);
    return member_->send(peer, tag, memory);
  }
  [[nodiscard]] core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory) override {
    check_memory(memory.space, memory.size);
    return member_->receive(peer, tag, memory);
  }
  void cancel(OperationId operation) override { member_->cancel(operation); }
  [[nodiscard]] Traffic traffic(Peer peer) const override { return member_->traffic(peer); }
  void close() noexcept override { member_->close(); }

 private:
  void check_memory(core::MemorySpace space, std::size_t bytes) const {
    if (!capabilities_.takes(space))
      throw std::invalid_argument("tcp: cannot reach this memory space; ask capabilities()");
    if (bytes > capabilities_.max_message_bytes)
      throw std::invalid_argument("tcp: message too long; ask capabilities()");
  }

  const std::unique_ptr<TcpMember> member_;
  const Capabilities capabilities_;
};

}  // namespace

core::Result<std::unique_ptr<Endpoint>> make_tcp_endpoint(const EndpointOptions& options) {
  if (options.tcp.heartbeat <= core::Duration{0} || options.tcp.lost_after < options.tcp.heartbeat)
    throw std::invalid_argument("endpoint options: tcp needs a heartbeat above 0, and at most lost_after");
  auto member = TcpMember::create(options);
  if (!member) return tl::unexpected(member.error());
  return std::make_unique<TcpEndpoint>(std::move(*member));
}

}  // namespace troupe::transport
