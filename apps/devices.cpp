#include "apps/devices.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cpu/backend.hpp"
#include "gpu/backend.hpp"
#include "gpu/device/host_device.hpp"
#include "gpu/device/load.hpp"
#include "transport/device/device_copier.hpp"

namespace troupe::apps {
namespace {

using nn::DeviceKind;
using nn::DeviceName;

/// A device of its own for each backend: its streams, its kernels and its engines are apart from those of others.
struct OpenDevice {
  std::shared_ptr<gpu::Device> device;  // null: the CPU
  std::unique_ptr<nn::Backend> backend;
};

core::Result<OpenDevice> open_device(DeviceKind kind, int ordinal) {
  if (kind == DeviceKind::cpu) return OpenDevice{nullptr, cpu::make_backend()};
  std::shared_ptr<gpu::Device> device;
  if (kind == DeviceKind::cuda_on_host) {
    // Its memory is hidden, as a device's: what reads it without a copy dies.
    device = std::make_shared<gpu::HostDevice>(gpu::HostDeviceOptions{.hides_memory = true});
  } else {
    auto loaded = gpu::load_device(ordinal);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    device = std::move(*loaded);
  }
  auto backend = gpu::make_backend({device}, "gpu", core::MemorySpace::device);
  return OpenDevice{std::move(device), std::move(backend)};
}

/// Why this machine does not have the GPU; empty: it has.
std::string why_missing(const nn::DeviceName& device, const gpu::DeviceSurvey& survey) {
  if (!survey.built) return survey.no_module;
  if (survey.libraries.empty()) return survey.no_libraries;
  if (survey.devices.empty()) return "CUDA finds no device: " + survey.no_devices;
  const auto count = static_cast<int>(survey.devices.size());
  if (device.ordinal && *device.ordinal >= count)
    return fmt::format("there is no CUDA device {}: this machine has {}", *device.ordinal, count);
  return {};
}

/// Page-locked memory of the first device that is in use when some is needed.
class FirstPinned final : public core::Allocator {
 public:
  /// `find` opens a device if none is open.
  explicit FirstPinned(std::function<core::Result<core::Allocator*>()> find) : find_(std::move(find)) {}
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::host_pinned; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override {
    core::Allocator* memory = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (memory_ == nullptr) {
        auto found = find_();
        if (!found) return tl::unexpected(std::move(found.error()));
        memory_ = *found;
      }
      memory = memory_;
    }
    return memory->allocate(bytes);
  }
  void deallocate(void* memory, std::size_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    memory_->deallocate(memory, bytes);
  }

 private:
  std::function<core::Result<core::Allocator*>()> find_;
  std::mutex mutex_;
  core::Allocator* memory_ = nullptr;
};

class DevicesBackend final : public nn::Backend {
 public:
  DevicesBackend(std::vector<std::string> devices, std::size_t workers)
      : devices_(std::move(devices)), workers_(workers), pinned_([this] { return pinned_in_use(); }) {}

  core::Result<void> choose_first() {
    core::Error missing;  // of the first one
    for (const auto& name : devices_) {
      const auto device = look_for(name);
      if (device) {
        first_ = *device;
        break;
      }
      if (missing.message.empty()) missing = std::move(device.error());
    }
    if (!first_) return tl::unexpected(std::move(missing));
    if (first_->kind == DeviceKind::cpu) {
      const auto cpu = open("cpu", 0);
      if (!cpu) return tl::unexpected(cpu.error());
      capabilities_ = (*cpu)->capabilities();
    } else {
      capabilities_ = gpu::capabilities_on_devices(1, pinned_);
    }
    capabilities_.shares_memory = share_memory();
    // Page-locked memory is every GPU's, but the stand-in's is its own.
    if (devices_.size() > 1 && std::ranges::any_of(devices_, is_stand_in)) capabilities_.batches = nullptr;
    capabilities_.takes_bytes = capabilities_.takes_bytes && std::ranges::none_of(devices_, is_cpu);
    return {};
  }

