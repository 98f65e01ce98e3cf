#include "apps/devices.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "cpu/backend.hpp"
#include "gpu/backend.hpp"
#include "gpu/device/host_device.hpp"
#include "gpu/device/load.hpp"

namespace troupe::apps {
namespace {

using nn::DeviceKind;
using nn::DeviceName;

/// A device of its own for each backend: its streams, its kernels and its engines are apart from those of others.
core::Result<std::unique_ptr<nn::Backend>> open_device(DeviceKind kind, int ordinal) {
  switch (kind) {
    case DeviceKind::cpu: return cpu::make_backend();
    case DeviceKind::cuda_on_host: return gpu::make_backend_on_host();
    case DeviceKind::cuda: break;
  }
  auto device = gpu::load_device(ordinal);
  if (!device) return tl::unexpected(std::move(device.error()));
  return gpu::make_backend({std::move(*device)}, "gpu");
}

class DevicesBackend final : public nn::Backend {
 public:
  explicit DevicesBackend(std::string first) : first_(std::move(first)) {}

  core::Result<void> open_first() {
    auto opened = open(first_, 0);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    name_ = (*opened)->name();
    capabilities_ = (*opened)->capabilities();
    capabilities_.devices = 1;
    return {};
  }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] nn::Capabilities capabilities() const override { return capabilities_; }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return core::host_kernels(); }

  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                                   const nn::CompileOptions& options) override {
    const auto& name = options.device_name.empty() ? first_ : options.device_name;
    auto backend = open(name, options.local_rank);
    if (!backend) return tl::unexpected(std::move(backend.error()));
    nn::CompileOptions own = options;
    own.device_name.clear();
    std::optional<nn::Plan> part;
    if (options.plan != nullptr) {
      part = nn::part_for(*options.plan, nn::backend_of(nn::parse_device_name(name)->kind));
      own.plan = part ? &*part : nullptr;
      own.measure = options.measure && part;
    }
    return (*backend)->compile(graph, own);
  }

 private:
  core::Result<nn::Backend*> open(const std::string& name, int local_rank) {
    const auto device = nn::parse_device_name(name);
    if (!device) return core::fail(core::Errc::config, fmt::format("device \"{}\": use {}", name, nn::kDeviceNames));
    const std::lock_guard lock(mutex_);  // the loader's rule, too: one thread at a time
    const std::pair key{device->kind, ordinal_of(*device, local_rank, devices_of(device->kind))};
    auto& backend = opened_[key];
    if (backend) return backend.get();
    auto made = open_device(key.first, key.second);
    if (!made)
      return core::fail(core::Errc::config,
                        fmt::format("device \"{}\": {}; without it use \"cpu\"", name, made.error().message));
    backend = std::move(*made);
    return backend.get();
  }

  /// How many this host has; 1 if that is not known. REQUIRES the lock.
  int devices_of(DeviceKind kind) {
    if (kind != DeviceKind::cuda) return 1;
    if (!gpus_) gpus_ = static_cast<int>(gpu::devices().devices.size());
    return std::max(*gpus_, 1);
  }

  std::string first_;
  std::string name_;
  nn::Capabilities capabilities_;
  std::mutex mutex_;
  std::map<std::pair<DeviceKind, int>, std::unique_ptr<nn::Backend>> opened_;
  std::optional<int> gpus_;  // of this host
};

}  // namespace

int ordinal_of(const nn::DeviceName& device, int local_rank, int devices) {
  return device.ordinal.value_or(local_rank % devices);
}

core::Result<std::unique_ptr<nn::Backend>> make_devices_backend(const std::string& first) {
  auto backend = std::make_unique<DevicesBackend>(first);
  if (auto opened = backend->open_first(); !opened) return tl::unexpected(std::move(opened.error()));
  return std::unique_ptr<nn::Backend>(std::move(backend));
}

}  // namespace troupe::apps
