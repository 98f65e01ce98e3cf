#include "taking_fabric.hpp"

#include <utility>

#include "tests/transport/device/fake_device.hpp"
#include "transport/device/staged_endpoint.hpp"
#include "transport/fabric/endpoint.hpp"
#include "transport/fabric/fabric_module.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::transport::testing {
namespace {

class TakingFabric final : public Fabric {
 public:
  TakingFabric(std::unique_ptr<Fabric> inner, std::shared_ptr<std::atomic<unsigned>> straight)
      : inner_(std::move(inner)), straight_(std::move(straight)) {}
  [[nodiscard]] const std::string& address() const noexcept override { return inner_->address(); }
  [[nodiscard]] std::size_t max_transfer_bytes() const noexcept override { return inner_->max_transfer_bytes(); }
  [[nodiscard]] bool takes_device() const noexcept override { return true; }
  [[nodiscard]] core::Result<WireId> open(std::string_view address) override { return inner_->open(address); }
  void send_frame(WireId wire, std::span<const std::byte> frame) override { inner_->send_frame(wire, frame); }
  [[nodiscard]] std::uint64_t receive(WireId wire, MemoryView memory, TransferId transfer) override {
    return inner_->receive(wire, on_host(memory), transfer);
  }
  void send(WireId wire, std::uint64_t channel, ConstMemoryView memory, TransferId transfer) override {
    inner_->send(wire, channel, on_host(memory), transfer);
  }
  void close(WireId wire) override { inner_->close(wire); }
  bool progress(FabricEvents& events) override { return inner_->progress(events); }
  [[nodiscard]] bool prepare_to_wait() override { return inner_->prepare_to_wait(); }
  void wait() noexcept override { inner_->wait(); }
  void wake() noexcept override { inner_->wake(); }
  void shutdown(FabricEvents& events) noexcept override { inner_->shutdown(events); }
  [[nodiscard]] NativeSum* native_sum() noexcept override { return inner_->native_sum(); }

 private:
  template <class View>
  View on_host(View memory) {
    if (memory.space != core::MemorySpace::device) return memory;
    ++*straight_;
    View there = on_device(memory);  // the other side of the other side
    there.space = core::MemorySpace::host;
    return there;
  }
  const std::unique_ptr<Fabric> inner_;
  const std::shared_ptr<std::atomic<unsigned>> straight_;
};

}  // namespace

core::Result<std::unique_ptr<Endpoint>> make_taking_endpoint(const std::string& kind, const EndpointOptions& options,
                                                             const std::shared_ptr<std::atomic<unsigned>>& straight) {
  const auto make = [kind, straight](const EndpointOptions& given) -> core::Result<std::unique_ptr<Endpoint>> {
    const bool global = endpoint_info(kind).library.global_symbols;
    const auto module = load_fabric(kind, global ? Symbols::global : Symbols::local);
    if (!module) return tl::unexpected(module.error());
    core::Result<std::unique_ptr<Fabric>> fabric = core::fail(core::Errc::internal, "the module made nothing");
    module->make({.transports = given.ucx_transports, .piece = given.mpi_piece}, fabric);
    if (!fabric) return tl::unexpected(fabric.error());
    return std::make_unique<FabricEndpoint>(kind, std::make_unique<TakingFabric>(std::move(*fabric), straight), given);
  };
  return options.device ? make_staged_endpoint(make, options) : make(options);
}

}  // namespace troupe::transport::testing
