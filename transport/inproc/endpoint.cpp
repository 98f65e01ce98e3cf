#include "transport/inproc/endpoint.hpp"

#include <limits>
#include <stdexcept>
#include <utility>

#include "transport/inproc/hub.hpp"
#include "transport/mapped_memory.hpp"

namespace troupe::transport {
namespace {

const Capabilities& inproc_capabilities() {
  static const Capabilities capabilities{
      .name = "inproc",
      .spaces = {core::MemorySpace::host, core::MemorySpace::host_shared, core::MemorySpace::host_pinned},
      .max_message_bytes = std::numeric_limits<std::ptrdiff_t>::max(),
      .ordering = Ordering::per_tag,  // two threads may copy two messages at the same time
      .maps_peer_memory = true,
      .between_hosts = false,
      .encrypted = false};
  return capabilities;
}

void check_memory(core::MemorySpace space, std::size_t bytes) {
  if (!inproc_capabilities().takes(space))
    throw std::invalid_argument("inproc: cannot reach this memory space; ask capabilities()");
  if (bytes > inproc_capabilities().max_message_bytes)
    throw std::invalid_argument("inproc: message too long; ask capabilities()");
}

class InprocEndpoint final : public Endpoint, private MappedMemory {
 public:
  explicit InprocEndpoint(const EndpointOptions& options)
      : hub_(options.hub), self_(hub_->join(options.name, options.completions, options.credit)) {}
  ~InprocEndpoint() override { hub_->close(*self_); }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return inproc_capabilities(); }
  [[nodiscard]] const Address& address() const noexcept override { return self_->address; }
  [[nodiscard]] CompletionQueue& completions() const noexcept override { return *self_->completions; }
  [[nodiscard]] MappedMemory* mapped_memory() noexcept override { return this; }

  [[nodiscard]] core::Result<Connection> connect(const Address& remote) override {
    return hub_->connect(self_, remote);
  }
  void disconnect(Peer peer, std::string_view why) override { hub_->disconnect(*self_, peer, why); }
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory) override {
    check_memory(memory.space, memory.size);
    return hub_->send(*self_, peer, tag, memory);
  }
  [[nodiscard]] core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory) override {
    check_memory(memory.space, memory.size);
    return hub_->receive(*self_, peer, tag, memory);
  }
  void cancel(OperationId operation) override { hub_->cancel(*self_, operation); }
  [[nodiscard]] Traffic traffic(Peer peer) const override { return hub_->traffic(*self_, peer); }
  [[nodiscard]] std::uint64_t progress(Peer peer) const override { return traffic(peer).sum(); }
  void close() noexcept override { hub_->close(*self_); }

 private:
  [[nodiscard]] core::Allocator& allocator() noexcept override { return hub_->allocator(); }
  [[nodiscard]] core::Result<Exposure> expose(std::shared_ptr<core::Buffer> arena) override {
    if (!arena || arena->empty()) throw std::invalid_argument("expose: no arena, or an empty one");
    return hub_->expose(self_, std::move(arena));
  }
  [[nodiscard]] core::Result<Mapping> attach(const ArenaKey& key, std::size_t floats) override {
    return hub_->attach(key, floats);
  }

  const std::shared_ptr<InprocHub> hub_;
  const std::shared_ptr<InprocHub::Member> self_;
};

}  // namespace

std::shared_ptr<InprocHub> make_inproc_hub(std::string name) { return std::make_shared<InprocHub>(std::move(name)); }

core::Result<std::unique_ptr<Endpoint>> make_inproc_endpoint(const EndpointOptions& options) {
  if (!options.hub) throw std::invalid_argument("endpoint options: inproc needs a hub");
  return std::make_unique<InprocEndpoint>(options);
}

}  // namespace troupe::transport
