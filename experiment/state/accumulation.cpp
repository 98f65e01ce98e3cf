#include "experiment/state/accumulation.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "experiment/reports.hpp"

namespace troupe::experiment {
namespace {

class AccumulatingReplica final : public nn::Replica {
 public:
  AccumulatingReplica(std::unique_ptr<nn::Replica> part, std::int64_t parts, core::Buffer sum)
      : sum_(std::move(sum)), part_(std::move(part)), parts_(parts), kernels_(part_->kernels()) {}

  [[nodiscard]] const nn::Graph& graph() const noexcept override { return part_->graph(); }
  [[nodiscard]] std::int64_t batch() const noexcept override { return parts_ * part_->batch(); }
  [[nodiscard]] const std::shared_ptr<const nn::Layout>& layout() const noexcept override { return part_->layout(); }
  [[nodiscard]] core::Span parameters() noexcept override { return part_->parameters(); }
  [[nodiscard]] core::Span gradients() noexcept override { return part_->gradients(); }
  [[nodiscard]] core::Span statistics() noexcept override { return part_->statistics(); }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return kernels_; }
  void parameters_written() noexcept override { part_->parameters_written(); }
  [[nodiscard]] std::uint64_t parameters_version() const noexcept override { return part_->parameters_version(); }
  [[nodiscard]] const std::vector<nn::Bucket>& buckets() const noexcept override { return part_->buckets(); }
  void apply(const core::OptimizerStep& step, core::OptimizerState state) override { part_->apply(step, state); }
  [[nodiscard]] std::uint64_t state_of_steps() const noexcept override { return part_->state_of_steps(); }
  void set_state_of_steps(std::uint64_t state) noexcept override { part_->set_state_of_steps(state); }
  [[nodiscard]] std::span<const float> outputs() const noexcept override { return outputs_; }
  [[nodiscard]] const nn::BytePreparation* bytes() const noexcept override { return part_->bytes(); }
  [[nodiscard]] const nn::Plan& plan() const noexcept override { return part_->plan(); }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept override {
    return part_->workspace_bytes() + sum_.size() * sizeof(float);
  }

  [[nodiscard]] core::Result<nn::StepResult> step(const nn::Batch& batch,
                                                  const std::function<void(int)>& on_bucket_ready) override {
    const auto complete = [&](int bucket) {
      const auto& range = buckets()[static_cast<std::size_t>(bucket)];
      const auto gradient = gradients().subspan(range.offset, range.count);
      kernels_.axpy(gradient, 1, sum_.view().subspan(range.offset, range.count));
      kernels_.scale(gradient, 1 / static_cast<float>(parts_));
      if (on_bucket_ready) on_bucket_ready(bucket);
    };
    return over_parts(batch, true, [&](std::int64_t k, const nn::Batch& part) {
      if (k + 1 == parts_) return part_->step(part, complete);
      auto result = part_->step(part, {});
      if (k == 0)
        kernels_.copy(sum_.view(), gradients());
      else
        kernels_.axpy(sum_.view(), 1, gradients());
      return result;
    });
  }

  [[nodiscard]] core::Result<nn::StepResult> evaluate(const nn::Batch& batch) override {
    return over_parts(batch, false, [&](std::int64_t, const nn::Batch& part) { return part_->evaluate(part); });
  }

 private:
  [[nodiscard]] nn::Batch part_of(const nn::Batch& batch, std::int64_t k) const {
    const auto first = k * part_->batch();
    const auto from = static_cast<std::size_t>(first), samples = static_cast<std::size_t>(part_->batch());
    const auto pixels = batch.images.size() / static_cast<std::size_t>(parts_);
    const auto bytes = batch.bytes.size() / static_cast<std::size_t>(parts_);
    nn::Batch part = batch;
    part.images = batch.images.subspan(static_cast<std::size_t>(k) * pixels, pixels);
    part.labels = batch.labels.subspan(from);
    part.count = std::clamp<std::int64_t>(batch.count - first, 0, part_->batch());
    part.first = batch.first + first;
    part.bytes = batch.bytes.subspan(static_cast<std::size_t>(k) * bytes, bytes);
    if (!batch.cuts.empty()) part.cuts = batch.cuts.subspan(from, samples);
    return part;
  }

  /// `ahead`: the next part comes to the device while one is computed.
  template <class Compute>
  core::Result<nn::StepResult> over_parts(const nn::Batch& batch, bool ahead, const Compute& compute) {
    const auto samples = part_->batch();
    const auto pixels = static_cast<std::size_t>(samples * graph().input().size());
    const auto parts = static_cast<std::size_t>(parts_);
    if (batch.bytes.empty()
            ? batch.images.size() != pixels * parts
            : batch.bytes.size() % parts != 0 || batch.cuts.size() != parts * static_cast<std::size_t>(samples))
      throw std::invalid_argument(
          fmt::format("a batch of {} floats, {} bytes and {} cuts for {} micro-batches of {} floats",
                      batch.images.size(), batch.bytes.size(), batch.cuts.size(), parts_, pixels));
    outputs_.clear();
    nn::StepResult sum;
    double loss = 0;
    for (std::int64_t k = 0; k < parts_; ++k) {
      const nn::Batch now = part_of(batch, k);
      if (k + 1 < parts_ && ahead) {
        part_->prefetch(now);
        part_->prefetch(part_of(batch, k + 1));
      }
      const auto result = compute(k, now);
      if (!result) {
        if (k + 1 < parts_) part_->discard(part_of(batch, k + 1));
        return result;
      }
      loss += result->loss * static_cast<double>(result->samples);
      add_hits(result->top1, sum.top1);
      add_hits(result->top5, sum.top5);
      sum.samples += result->samples;
      sum.loss_scale = result->loss_scale;
      sum.forward_s += result->forward_s;
      sum.backward_s += result->backward_s;
      outputs_.insert(outputs_.end(), part_->outputs().begin(), part_->outputs().end());
    }
    if (sum.samples > 0) sum.loss = loss / static_cast<double>(sum.samples);
    return sum;
  }

  core::Buffer sum_;  // of the gradients of all micro-batches but the last; freed when the part has ended its work
  std::unique_ptr<nn::Replica> part_;
  std::int64_t parts_;
  const core::Kernels& kernels_;
  std::vector<float> outputs_;
};

}  // namespace

core::Result<std::unique_ptr<nn::Replica>> compile_worker(nn::Backend& backend, const nn::Graph& graph,
                                                          const nn::CompileOptions& options,
                                                          std::int64_t micro_batches) {
  if (micro_batches == 1) return backend.compile(graph, options);
  if (micro_batches < 1 || options.batch % micro_batches != 0)
    return core::fail(core::Errc::config,
                      fmt::format("a batch of {} has no {} equal parts", options.batch, micro_batches));
  auto part = options;
  part.batch = options.batch / micro_batches;
  auto replica = backend.compile(graph, part);
  if (!replica) return replica;
  auto sum = core::Buffer::allocate(*options.arenas, (*replica)->parameters().size(), "the sum of gradients");
  if (!sum) return tl::unexpected(std::move(sum.error()));
  return std::make_unique<AccumulatingReplica>(std::move(*replica), micro_batches, std::move(*sum));
}

}  // namespace troupe::experiment
