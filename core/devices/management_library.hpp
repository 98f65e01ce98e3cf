/// The GPUs of this machine, as NVIDIA's management library (NVML, libnvidia-ml.so.1) reports them: all of them, also those that this process may
/// not use, and what any process does with them. The library comes with the driver and is loaded at each call: without it programs start, and
/// say nothing about GPUs. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::core {

struct GpuState {
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-…"
  std::optional<std::uint32_t>
      load{};                      // percent of the last moments in which a kernel ran; none: the device does not say
  std::uint64_t memory_bytes = 0;  // 0: the device does not say
  std::uint64_t memory_used_bytes = 0;
  bool operator==(const GpuState&) const = default;
};

/// Errc::config: the library is not there, or of another kind; Errc::io: a call failed. Both with the reason, in one line. Takes milliseconds.
[[nodiscard]] Result<std::vector<GpuState>> gpu_states(const std::string& library = "libnvidia-ml.so.1");

/// "34 % busy, 12.5 of 140.0 GiB in use".
[[nodiscard]] std::string to_text(const GpuState& state);

}  // namespace troupe::core
