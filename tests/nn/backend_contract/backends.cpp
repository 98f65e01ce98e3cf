#include "tests/nn/backend_contract/backends.hpp"

#include <map>
#include <ostream>

#include "cpu/backend.hpp"
#include "gpu/backend.hpp"
#include "gpu/device/load.hpp"

namespace troupe::nn::testing {

namespace {

using MadeBackend = core::Result<std::unique_ptr<Backend>>;

/// The first NVIDIA GPU.
MadeBackend make_cuda() {
  auto device = gpu::load_device(0);
  if (!device) return tl::unexpected(std::move(device.error()));
  return gpu::make_backend({std::move(*device)}, "cuda");
}

/// The same, with arenas in its memory.
MadeBackend make_cuda_arenas() {
  auto device = gpu::load_device(0);
  if (!device) return tl::unexpected(std::move(device.error()));
  return gpu::make_backend({std::move(*device)}, "cuda", core::MemorySpace::device);
}

const MadeBackend& made(const BackendKind& kind) {
  static std::map<std::string, MadeBackend> all;
  const auto found = all.find(kind.name);
  return found != all.end() ? found->second : all.emplace(kind.name, kind.make()).first->second;
}

}  // namespace

const std::vector<BackendKind>& backends() {
  static const std::vector<BackendKind> all{
      {"cpu", []() -> MadeBackend { return cpu::make_backend(); }},
      {"gpu_on_host", []() -> MadeBackend { return gpu::make_backend_on_host(); }},
      {"gpu_on_host_arenas", []() -> MadeBackend { return gpu::make_backend_on_host_arenas(); }},
      {"cuda", make_cuda},
      {"cuda_arenas", make_cuda_arenas},
  };
  return all;
}

std::string absence_of(const BackendKind& kind) {
  const auto& backend = made(kind);
  return backend ? "" : backend.error().message;
}

Backend& backend_of(const BackendKind& kind) { return *made(kind).value(); }

void PrintTo(const BackendKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace troupe::nn::testing
