/// A compiled model on the host (nn::Replica). Thread rule: as nn::Replica, only the thread that made it.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "cpu/breakdown.hpp"
#include "cpu/compile.hpp"

namespace troupe::cpu {

class CpuReplica final : public nn::Replica {
 public:
  CpuReplica(const nn::Graph& graph, const nn::CompileOptions& options, Compiled compiled);

  [[nodiscard]] const nn::Graph& graph() const noexcept override { return graph_; }
  [[nodiscard]] std::int64_t batch() const noexcept override { return batch_; }
  [[nodiscard]] const std::shared_ptr<const nn::Layout>& layout() const noexcept override { return compiled_.layout; }

  [[nodiscard]] core::Span parameters() noexcept override { return compiled_.parameters.view(); }
  [[nodiscard]] core::Span gradients() noexcept override { return compiled_.gradients.view(); }
  [[nodiscard]] core::Span statistics() noexcept override { return compiled_.statistics.view(); }
  void parameters_written() noexcept override { ++version_; }
  [[nodiscard]] std::uint64_t parameters_version() const noexcept override { return version_; }
  [[nodiscard]] const std::vector<nn::Bucket>& buckets() const noexcept override { return compiled_.buckets; }

  [[nodiscard]] core::Result<nn::StepResult> step(const nn::Batch& batch,
                                                  const std::function<void(int)>& on_bucket_ready) override;
  void apply(const core::OptimizerStep& step, core::OptimizerState state) override;
  [[nodiscard]] core::Result<nn::StepResult> evaluate(const nn::Batch& batch) override;
  [[nodiscard]] std::span<const float> outputs() const noexcept override;

  [[nodiscard]] const nn::Plan& plan() const noexcept override { return compiled_.plan; }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept override;

  /// From now on each operation is timed, which costs some 50 ns for each.
  void start_breakdown();
  /// The means of all steps since start_breakdown().
  [[nodiscard]] Breakdown breakdown() const;

 private:
  /// Seconds of each operation of one list, added up over the steps.
  using Seconds = std::vector<double>;
  struct Measured {
    std::array<Seconds, 3> operations;  // by StepPart
    double loss = 0;
    double optimizer = 0;
    int steps = 0;
  };
  [[nodiscard]] Seconds* seconds_of(StepPart part) noexcept {
    return measured_ ? &measured_->operations[static_cast<std::size_t>(part)] : nullptr;
  }
  [[nodiscard]] core::Result<nn::StepResult> run_forward(const nn::Batch& batch, std::int64_t samples,
                                                         const StepContext& context);
  /// The losses of the outputs, and their gradients.
  [[nodiscard]] core::Result<nn::StepResult> lose(const nn::Batch& batch, std::int64_t samples,
                                                  const StepContext& context);
  [[nodiscard]] std::int64_t classes() const noexcept { return graph_.output().size(); }

  nn::Graph graph_;
  std::int64_t batch_;
  int threads_;
  double label_smoothing_;
  Compiled compiled_;
  dnnl::stream stream_;
  std::optional<Measured> measured_;
  std::uint64_t version_ = 1;
  std::uint64_t refreshed_version_ = 0;  // the version from which the working copies were made
};

}  // namespace troupe::cpu
