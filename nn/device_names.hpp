/// The names of devices in a configuration (cluster.device, cluster.devices), and the parts of a plan by kind of device. The backend of
/// several devices (apps/devices.hpp) goes by them. Thread rule: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nn/backend.hpp"

namespace troupe::nn {

enum class DeviceKind : std::uint8_t {
  cpu,
  cuda,          ///< an NVIDIA GPU
  cuda_on_host,  ///< the same program on the host, slowly: for tests and machines without a GPU
};

struct DeviceName {
  DeviceKind kind = DeviceKind::cpu;
  std::optional<int> ordinal{};  // of the host's devices; none: the worker's local rank modulo their number
  bool operator==(const DeviceName&) const = default;
};

inline constexpr std::string_view kDeviceNames =
    "\"cpu\", \"cuda\" (or \"cuda:local\": by the worker's number on its host), \"cuda:N\", \"cuda_on_host\"";

/// Nothing: not one of kDeviceNames. "cuda_on_host:N" is one, too.
[[nodiscard]] std::optional<DeviceName> parse_device_name(std::string_view name);

/// The "backend" in plans of its backend: devices with the same one have the same arena layouts and take each other's plans.
[[nodiscard]] std::string_view backend_of(DeviceKind kind) noexcept;

/// `plan` with what it has no part for; where there are several, it has "backend": "mixed" and `parts`, by backend. GPUs of different models
/// have a part each, by the "device" that they were chosen on: the first is "gpu", others are "gpu: NVIDIA H200".
[[nodiscard]] Plan joined(const std::optional<Plan>& plan, const Plan& more);
/// The part of `plan` for this backend on a device of this model; nothing if it is for others. A part that names no device is for all. What
/// no backend wrote is returned as it is, for the backend to refuse.
[[nodiscard]] std::optional<Plan> part_for(const Plan& plan, std::string_view backend, std::string_view model);
/// All of `plan` that is for this backend, whatever the device's model.
[[nodiscard]] std::optional<Plan> part_for(const Plan& plan, std::string_view backend);

}  // namespace troupe::nn
