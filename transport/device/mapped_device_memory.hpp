/// MappedMemory (transport/mapped_memory.hpp) in a device's memory: a key is a handle of core::DeviceSharing. It belongs to no endpoint: the keys
/// travel over any.
///
/// attach() maps what the device of this process can map, else Errc::config with the reason. It trusts the length that the owner gives.
#pragma once

#include <memory>

#include "core/devices/device_sharing.hpp"
#include "transport/mapped_memory.hpp"

namespace troupe::transport {

[[nodiscard]] std::shared_ptr<MappedMemory> map_device_memory(std::shared_ptr<core::DeviceSharing> sharing);

}  // namespace troupe::transport
