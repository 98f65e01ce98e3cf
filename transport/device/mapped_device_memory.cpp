#include "transport/device/mapped_device_memory.hpp"

#include <stdexcept>
#include <utility>

namespace troupe::transport {
namespace {

class MappedDeviceMemory final : public MappedMemory {
 public:
  explicit MappedDeviceMemory(std::shared_ptr<core::DeviceSharing> sharing) : sharing_(std::move(sharing)) {}

  [[nodiscard]] core::Allocator& allocator() noexcept override { return sharing_->memory(); }

  [[nodiscard]] core::Result<Exposure> expose(std::shared_ptr<core::Buffer> arena) override {
    if (!arena || arena->empty()) throw std::invalid_argument("expose: no arena, or an empty one");
    auto handle = sharing_->handle_of(arena->data());
    if (!handle) return tl::unexpected(std::move(handle.error()));
    return Exposure({std::move(*handle)}, std::move(arena));
  }

  [[nodiscard]] core::Result<Mapping> attach(const ArenaKey& key, std::size_t floats) override {
    auto memory = sharing_->open(key.text, floats * sizeof(float));
    if (!memory) return tl::unexpected(std::move(memory.error()));
    return Mapping({static_cast<float*>(memory->get()), floats}, *memory);
  }

 private:
  const std::shared_ptr<core::DeviceSharing> sharing_;
};

}  // namespace

std::shared_ptr<MappedMemory> map_device_memory(std::shared_ptr<core::DeviceSharing> sharing) {
  return std::make_shared<MappedDeviceMemory>(std::move(sharing));
}

}  // namespace troupe::transport
