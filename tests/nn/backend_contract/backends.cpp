#include "tests/nn/backend_contract/backends.hpp"

#include <map>
#include <ostream>

#include "cpu/backend.hpp"
#include "gpu/backend.hpp"
#include "gpu/device/load.hpp"

namespace troupe::nn::testing {

namespace {

/// The first NVIDIA GPU.
core::Result<std::shared_ptr<gpu::Device>>& cuda_device() {
  static auto device = gpu::load_device(0);
  return device;
}
std::string absence_of_cuda() { return cuda_device() ? "" : cuda_device().error().message; }
std::unique_ptr<Backend> make_cuda() { return gpu::make_backend({cuda_device().value()}, "cuda"); }
/// The same, with arenas in its memory.
std::unique_ptr<Backend> make_cuda_arenas() {
  return gpu::make_backend({cuda_device().value()}, "cuda", core::MemorySpace::device);
}

}  // namespace

const std::vector<BackendKind>& backends() {
  static const std::vector<BackendKind> all{
      {"cpu", cpu::make_backend},
      {"gpu_on_host", gpu::make_backend_on_host},
      {"gpu_on_host_arenas", gpu::make_backend_on_host_arenas},
      {"cuda", make_cuda, absence_of_cuda},
      {"cuda_arenas", make_cuda_arenas, absence_of_cuda},
  };
  return all;
}

void skip_where_absent(const BackendKind& kind) {
  if (const auto why = kind.absence ? kind.absence() : std::string(); !why.empty()) GTEST_SKIP() << why;
}

Backend& backend_of(const BackendKind& kind) {
  static std::map<std::string, std::unique_ptr<Backend>> made;
  auto& backend = made[kind.name];
  if (!backend) backend = kind.make();
  return *backend;
}

void PrintTo(const BackendKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace troupe::nn::testing
