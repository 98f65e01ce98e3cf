#include "tests/nn/backend_contract/backends.hpp"

#include <map>
#include <ostream>

#include "cpu/backend.hpp"
#include "gpu/backend.hpp"
#include "gpu/device/load.hpp"
#include "tests/nn/backend_contract/programs.hpp"

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
  return gpu::make_backend({cuda_device().value()}, "cuda_arenas", core::MemorySpace::device);
}

/// Another backend whose replicas all have canonical arenas.
class Canonical final : public Backend {
 public:
  explicit Canonical(std::unique_ptr<Backend> of) : of_(std::move(of)) {}
  [[nodiscard]] std::string name() const override { return of_->name() + "_canonical"; }
  [[nodiscard]] Capabilities capabilities() const override { return of_->capabilities(); }
  [[nodiscard]] core::Allocator& arenas(const CompileOptions& options) noexcept override {
    return of_->arenas(options);
  }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return of_->kernels(); }
  [[nodiscard]] const core::Kernels& kernels_for(const core::Allocator& memory) const noexcept override {
    return of_->kernels_for(memory);
  }
  [[nodiscard]] core::Result<std::unique_ptr<Replica>> compile(const Graph& graph,
                                                               const CompileOptions& options) override {
    CompileOptions canonical = options;
    canonical.canonical_arenas = true;
    return of_->compile(graph, canonical);
  }

 private:
  std::unique_ptr<Backend> of_;
};

std::unique_ptr<Backend> make_numpy() { return make_program_backend("program_numpy", "numpy"); }
std::unique_ptr<Backend> make_torch() { return make_program_backend("program_torch", "torch"); }
std::unique_ptr<Backend> make_overlapping_torch() {
  return make_program_backend("program_torch_overlap", "torch", {"overlap"});
}
std::string absence_of_numpy() { return absence_of_program("numpy"); }
std::string absence_of_torch() { return absence_of_program("torch"); }

std::unique_ptr<Backend> make_canonical_cpu() { return std::make_unique<Canonical>(cpu::make_backend()); }
std::unique_ptr<Backend> make_canonical_gpu() { return std::make_unique<Canonical>(gpu::make_backend_on_host()); }

}  // namespace

const std::vector<BackendKind>& backends() {
  static const std::vector<BackendKind> all{
      {"cpu", cpu::make_backend},
      {"gpu_on_host", gpu::make_backend_on_host},
      {"gpu_on_host_arenas", gpu::make_backend_on_host_arenas},
      {"cpu_canonical", make_canonical_cpu},
      {"gpu_on_host_canonical", make_canonical_gpu},
      {"cuda", make_cuda, absence_of_cuda},
      {"cuda_arenas", make_cuda_arenas, absence_of_cuda},
  };
  return all;
}

const BackendKind& numpy_program() {
  static const BackendKind kind{"program_numpy", make_numpy, absence_of_numpy};
  return kind;
}

const BackendKind& torch_program() {
  static const BackendKind kind{"program_torch", make_torch, absence_of_torch};
  return kind;
}

const BackendKind& overlapping_torch_program() {
  static const BackendKind kind{"program_torch_overlap", make_overlapping_torch, absence_of_torch};
  return kind;
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

std::string name_of_backend(const ::testing::TestParamInfo<BackendKind>& info) { return info.param.name; }

void PrintTo(const BackendKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace troupe::nn::testing
