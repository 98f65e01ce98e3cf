#include "transport/shm.hpp"

#include <limits>
#include <stdexcept>
#include <utility>

#include "transport/mapped_memory.hpp"
#include "transport/shm_member.hpp"

namespace troupe::transport {
namespace {

const Capabilities& shm_capabilities() {
  static const Capabilities capabilities{
      .name = "shm",
      .spaces = {core::MemorySpace::host, core::MemorySpace::host_shared, core::MemorySpace::host_pinned},
      .max_message_bytes = std::numeric_limits<std::ptrdiff_t>::max(),
      .ordering = Ordering::per_tag,  // a short message overtakes a long one
      .maps_peer_memory = true,
      .between_hosts = false,
      .encrypted = false};
  return capabilities;
}

void check_memory(core::MemorySpace space, std::size_t bytes) {
  if (!shm_capabilities().takes(space))
    throw std::invalid_argument("shm: cannot reach this memory space; ask capabilities()");
  if (bytes > shm_capabilities().max_message_bytes)
    throw std::invalid_argument("shm: message too long; ask capabilities()");
}

class ShmEndpoint final : public Endpoint {
 public:
  explicit ShmEndpoint(std::unique_ptr<ShmMember> member)
      : member_(std::move(member)), address_{member_->self().address.text()} {}

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return shm_capabilities(); }
  [[nodiscard]] const Address& address() const noexcept override { return address_; }
  [[nodiscard]] CompletionQueue& completions() const noexcept override { return *member_->self().completions; }
  [[nodiscard]] MappedMemory* mapped_memory() noexcept override { return &member_->arenas(); }

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
  const std::unique_ptr<ShmMember> member_;
  const Address address_;
};

}  // namespace

core::Result<std::unique_ptr<Endpoint>> make_shm_endpoint(const EndpointOptions& options) {
  auto member = ShmMember::create(options);
  if (!member) return tl::unexpected(member.error());
  return std::make_unique<ShmEndpoint>(std::move(*member));
}

}  // namespace troupe::transport
