/// A compiled model on a device (nn::Replica). Batches are host memory, or on their way (gpu/input_buffers.hpp); the arenas are what
/// CompileOptions::arenas is: device memory, or host memory that mirrors it (gpu/arenas.hpp). A step waits for the device once, at its end,
/// and with a callback once for each bucket.
///
/// Buckets during backward: with a callback backward is as many captured graphs as there are buckets, all launched at once, with an event
/// behind each. When bucket b's has happened its callback is called, while the device computes what follows. Kernels that the thread calls
/// in the callback, such as the check for numbers that are not finite, run on the replica's exchange stream: on the thread's own stream they
/// would queue behind the whole of backward. Without a callback backward is one graph. (One graph with nodes that record external events would
/// save a launch for each bucket; but a stream that waits for such an event waits for its latest record, and CUDA does not say that a launch
/// counts as one before the node has run. Launches by the host run ahead of the device: what they cost is the gap between two graphs.)
///
/// With device arenas apply() returns before the device is done: later calls of this thread, also to Backend::kernels(), are ordered behind it.
/// In fp16 a step is computed again with a smaller loss scale if its gradients are not finite
/// (gpu/loss_scale.hpp): buckets are therefore final at its end, all at once. An error of apply() is returned by the next step or evaluation.
/// Thread rule: as nn::Replica, only the thread that made it.
#pragma once

#include <optional>

#include "gpu/arenas.hpp"
#include "gpu/compile.hpp"
#include "gpu/input_buffers.hpp"
#include "gpu/loss_scale.hpp"
#include "gpu/program/sequence.hpp"
#include "gpu/staging.hpp"
#include "gpu/thread_streams.hpp"

namespace troupe::gpu {

class GpuReplica final : public nn::Replica {
 public:
  /// `kernels`: for the memory of options.arenas; on the device they run on `streams`. `device`, `kernels`, `streams` and `options.arenas`
  /// outlive the replica. Errors: those of memory, streams and events.
  [[nodiscard]] static core::Result<std::unique_ptr<GpuReplica>> make(Device& device, const core::Kernels& kernels,
                                                                      ThreadStreams& streams, const nn::Graph& graph,
                                                                      const nn::CompileOptions& options,
                                                                      Compiled compiled);
  GpuReplica(const GpuReplica&) = delete;
  GpuReplica& operator=(const GpuReplica&) = delete;
  ~GpuReplica() override;

  [[nodiscard]] const nn::Graph& graph() const noexcept override { return graph_; }
  [[nodiscard]] std::int64_t batch() const noexcept override { return batch_; }
  [[nodiscard]] const std::shared_ptr<const nn::Layout>& layout() const noexcept override { return compiled_.layout; }

  [[nodiscard]] core::Span parameters() noexcept override { return arenas_->parameters(); }
  [[nodiscard]] core::Span gradients() noexcept override { return arenas_->gradients(); }
  [[nodiscard]] core::Span statistics() noexcept override { return arenas_->statistics(); }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return kernels_; }
  void parameters_written() noexcept override;
  [[nodiscard]] std::uint64_t parameters_version() const noexcept override { return version_; }
  [[nodiscard]] const std::vector<nn::Bucket>& buckets() const noexcept override { return compiled_.buckets; }

  [[nodiscard]] core::Result<nn::StepResult> step(const nn::Batch& batch,
                                                  const std::function<void(int)>& on_bucket_ready) override;
  [[nodiscard]] const nn::BytePreparation* bytes() const noexcept override { return bytes_ ? &*bytes_ : nullptr; }
  void prefetch(const nn::Batch& batch) override { inputs_->prefetch(batch); }
  void discard(const nn::Batch& batch) override { inputs_->discard(batch); }
  [[nodiscard]] std::uint64_t state_of_steps() const noexcept override { return scale_ ? scale_->state() : 0; }
  void set_state_of_steps(std::uint64_t state) noexcept override;
  void apply(const core::OptimizerStep& step, core::OptimizerState state) override;
  [[nodiscard]] core::Result<nn::StepResult> evaluate(const nn::Batch& batch) override;
  /// Copied from the device by the first call after a step.
  [[nodiscard]] std::span<const float> outputs() const noexcept override;

