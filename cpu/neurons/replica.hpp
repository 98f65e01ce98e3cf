/// A fully connected model whose neurons are spread over ranks (nn::Replica), after the Blue Gene program (Horak, Elliott & Showers 2017),
/// batched and with one allgather and one reduce-scatter for each layer.
///
/// A rank is a thread of this process. It owns a slice of every linear layer's neurons, so rows of its weight and entries of its bias, which
/// it reads in the replica's one arena of parameters; it writes their gradients into the one arena of gradients. Layouts, checkpoints,
/// optimizers and exchanges are therefore those of any replica. Activations and errors are messages between the ranks' endpoints:
///   forward    each rank computes its neurons for the whole batch; allgather of the activations
///   backward   each rank computes its rows' gradients, and what its neurons contribute to the error of the layer before; reduce-scatter
///              of the contributions. With CompileOptions::overlap the weight gradient is computed meanwhile.
/// The loss is computed by every rank, from the same outputs.
///
/// Same ranks, same plan, same inputs: the same bits, with and without overlap. Another number of ranks sums errors in another order.
/// Bytes that a rank of R sends in a step, for a layer of n outputs: forward (R − 1) / R · 4 n batch, backward as many, but none for the last
/// layer. A step allocates the collectives' small tables.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/neurons/communicator.hpp"
#include "cpu/neurons/rank_program.hpp"
#include "cpu/neurons/split.hpp"
#include "cpu/neurons/team.hpp"
#include "nn/backend.hpp"

namespace troupe::cpu {

/// What a NeuronParallelReplica owns.
struct CompiledRanks {
  std::shared_ptr<const nn::Layout> layout;
  core::Buffer parameters;
  core::Buffer gradients;  // empty if not training
  std::vector<nn::Bucket> buckets;
  std::vector<int> last_nodes;                            // of each bucket: the graph's node that finishes it
  std::shared_ptr<const std::vector<SplitLayer>> layers;  // the programs refer to it
  std::vector<std::unique_ptr<RankProgram>> programs;     // by rank
  std::vector<std::unique_ptr<Communicator>> communicators;
  nn::Plan plan;
};

/// `options.threads` is the number of ranks. REQUIRES check_options(). Errc::config: a layer that cannot be split, or an option that is
/// not supported; Errc::out_of_memory; Errc::io: no threads or file descriptors left.
[[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile_neurons(const nn::Graph& graph,
                                                                         const nn::CompileOptions& options);

class NeuronParallelReplica final : public nn::Replica {
 public:
  /// Throws std::system_error when there are no threads left.
  NeuronParallelReplica(const nn::Graph& graph, const nn::CompileOptions& options, CompiledRanks compiled);

  [[nodiscard]] const nn::Graph& graph() const noexcept override { return graph_; }
  [[nodiscard]] std::int64_t batch() const noexcept override { return batch_; }
  [[nodiscard]] const std::shared_ptr<const nn::Layout>& layout() const noexcept override { return compiled_.layout; }
  [[nodiscard]] core::Span parameters() noexcept override { return compiled_.parameters.view(); }
  [[nodiscard]] core::Span gradients() noexcept override { return compiled_.gradients.view(); }
  [[nodiscard]] core::Span statistics() noexcept override { return {}; }
  void parameters_written() noexcept override { ++version_; }
  [[nodiscard]] std::uint64_t parameters_version() const noexcept override { return version_; }
  [[nodiscard]] const std::vector<nn::Bucket>& buckets() const noexcept override { return compiled_.buckets; }

  /// Errc::timeout, Errc::peer_lost: a rank could not go on; from then on every call fails.
  [[nodiscard]] core::Result<nn::StepResult> step(const nn::Batch& batch,
                                                  const std::function<void(int)>& on_bucket_ready) override;
  void apply(const core::OptimizerStep& step, core::OptimizerState state) override;
  [[nodiscard]] core::Result<nn::StepResult> evaluate(const nn::Batch& batch) override;
  [[nodiscard]] std::span<const float> outputs() const noexcept override {
    return compiled_.programs.front()->outputs();
  }
  [[nodiscard]] const nn::Plan& plan() const noexcept override { return compiled_.plan; }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept override;

 private:
  struct Pass {
    const nn::Batch& batch;
    std::int64_t samples = 0;
    bool training = false;
    const std::function<void(int)>* on_bucket_ready = nullptr;
  };
  [[nodiscard]] core::Result<nn::StepResult> run(const Pass& pass);
  [[nodiscard]] core::Result<nn::StepResult> run_rank(std::size_t rank, const Pass& pass);
  void backward(std::size_t rank, const Pass& pass);
  /// Reports the buckets that all ranks have finished, and no rank had at the last call.
  void report_buckets(const Pass& pass);

  nn::Graph graph_;
  std::int64_t batch_;
  double label_smoothing_;
  bool overlap_;
  CompiledRanks compiled_;
  std::vector<core::Result<nn::StepResult>> results_;  // by rank
  std::vector<std::atomic<std::size_t>> finished_;     // by rank: layers whose gradients it has written in this step
  std::vector<std::size_t> needed_;                    // by bucket: layers that must be finished for it
  std::size_t reported_ = 0;                           // buckets, in this step
  std::optional<core::Error> broken_;
  std::uint64_t version_ = 1;
  Team team_;  // last: its threads end before what they use
};

}  // namespace troupe::cpu
