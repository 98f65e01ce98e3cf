#include "apps/backends.hpp"

#include <mutex>

#include <fmt/format.h>

#include "cpu/backend.hpp"
#include "gpu/backend.hpp"
#include "gpu/device/load.hpp"

namespace troupe::apps {
namespace {

core::Result<std::unique_ptr<nn::Backend>> make_cuda_backend() {
  static std::mutex one_at_a_time;  // the loader's rule
  const std::lock_guard lock(one_at_a_time);
  auto device = gpu::load_device(0);
  if (!device) return tl::unexpected(std::move(device.error()));
  return gpu::make_backend({std::move(*device)}, "gpu", core::MemorySpace::device);
}

}  // namespace

core::Result<std::unique_ptr<nn::Backend>> make_backend(std::string_view device) {
  if (device == "cpu") return cpu::make_backend();
  if (device != "cuda")
    return core::fail(core::Errc::config, fmt::format("device \"{}\": use \"cpu\" or \"cuda\"", device));
  auto backend = make_cuda_backend();
  if (backend) return backend;
  return core::fail(core::Errc::config,
                    fmt::format("device \"cuda\": {}; without it use \"cpu\"", backend.error().message));
}

}  // namespace troupe::apps
