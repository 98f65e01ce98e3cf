#include "loop_fabric.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "tests/transport/device/fake_device.hpp"

namespace troupe::transport::testing {

class LoopFabric final : public Fabric {
 public:
  LoopFabric(std::shared_ptr<LoopNet> net, std::string address) : net_(std::move(net)), address_(std::move(address)) {}

  [[nodiscard]] const std::string& address() const noexcept override { return address_; }
  [[nodiscard]] std::size_t max_transfer_bytes() const noexcept override { return PTRDIFF_MAX; }

  [[nodiscard]] bool takes_device() const noexcept override { return net_->takes_device_; }

  [[nodiscard]] core::Result<WireId> open(std::string_view address) override {
    const WireId wire{next_wire_++};
    wires_.emplace(wire, address);
    return wire;
  }

  void send_frame(WireId wire, std::span<const std::byte> frame) override {
    const auto found = wires_.find(wire);
    if (found == wires_.end()) return;
    const std::lock_guard lock(net_->mutex_);
    Bytes bytes(frame.begin(), frame.end());
    const int copies = net_->on_frame_(bytes);
    for (int i = 0; i < copies; ++i) tell(found->second, {.frame = bytes});
  }

  [[nodiscard]] std::uint64_t receive(WireId wire, MemoryView memory, TransferId transfer) override {
    const std::lock_guard lock(net_->mutex_);
    net_->posted_.emplace(net_->next_, LoopNet::Posted{address_, wire, memory, transfer});
    return net_->next_++;
  }

  void send(WireId, std::uint64_t channel, ConstMemoryView memory, TransferId transfer) override {
    const std::lock_guard lock(net_->mutex_);
    const auto posted = net_->posted_.extract(channel);
    const bool whole = !posted.empty() && posted.mapped().memory.size == memory.size;
    if (!posted.empty()) {
      const auto& to = posted.mapped();
      for (const auto space : {to.memory.space, memory.space})
        if (space == core::MemorySpace::device) ++net_->device_transfers_;
      auto* const there = to.memory.space == core::MemorySpace::device ? on_device(to.memory).data : to.memory.data;
      const auto* const here = memory.space == core::MemorySpace::device ? on_device(memory).data : memory.data;
      if (whole) std::memcpy(there, here, memory.size);
      net_->on_payload_({there, to.memory.size});
      tell(to.owner, {.transfer = to.transfer, .whole = whole});
    }
    tell(address_, {.transfer = transfer, .whole = whole});
  }

  void close(WireId wire) override {
    const std::lock_guard lock(net_->mutex_);
    wires_.erase(wire);
    std::erase_if(net_->posted_, [&](const auto& entry) {
      const auto& posted = entry.second;
      if (posted.owner != address_ || posted.wire != wire) return false;
      tell(address_, {.transfer = posted.transfer});
      return true;
    });
  }

  bool progress(FabricEvents& events) override {
    std::vector<LoopNet::Event> inbox;
    {
      const std::lock_guard lock(net_->mutex_);
      inbox.swap(me().inbox);
    }
    for (const auto& event : inbox) {
      if (event.frame.empty())
        events.on_transferred(event.transfer, event.whole);
      else
        events.on_frame(event.frame);
    }
    return !inbox.empty();
  }

  [[nodiscard]] bool prepare_to_wait() override { return true; }
  void wait() noexcept override {
    std::unique_lock lock(net_->mutex_);
    net_->changed_.wait(lock, [&] { return me().woken || !me().inbox.empty(); });
    me().woken = false;
  }
  void wake() noexcept override {
    const std::lock_guard lock(net_->mutex_);
    me().woken = true;
    net_->changed_.notify_all();
  }

  void shutdown(FabricEvents& events) noexcept override {
    while (!wires_.empty()) close(wires_.begin()->first);
    while (progress(events)) continue;
  }

 private:
  // Requires the net's mutex.
  [[nodiscard]] LoopNet::Member& me() { return net_->members_[address_]; }
  void tell(const std::string& whom, LoopNet::Event event) {
    net_->members_[whom].inbox.push_back(std::move(event));
    net_->changed_.notify_all();
  }

  const std::shared_ptr<LoopNet> net_;
  const std::string address_;
  std::uint64_t next_wire_ = 1;
  std::map<WireId, std::string> wires_;
};

void LoopNet::set(OnFrame on_frame) {
  const std::lock_guard lock(mutex_);
  on_frame_ = std::move(on_frame);
}

void LoopNet::set(OnPayload on_payload) {
  const std::lock_guard lock(mutex_);
  on_payload_ = std::move(on_payload);
}

std::unique_ptr<Fabric> LoopNet::make() {
  const std::lock_guard lock(mutex_);
  return std::make_unique<LoopFabric>(shared_from_this(), fmt::format("m{}", next_++));
}

}  // namespace troupe::transport::testing
