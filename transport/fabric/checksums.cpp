#include "transport/fabric/checksums.hpp"

#include <utility>

namespace troupe::transport {

Checksums::Checksums(std::shared_ptr<core::DeviceChecksum> device, std::function<void()> wake)
    : device_(std::move(device)), state_(std::make_shared<State>()) {
  state_->wake = std::move(wake);
}

Checksums::Id Checksums::begin(ConstMemoryView memory) {
  Id id{};
  {
    const std::lock_guard lock(state_->mutex);
    id = Id{state_->next++};
    state_->under_way += 1;
  }
  device_->sum(memory.data, memory.size, [state = state_, id](core::Result<std::uint64_t> sum) {
    const std::lock_guard lock(state->mutex);
    state->ended.push_back({id, std::move(sum)});
    state->under_way -= 1;
    state->wake();  // under the lock: drain() returns after it
    state->ended_one.notify_all();
  });
  return id;
}

std::vector<Checksums::Ended> Checksums::take() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->ended, {});
}

std::vector<Checksums::Ended> Checksums::drain() {
  std::unique_lock lock(state_->mutex);
  state_->ended_one.wait(lock, [this] { return state_->under_way == 0; });
  return std::exchange(state_->ended, {});
}

}  // namespace troupe::transport
