#include "cpu/backend.hpp"

#include <omp.h>

#include "cpu/neurons/replica.hpp"
#include "cpu/replica.hpp"

namespace troupe::cpu {
namespace {

class CpuBackend final : public nn::Backend {
 public:
  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] nn::Capabilities capabilities() const override {
    std::vector<nn::Precision> precisions{nn::Precision::fp32};
    if (computes_bf16()) precisions.push_back(nn::Precision::bf16);
    return {std::move(precisions), core::MemorySpace::host, 1};
  }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return core::host_kernels(); }

  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                                   const nn::CompileOptions& options) override {
    if (options.parallel == nn::Parallel::neurons) {
      if (auto checked = check_options(graph, options); !checked) return tl::unexpected(std::move(checked.error()));
      omp_set_num_threads(1);  // a rank is one thread
      return compile_neurons(graph, options);
    }
    omp_set_num_threads(std::max(options.threads, 1));  // oneDNN plans for the current number of threads
    auto compiled = cpu::compile(graph, options);
    if (!compiled) return tl::unexpected(std::move(compiled.error()));
    return std::make_unique<CpuReplica>(graph, options, std::move(*compiled));
  }
};

}  // namespace

std::unique_ptr<nn::Backend> make_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace troupe::cpu