  [[nodiscard]] const nn::Plan& plan() const noexcept override { return compiled_.plan; }
  [[nodiscard]] std::size_t workspace_bytes() const noexcept override;

  /// For tests: the operations, and whether steps are launched as one captured graph.
  [[nodiscard]] const Program& program() const noexcept { return compiled_.program; }
  [[nodiscard]] bool is_captured() const noexcept { return forward_.is_captured() && backward_.is_captured(); }

 private:
  GpuReplica(Device& device, const core::Kernels& kernels, ThreadStreams& streams, std::shared_ptr<Stream> compute,
             const nn::Graph& graph, const nn::CompileOptions& options, Compiled compiled);
  [[nodiscard]] core::Result<void> prepare(const nn::CompileOptions& options);
  /// Checks the batch, brings it and the parameters to the device, and enqueues forward with the losses.
  [[nodiscard]] core::Result<void> enqueue_forward(const nn::Batch& batch, std::int64_t samples, bool training);
  [[nodiscard]] core::Result<void> enqueue_buckets(const std::function<void(int)>& on_bucket_ready);
  /// The step in fp16: backward, as often as needed, then the buckets.
  [[nodiscard]] core::Result<nn::StepResult> finish_scaled(const nn::Batch& batch,
                                                           const std::function<void(int)>& on_bucket_ready);
  /// The scale of now, which the batch on its way did not know.
  [[nodiscard]] core::Result<void> tell_scale();
  [[nodiscard]] core::Result<void> unscale();
  [[nodiscard]] core::Result<nn::StepResult> finish_step(const std::function<void(int)>& on_bucket_ready);
  /// Gives out the buckets whose events are recorded in bucket_done_.
  [[nodiscard]] core::Result<void> give_buckets(const std::function<void(int)>& on_bucket_ready);
  /// Waits for the device and reads the losses.
  [[nodiscard]] core::Result<nn::StepResult> finish(std::int64_t samples, bool training);
  [[nodiscard]] core::Result<void> update(const core::OptimizerStep& step, core::OptimizerState state);

  Device& device_;
  const core::Kernels& kernels_;
  nn::Graph graph_;
  std::optional<nn::BytePreparation> bytes_;
  std::int64_t batch_;
  Compiled compiled_;
  ThreadStreams& streams_;
  std::shared_ptr<Stream> compute_;
  std::shared_ptr<Stream> exchange_;  // copies of buckets, and the kernels of callbacks
  std::unique_ptr<Staging> staging_;
  std::optional<ReplicaArenas> arenas_;
  std::unique_ptr<Event> begun_;
  std::unique_ptr<Event> forward_done_;
  std::vector<std::unique_ptr<Event>> bucket_done_;
  std::unique_ptr<InputBuffers> inputs_;
  core::Buffer sums_;               // pinned: LossSums, and in fp16 whether the gradients are finite
  std::optional<LossScale> scale_;  // in fp16, of training
  core::Buffer scales_;             // pinned: it and its inverse
  mutable core::Buffer outputs_;    // pinned
  mutable bool outputs_are_here_ = false;
  Sequence evaluation_;
  Sequence forward_;
  Sequence backward_;
  std::vector<Sequence> bucket_parts_;  // of backward, one for each bucket, and what remains
  bool captures_ = true;
  bool is_busy_ = false;               // a pass has begun, and was not waited for
  std::optional<core::Error> failed_;  // of apply(), which cannot return it
  std::uint64_t version_ = 1;
  std::uint64_t refreshed_version_ = 0;  // the version from which the working copies were made
};

}  // namespace troupe::gpu
