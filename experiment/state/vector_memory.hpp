/// In which memory members exchange vectors: that of their devices, or copies in host memory. Two decisions: one for the run, from its
/// configuration (all sites must cut and round vectors alike), and one for each process, from what it has. A site in host memory and one in
/// device memory exchange the same messages.
#pragma once

#include <memory>
#include <string>

#include "core/devices/device_checksum.hpp"
#include "core/devices/device_copier.hpp"
#include "core/devices/device_sharing.hpp"
#include "experiment/exchange_plan.hpp"
#include "experiment/settings.hpp"
#include "nn/backend.hpp"

namespace troupe::experiment {

/// Whether the members of a run over several sites exchange in device memory, as far as its configuration decides: ExchangePlan::on_devices.
struct DeviceExchange {
  bool possible = false;
  std::string why_not;  // one line, where some member computes on a GPU
};
[[nodiscard]] DeviceExchange device_exchange(const Settings& settings);

/// The memory of one site: of shards, and of what its workers lend.
struct VectorMemory {
  core::Allocator* memory = nullptr;
  std::shared_ptr<core::DeviceCopier>
      copier{};  // of device memory, for endpoints that cannot reach it; null: in place, or the host's
  std::shared_ptr<core::DeviceChecksum> checksum{};  // with `copier`, for endpoints that reach it
  std::string why_not{};  // one line: arenas are on a device, and vectors are exchanged through host memory
};

/// `arenas`: of the site's workers, or of the backend's first device where there are servers only; `host`: memory of the host.
[[nodiscard]] VectorMemory vector_memory(nn::Backend& backend, const ExchangePlan& plan, core::Allocator& arenas,
                                         core::Allocator& host);

/// Memory of a site's device that the processes of its host map, for the arenas of its workers; null: there is none, or no other site on the host.
struct MappableMemory {
  std::shared_ptr<core::DeviceSharing> sharing{};
  std::string why_not;  // one line, where there is another site, and the run exchanges in device memory
};
/// `memory`: what vector_memory() has given.
[[nodiscard]] MappableMemory mappable_memory(nn::Backend& backend, const Settings& settings, const ExchangePlan& plan,
                                             std::uint32_t site, const VectorMemory& memory);

/// The memory of a process that has all members itself, as a replay: device memory only if the recorded members exchanged in place.
[[nodiscard]] core::Allocator& vector_memory(nn::Backend& backend, const ExchangePlan& plan, core::Allocator& host);

/// For `troupe check`, one line: where members will exchange, in one process and over several. Empty where none computes on a GPU.
[[nodiscard]] std::string planned_exchange(const Settings& settings, const nn::Backend& backend);

/// For the user: "vectors are in device memory, and are exchanged there".
[[nodiscard]] std::string describe(const VectorMemory& memory);

}  // namespace troupe::experiment
