#include "gpu/backend.hpp"

#include <mutex>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "gpu/device/host_device.hpp"
#include "gpu/kernels_of.hpp"
#include "gpu/nccl/reduction.hpp"
#include "gpu/replica.hpp"
#include "gpu/stream_checksum.hpp"
#include "gpu/stream_copier.hpp"
#include "gpu/thread_streams.hpp"
#include "nn/program/options.hpp"

namespace troupe::gpu {
namespace {

/// The longest message whose checksum needs no further memory: exchangers send pieces, which are shorter.
constexpr std::size_t kMostSummed = std::size_t{16} << 20;

class GpuBackend final : public nn::Backend {
 public:
  GpuBackend(std::vector<std::shared_ptr<Device>> devices, std::string name, core::MemorySpace arenas)
      : name_(std::move(name)), arenas_(arenas) {
    if (devices.empty()) throw std::invalid_argument("a gpu backend without devices");
    for (auto& device : devices) seats_.push_back(std::make_unique<Seat>(std::move(device)));
    if (arenas != core::MemorySpace::device && arenas != core::MemorySpace::host)
      throw std::invalid_argument("arenas of a gpu backend are host or device memory");
  }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] nn::Capabilities capabilities() const override {
    auto all = capabilities_on_devices(seats_.size(), seats_.front()->device->pinned());
    all.arena_space = arenas_;
    all.shares_memory = all.shares_memory || arenas_ == core::MemorySpace::host;
    return all;
  }
  [[nodiscard]] core::Allocator& arenas(const nn::CompileOptions& options) noexcept override {
    if (arenas_ != core::MemorySpace::device) return host_;
    return seats_[static_cast<std::size_t>(options.device)]->device->memory();
  }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override {
    return arenas_ == core::MemorySpace::device ? *seats_.front()->kernels : core::host_kernels();
  }
  [[nodiscard]] const core::Kernels& kernels_for(const core::Allocator& memory) const noexcept override {
    for (const auto& seat : seats_)
      if (&memory == &seat->device->memory()) return *seat->kernels;
    return core::host_kernels();
  }

  [[nodiscard]] std::string device_model(const nn::CompileOptions& options) override {
    return seats_.at(static_cast<std::size_t>(options.device))->device->info().name;
  }

  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceCopier>> copier_for(const core::Allocator& memory) override {
    for (const auto& seat : seats_)
      if (&memory == &seat->device->memory()) return std::make_shared<StreamCopier>(seat->device);
    return std::shared_ptr<core::DeviceCopier>();
  }

  [[nodiscard]] std::shared_ptr<core::DeviceChecksum> checksum_for(const core::Allocator& memory) override {
    for (const auto& seat : seats_)
      if (&memory == &seat->device->memory()) {
        auto made = std::make_shared<StreamChecksum>(seat->device);
        if (made->prepare(kMostSummed)) return made;
      }
    return nullptr;
  }

  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceSharing>> sharing_for(const core::Allocator& memory) override {
    for (const auto& seat : seats_)
      if (&memory == &seat->device->memory()) return seat->device->sharing();
    return Backend::sharing_for(memory);
  }

  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceReduction>> reduction_for(
      const core::Allocator& memory) override {
    for (const auto& seat : seats_)
      if (&memory == &seat->device->memory())
        return NcclLibrary::open().map([&](auto library) -> std::shared_ptr<core::DeviceReduction> {
          return std::make_shared<NcclReduction>(seat->device, std::move(library));
        });
    return Backend::reduction_for(memory);
  }

  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                                   const nn::CompileOptions& options) override {
    const auto refuse = [&](const std::string& why) { return nn::refuse(graph, "the gpu", why); };
    if (options.device < 0 || options.device >= static_cast<int>(seats_.size()))
      return refuse(fmt::format("there is no device {}: the last one is {}", options.device, seats_.size() - 1));
    if (options.parallel == nn::Parallel::neurons)
      return refuse("its layers cannot be spread over ranks: use model.parallel = \"none\"");
    if (options.bytes && options.bytes->source.channels != graph.input().channels)
      return refuse(fmt::format("images of {} channels for a model of {}", options.bytes->source.channels,
                                graph.input().channels));
    if (auto checked = nn::check_options(graph, options, "the gpu"); !checked)
      return tl::unexpected(std::move(checked.error()));
    Seat& seat = *seats_[static_cast<std::size_t>(options.device)];
    const std::lock_guard lock(seat.compiling);
    auto compiled = gpu::compile(*seat.device, graph, options, seat.cache ? &*seat.cache : nullptr);
    if (!compiled) return tl::unexpected(std::move(compiled.error()));
    const bool on_device = options.arenas->space() == core::MemorySpace::device;
    auto replica = GpuReplica::make(*seat.device, on_device ? *seat.kernels : core::host_kernels(), seat.streams, graph,
                                    options, std::move(*compiled));
    if (!replica) return tl::unexpected(std::move(replica.error()));
    if (seat.cache) (void)seat.cache->save();  // without it the next start measures again, no more
    return std::unique_ptr<nn::Replica>(std::move(*replica));
  }

 private:
  /// A device with its streams, and the engines that were measured on it.
  struct Seat {
    explicit Seat(std::shared_ptr<Device> from)
        : device(std::move(from)), streams(*device), kernels(kernels_of(*device, streams)) {
      if (device->is_measurable()) cache.emplace(EngineCache::user_folder(), device->info());
    }
    std::shared_ptr<Device> device;
    ThreadStreams streams;
    std::unique_ptr<core::Kernels> kernels;  // for its memory
    std::optional<EngineCache> cache;
    std::mutex compiling;  // the first worker measures engines alone; those that begin with it find them in the cache
  };

  std::string name_;
  core::MemorySpace arenas_;
  std::vector<std::unique_ptr<Seat>> seats_;
  core::HostAllocator host_;
};

}  // namespace

nn::Capabilities capabilities_on_devices(std::size_t devices, core::Allocator& batches) {
  return {.precisions = {nn::Precision::fp32, nn::Precision::bf16, nn::Precision::tf32, nn::Precision::fp16},
          .arena_space = core::MemorySpace::device,
          .devices = static_cast<int>(devices),
          .shares_memory = devices == 1,
          .takes_bytes = true,
          .batches = &batches};
}

std::unique_ptr<nn::Backend> make_backend(std::vector<std::shared_ptr<Device>> devices, std::string name,
                                          core::MemorySpace arenas) {
  return std::make_unique<GpuBackend>(std::move(devices), std::move(name), arenas);
}

std::unique_ptr<nn::Backend> make_backend_on_host() {
  return make_backend({std::make_shared<HostDevice>()}, "gpu_on_host");
}

std::unique_ptr<nn::Backend> make_backend_on_host_arenas() {
  auto device = std::make_shared<HostDevice>(HostDeviceOptions{.hides_memory = true});
  return make_backend({std::move(device)}, "gpu_on_host_arenas", core::MemorySpace::device);
}

}  // namespace troupe::gpu
