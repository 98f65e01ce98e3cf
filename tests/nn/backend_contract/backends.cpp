#include "tests/nn/backend_contract/backends.hpp"

#include <map>
#include <ostream>

#include "cpu/backend.hpp"
#include "gpu/backend.hpp"

namespace troupe::nn::testing {

namespace {

/// Another backend whose replicas all have canonical arenas.
class Canonical final : public Backend {
 public:
  explicit Canonical(std::unique_ptr<Backend> of) : of_(std::move(of)) {}
  [[nodiscard]] std::string name() const override { return of_->name() + "_canonical"; }
  [[nodiscard]] Capabilities capabilities() const override { return of_->capabilities(); }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return of_->kernels(); }
  [[nodiscard]] core::Result<std::unique_ptr<Replica>> compile(const Graph& graph,
                                                               const CompileOptions& options) override {
    CompileOptions canonical = options;
    canonical.canonical_arenas = true;
    return of_->compile(graph, canonical);
  }

 private:
  std::unique_ptr<Backend> of_;
};

std::unique_ptr<Backend> make_canonical_cpu() { return std::make_unique<Canonical>(cpu::make_backend()); }
std::unique_ptr<Backend> make_canonical_gpu() { return std::make_unique<Canonical>(gpu::make_backend_on_host()); }

}  // namespace

const std::vector<BackendKind>& backends() {
  static const std::vector<BackendKind> all{
      {"cpu", cpu::make_backend},
      {"gpu_on_host", gpu::make_backend_on_host},
      {"cpu_canonical", make_canonical_cpu},
      {"gpu_on_host_canonical", make_canonical_gpu},
  };
  return all;
}

Backend& backend_of(const BackendKind& kind) {
  static std::map<std::string, std::unique_ptr<Backend>> made;
  auto& backend = made[kind.name];
  if (!backend) backend = kind.make();
  return *backend;
}

void PrintTo(const BackendKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace troupe::nn::testing