  [[nodiscard]] std::string name() const override { return std::string(nn::backend_of(first_->kind)); }
  [[nodiscard]] nn::Capabilities capabilities() const override { return capabilities_; }
  [[nodiscard]] core::Allocator& arenas(const nn::CompileOptions& options) noexcept override {
    auto backend = open(name_in(options), options.local_rank);
    return backend ? (*backend)->arenas({}) : host_;  // compile() tells the error
  }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, opened] : opened_)
      if (opened.backend && key.first == first_->kind) return opened.backend->kernels();
    return core::host_kernels();  // there are no vectors yet
  }
  [[nodiscard]] const core::Kernels& kernels_for(const core::Allocator& memory) const noexcept override {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, opened] : opened_)
      if (opened.backend && &memory == &opened.backend->arenas()) return opened.backend->kernels();
    return core::host_kernels();
  }

  [[nodiscard]] std::string device_model(const nn::CompileOptions& options) override {
    auto backend = open(name_in(options), options.local_rank);
    return backend ? (*backend)->device_model({}) : std::string();
  }

  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceCopier>> copier_for(const core::Allocator& memory) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, opened] : opened_) {
      if (!opened.backend || &memory != &opened.backend->arenas()) continue;
      // CUDA's own waits without a core.
      return key.first == DeviceKind::cuda ? transport::make_device_copier(key.second)
                                           : opened.backend->copier_for(memory);
    }
    return std::shared_ptr<core::DeviceCopier>();
  }

  [[nodiscard]] std::shared_ptr<core::DeviceChecksum> checksum_for(const core::Allocator& memory) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, opened] : opened_)
      if (opened.backend && &memory == &opened.backend->arenas()) return opened.backend->checksum_for(memory);
    return Backend::checksum_for(memory);
  }

  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceSharing>> sharing_for(const core::Allocator& memory) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, opened] : opened_)
      if (opened.backend && &memory == &opened.backend->arenas()) return opened.backend->sharing_for(memory);
    return Backend::sharing_for(memory);
  }

  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceReduction>> reduction_for(
      const core::Allocator& memory) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, opened] : opened_)
      if (opened.backend && &memory == &opened.backend->arenas()) return opened.backend->reduction_for(memory);
    return Backend::reduction_for(memory);
  }

  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                                   const nn::CompileOptions& options) override {
    const auto& name = name_in(options);
    auto backend = open(name, options.local_rank);
    if (!backend) return tl::unexpected(std::move(backend.error()));
    nn::CompileOptions own = options;
    own.device_name.clear();
    std::optional<nn::Plan> part;
    if (options.plan != nullptr) {
      part =
          nn::part_for(*options.plan, nn::backend_of(nn::parse_device_name(name)->kind), (*backend)->device_model({}));
      own.plan = part ? &*part : nullptr;
      own.measure = options.measure && part;
    }
    return (*backend)->compile(graph, own);
  }

 private:
  static bool is_cpu(const std::string& name) {
    const auto device = nn::parse_device_name(name);
    return !device || device->kind == DeviceKind::cpu;
  }

  static bool is_stand_in(const std::string& name) {
    const auto device = nn::parse_device_name(name);
    return device && device->kind == DeviceKind::cuda_on_host;
  }

  [[nodiscard]] const std::string& name_in(const nn::CompileOptions& options) const noexcept {
    return options.device_name.empty() ? devices_.front() : options.device_name;
  }

  /// Whether all replicas of this process are on one device, or on devices of one kind that reach each other's memory.
  bool share_memory() {
    const std::lock_guard lock(mutex_);
    std::set<std::pair<DeviceKind, int>> used;
    for (const auto& name : devices_) {
      const auto device = nn::parse_device_name(name);
      if (!device) return false;
      const auto ranks = device->ordinal ? 1 : static_cast<int>(std::max<std::size_t>(workers_, 1));
      for (int rank = 0; rank < ranks; ++rank)
        used.emplace(device->kind, ordinal_of(*device, rank, devices_of(device->kind)));
    }
    if (used.size() == 1) return true;
    const auto kind = used.begin()->first;
    if (kind == DeviceKind::cpu || std::ranges::any_of(used, [&](const auto& key) { return key.first != kind; }))
      return false;
    if (kind == DeviceKind::cuda_on_host) return true;
    std::vector<int> ordinals;
    for (const auto& key : used) ordinals.push_back(key.second);
    return reach_each_other(survey().devices, ordinals);
  }

  /// The device that `name` means, if this machine has it.
  core::Result<nn::DeviceName> look_for(const std::string& name) {
    const auto device = nn::parse_device_name(name);
    if (!device) return core::fail(core::Errc::config, fmt::format("device \"{}\": use {}", name, nn::kDeviceNames));
    if (device->kind != DeviceKind::cuda) return *device;
    const std::lock_guard lock(mutex_);
    if (const auto why = why_missing(*device, survey()); !why.empty())
      return core::fail(core::Errc::config, fmt::format("device \"{}\": {}; without it use \"cpu\"", name, why));
    return *device;
  }

  /// Batches may be asked for before a replica is compiled.
  core::Result<core::Allocator*> pinned_in_use() {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [key, opened] : opened_)
        if (opened.device) return &opened.device->pinned();
    }
    const auto named = std::ranges::find_if_not(devices_, is_cpu);
    if (auto opened = open(*named, 0); !opened) return tl::unexpected(std::move(opened.error()));
    return pinned_in_use();
  }

  core::Result<nn::Backend*> open(const std::string& name, int local_rank) {
    const auto device = nn::parse_device_name(name);
    if (!device) return core::fail(core::Errc::config, fmt::format("device \"{}\": use {}", name, nn::kDeviceNames));
    const std::lock_guard lock(mutex_);  // the loader's rule, too: one thread at a time
    const std::pair key{device->kind, ordinal_of(*device, local_rank, devices_of(device->kind))};
    auto& opened = opened_[key];
    if (opened.backend) return opened.backend.get();
    auto made = open_device(key.first, key.second);
    if (!made)
      return core::fail(core::Errc::config,
                        fmt::format("device \"{}\": {}; without it use \"cpu\"", name, made.error().message));
    if (made->device)
      if (auto met = meet(*made->device, key.first); !met) return tl::unexpected(std::move(met.error()));
    opened = std::move(*made);
    return opened.backend.get();
  }

  /// `device` and those that are open reach each other's memory, where they can. REQUIRES the lock.
  core::Result<void> meet(gpu::Device& device, DeviceKind kind) {
    for (const auto& [key, opened] : opened_) {
      if (!opened.device || key.first != kind) continue;
      for (const auto& [from, to] : {std::pair{&device, opened.device.get()}, {opened.device.get(), &device}})
        if (auto reached = from->reach(*to); !reached) return tl::unexpected(std::move(reached.error()));
    }
    return {};
  }

  /// How many this host has; 1 if that is not known. REQUIRES the lock.
  int devices_of(DeviceKind kind) {
    if (kind != DeviceKind::cuda) return 1;
    return std::max(static_cast<int>(survey().devices.size()), 1);
  }

  /// Of this host. REQUIRES the lock.
  const gpu::DeviceSurvey& survey() {
    if (!survey_) survey_ = gpu::devices();
    return *survey_;
  }

  const std::vector<std::string> devices_;
  const std::size_t workers_;
  std::optional<nn::DeviceName> first_;  // of devices_, that this machine has
  nn::Capabilities capabilities_;
  core::HostAllocator host_;
  mutable std::mutex mutex_;
  std::map<std::pair<DeviceKind, int>, OpenDevice> opened_;
  std::optional<gpu::DeviceSurvey> survey_;
  FirstPinned pinned_;
};

}  // namespace

bool reach_each_other(const std::vector<gpu::FoundDevice>& devices, const std::vector<int>& ordinals) {
  const auto reaches = [&](int from, int to) {
    if (from == to) return true;
    if (from < 0 || from >= static_cast<int>(devices.size())) return false;
    const auto& peers = devices[static_cast<std::size_t>(from)].peers;
    return std::ranges::find(peers, to) != peers.end();
  };
  return std::ranges::all_of(
      ordinals, [&](int from) { return std::ranges::all_of(ordinals, [&](int to) { return reaches(from, to); }); });
}

int ordinal_of(const nn::DeviceName& device, int local_rank, int devices) {
  return device.ordinal.value_or(local_rank % devices);
}

core::Result<std::unique_ptr<nn::Backend>> make_devices_backend(const std::vector<std::string>& devices,
                                                                std::size_t workers) {
  auto backend = std::make_unique<DevicesBackend>(devices, workers);
  if (auto opened = backend->choose_first(); !opened) return tl::unexpected(std::move(opened.error()));
  return std::unique_ptr<nn::Backend>(std::move(backend));
}

}  // namespace troupe::apps
