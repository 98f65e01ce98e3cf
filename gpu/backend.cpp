#include "gpu/backend.hpp"

#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include "gpu/device/host_device.hpp"
#include "gpu/kernels_of.hpp"
#include "gpu/replica.hpp"
#include "gpu/thread_streams.hpp"
#include "nn/program/options.hpp"

namespace troupe::gpu {
namespace {

class GpuBackend final : public nn::Backend {
 public:
  GpuBackend(std::vector<std::shared_ptr<Device>> devices, std::string name, core::MemorySpace arenas)
      : name_(std::move(name)), arenas_(arenas) {
    if (devices.empty()) throw std::invalid_argument("a gpu backend without devices");
    for (auto& device : devices) seats_.push_back(std::make_unique<Seat>(std::move(device)));
    if (arenas == core::MemorySpace::device)
      kernels_ = kernels_of(*seats_.front()->device, seats_.front()->streams);
    else if (arenas != core::MemorySpace::host)
      throw std::invalid_argument("arenas of a gpu backend are host or device memory");
  }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] nn::Capabilities capabilities() const override {
    return {{nn::Precision::fp32, nn::Precision::bf16, nn::Precision::tf32, nn::Precision::fp16},
            arenas_,
            static_cast<int>(seats_.size())};
  }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override {
    return kernels_ ? *kernels_ : core::host_kernels();
  }

  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                                   const nn::CompileOptions& options) override {
    const auto refuse = [&](const std::string& why) { return nn::refuse(graph, "the gpu", why); };
    if (options.device < 0 || options.device >= static_cast<int>(seats_.size()))
      return refuse(fmt::format("there is no device {}: the last one is {}", options.device, seats_.size() - 1));
    if (options.parallel == nn::Parallel::neurons)
      return refuse("its layers cannot be spread over ranks: use model.parallel = \"none\"");
    if (auto checked = nn::check_options(graph, options, "the gpu"); !checked)
      return tl::unexpected(std::move(checked.error()));
    Seat& seat = *seats_[static_cast<std::size_t>(options.device)];
    auto stream = seat.streams.mine();
    if (!stream) return tl::unexpected(std::move(stream.error()));
    auto compiled = gpu::compile(*seat.device, graph, options, seat.cache ? &*seat.cache : nullptr);
    if (!compiled) return tl::unexpected(std::move(compiled.error()));
    auto replica = GpuReplica::make(*seat.device, std::move(*stream), graph, options, std::move(*compiled));
    if (!replica) return tl::unexpected(std::move(replica.error()));
    if (seat.cache) (void)seat.cache->save();  // without it the next start measures again, no more
    return std::unique_ptr<nn::Replica>(std::move(*replica));
  }

 private:
  /// A device with its streams, and the engines that were measured on it.
  struct Seat {
    explicit Seat(std::shared_ptr<Device> from) : device(std::move(from)), streams(*device) {
      if (device->is_measurable()) cache.emplace(EngineCache::user_folder(), device->info());
    }
    std::shared_ptr<Device> device;
    ThreadStreams streams;
    std::optional<EngineCache> cache;
  };

  std::string name_;
  core::MemorySpace arenas_;
  std::vector<std::unique_ptr<Seat>> seats_;
  std::unique_ptr<core::Kernels> kernels_;  // null: the host's
};

}  // namespace

std::unique_ptr<nn::Backend> make_backend(std::vector<std::shared_ptr<Device>> devices, std::string name,
                                          core::MemorySpace arenas) {
  return std::make_unique<GpuBackend>(std::move(devices), std::move(name), arenas);
}

std::unique_ptr<nn::Backend> make_backend_on_host() {
  return make_backend({std::make_shared<HostDevice>()}, "gpu_on_host");
}

}  // namespace troupe::gpu
