#include "gpu/replica.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "core/kernels_check.hpp"
#include "nn/program/step_checks.hpp"

namespace troupe::gpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

std::size_t floats_for(std::size_t bytes) { return core::align_floats((bytes + sizeof(float) - 1) / sizeof(float)); }

/// Names what a stream is told in profiles.
class Range {
 public:
  Range(Stream& stream, const char* name) : stream_(stream) { stream_.push_range(name); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() { stream_.pop_range(); }

 private:
  Stream& stream_;
};

/// At the end of a pass, also one that an error or an exception leaves: nothing reads the batch any more.
class BatchInUse {
 public:
  BatchInUse(InputBuffers& inputs, const nn::Batch& batch) : inputs_(inputs), batch_(batch) {}
  BatchInUse(const BatchInUse&) = delete;
  BatchInUse& operator=(const BatchInUse&) = delete;
  ~BatchInUse() { inputs_.leave(batch_); }

 private:
  InputBuffers& inputs_;
  const nn::Batch& batch_;
};

template <class To, class Made>
core::Result<void> take(To& to, core::Result<Made> made) {
  if (!made) return tl::unexpected(std::move(made.error()));
  to = std::move(*made);
  return {};
}

core::Result<void> check_labels(std::span<const std::int32_t> labels, std::int64_t classes) {
  for (std::size_t row = 0; row < labels.size(); ++row)
    if (labels[row] < 0 || labels[row] >= classes)
      return core::fail(core::Errc::data,
                        fmt::format("sample {} of the batch has label {}, the model has {} classes (0 to {})", row,
                                    labels[row], classes, classes - 1));
  return {};
}

}  // namespace

GpuReplica::GpuReplica(Device& device, const core::Kernels& kernels, ThreadStreams& streams,
                       std::shared_ptr<Stream> compute, const nn::Graph& graph, const nn::CompileOptions& options,
                       Compiled compiled)
    : device_(device),
      kernels_(kernels),
      graph_(graph),
      bytes_(options.bytes ? std::optional(*options.bytes) : std::nullopt),
      batch_(options.batch),
      compiled_(std::move(compiled)),
      streams_(streams),
      compute_(std::move(compute)) {}

GpuReplica::~GpuReplica() {
  // Memory is freed only when nothing uses it any more; an error has been reported before.
  if (exchange_) (void)exchange_->synchronize();
  (void)compute_->synchronize();
}

core::Result<std::unique_ptr<GpuReplica>> GpuReplica::make(Device& device, const core::Kernels& kernels,
                                                           ThreadStreams& streams, const nn::Graph& graph,
                                                           const nn::CompileOptions& options, Compiled compiled) {
  auto compute = streams.mine();
  if (!compute) return tl::unexpected(std::move(compute.error()));
  std::unique_ptr<GpuReplica> replica(
      new GpuReplica(device, kernels, streams, std::move(*compute), graph, options, std::move(compiled)));
  if (auto prepared = replica->prepare(options); !prepared) return tl::unexpected(std::move(prepared.error()));
  return replica;
}

core::Result<void> GpuReplica::prepare(const nn::CompileOptions& options) {
  const auto pinned = [&](std::size_t bytes, const char* what) {
    return core::Buffer::allocate(device_.pinned(), floats_for(bytes), what);
  };
  const auto batch = static_cast<std::size_t>(batch_);
  const std::size_t largest = std::max(static_cast<std::size_t>(graph_.input().size()) * batch * sizeof(float),
                                       compiled_.mirrors.parameters.size() * sizeof(float));
  if (auto ok = take(exchange_, device_.make_stream()); !ok) return ok;
  if (auto ok = take(staging_, Staging::make(device_, largest / 2)); !ok) return ok;
  arenas_.emplace(device_, compiled_, *staging_, options.arenas == &device_.pinned());
  for (auto* event : {&begun_, &forward_done_})
    if (auto ok = take(*event, device_.make_event()); !ok) return ok;
  for (std::size_t b = 0; b < compiled_.buckets.size(); ++b)
    if (auto ok = take(bucket_done_.emplace_back(), device_.make_event()); !ok) return ok;
  if (auto ok = take(inputs_, InputBuffers::make(device_, *staging_, compiled_, graph_, options)); !ok) return ok;
  if (auto ok = take(sums_, pinned((graph_.heads().size() + 1) * sizeof(LossSums), "losses of a step")); !ok) return ok;
  if (options.precision == nn::Precision::fp16 && options.training) {
    scale_.emplace();
    if (auto ok = take(scales_, pinned(2 * sizeof(float), "the loss scale")); !ok) return ok;
  }
  const std::size_t outputs = batch * static_cast<std::size_t>(graph_.output().size());
  if (auto ok = take(outputs_, pinned(outputs * sizeof(float), "outputs of a step")); !ok) return ok;

  const Program& program = compiled_.program;
  evaluation_ = {program.forward, false};
  forward_ = {program.forward, true};
  backward_ = {program.backward, true};
  std::size_t first = 0;
  const std::span<const Operation> backward = program.backward;
  for (const std::size_t end : compiled_.bucket_ends) {
    bucket_parts_.emplace_back(backward.subspan(first, end - first), true);
    first = end;
  }
  bucket_parts_.emplace_back(backward.subspan(first), true);
  if (auto begun = arenas_->begin(*compute_, graph_); !begun) return begun;
  if (scale_)
    if (auto kept = arenas_->keep_statistics(); !kept) return kept;
  return compute_->synchronize();
}

void GpuReplica::parameters_written() noexcept {
  ++version_;
  arenas_->parameters_written();
}

core::Result<void> GpuReplica::enqueue_forward(const nn::Batch& batch, std::int64_t samples, bool training) {
  inputs_->check(batch, samples);
  if (failed_) return tl::unexpected(*failed_);
  const Range range(*compute_, "forward");
  const auto labels = batch.labels.first(static_cast<std::size_t>(samples));
  if (auto checked = check_labels(labels, graph_.output().size()); !checked) return checked;
  if (is_busy_) {  // a pass was left by an error or an exception: it may still use the memory of this one
    if (auto waited = compute_->synchronize(); !waited) return waited;
    if (auto waited = exchange_->synchronize(); !waited) return waited;
  }
  is_busy_ = true;
  outputs_are_here_ = false;
  if (auto copied = arenas_->before_pass(*compute_); !copied) return copied;
  if (auto begun = inputs_->begin(*compute_, batch, samples); !begun) return begun;
  if (auto told = tell_scale(); !told) return told;
  if (refreshed_version_ != version_) {
    if (auto ran = run_all(compiled_.program.refresh, training, *compute_); !ran) return ran;
    refreshed_version_ = version_;
  }
  if (auto recorded = compute_->record(*begun_); !recorded) return recorded;
  if (auto ran = (training ? forward_ : evaluation_).run(*compute_, captures_); !ran) return ran;
  if (auto recorded = compute_->record(*forward_done_); !recorded) return recorded;
  // Here, not in finish(): a step ends with its last kernel then.
  return compute_->copy_to_host(sums_.data(), compiled_.program.sums, graph_.heads().size() * sizeof(LossSums));
}

core::Result<void> GpuReplica::enqueue_buckets(const std::function<void(int)>& on_bucket_ready) {
  for (std::size_t b = 0; b < bucket_parts_.size(); ++b) {
    if (auto ran = bucket_parts_[b].run(*compute_, captures_); !ran) return ran;
    if (b < bucket_done_.size())
      if (auto recorded = compute_->record(*bucket_done_[b]); !recorded) return recorded;
  }
  return give_buckets(on_bucket_ready);
}

core::Result<void> GpuReplica::give_buckets(const std::function<void(int)>& on_bucket_ready) {
  for (std::size_t b = 0; b < bucket_done_.size(); ++b) {
    if (auto waits = exchange_->wait(*bucket_done_[b]); !waits) return waits;
    if (auto copied = arenas_->after_bucket(*exchange_, compiled_.buckets[b]); !copied) return copied;
    if (auto waited = exchange_->synchronize(); !waited) return waited;
    const ThreadStreams::Instead exchange(streams_, exchange_);
    on_bucket_ready(static_cast<int>(b));
  }
  return {};
}

core::Result<nn::StepResult> GpuReplica::finish(std::int64_t samples, bool training) {
  const std::size_t heads = graph_.heads().size();
  if (auto waited = compute_->synchronize(); !waited) return tl::unexpected(std::move(waited.error()));
  is_busy_ = false;
  inputs_->ended();
  nn::StepResult result;
  result.samples = samples;
  if (samples == 0) return result;
  for (std::size_t i = 0; i < heads; ++i) {
    const bool main = i + 1 == heads;
    if (!main && !training) continue;
    LossSums sums;
    std::memcpy(&sums, reinterpret_cast<const std::byte*>(sums_.data()) + i * sizeof(LossSums), sizeof(sums));
    result.loss += main ? sums.loss : compiled_.program.weights[i] * sums.loss;
    if (!main) continue;
    result.top1 = sums.top1;
    result.top5 = sums.top5;
  }
  return result;
}

core::Result<nn::StepResult> GpuReplica::finish_step(const std::function<void(int)>& on_bucket_ready) {
  const Range range(*compute_, "backward");
  auto enqueued = on_bucket_ready ? enqueue_buckets(on_bucket_ready) : backward_.run(*compute_, captures_);
  if (enqueued) enqueued = arenas_->after_step(*compute_, !on_bucket_ready);
  if (!enqueued) return tl::unexpected(std::move(enqueued.error()));
  return finish(batch_, true);
}

core::Result<nn::StepResult> GpuReplica::step(const nn::Batch& batch, const std::function<void(int)>& on_bucket_ready) {
  if (compiled_.arenas.gradients.empty())
    throw std::logic_error("step() on a replica that was compiled with training = false");
  const auto began = Clock::now();
  const BatchInUse in_use(*inputs_, batch);
  if (auto enqueued = enqueue_forward(batch, batch_, true); !enqueued)
    return tl::unexpected(std::move(enqueued.error()));
  double forward_s = seconds_since(began);
  auto result = scale_ ? finish_scaled(batch, on_bucket_ready) : finish_step(on_bucket_ready);
  if (!result) return result;
  const double all_s = seconds_since(began);
  if (device_.is_measurable())
    if (const auto measured = device_.seconds_between(*begun_, *forward_done_)) forward_s = std::min(*measured, all_s);
  result->forward_s = forward_s;
  result->backward_s = all_s - forward_s;
  return result;
}

core::Result<nn::StepResult> GpuReplica::evaluate(const nn::Batch& batch) {
  const BatchInUse in_use(*inputs_, batch);
  if (auto enqueued = enqueue_forward(batch, batch.count, false); !enqueued)
    return tl::unexpected(std::move(enqueued.error()));
  return finish(batch.count, false);
}

core::Result<void> GpuReplica::update(const core::OptimizerStep& step, core::OptimizerState state) {
  const Range range(*compute_, "optimizer");
  auto on = arenas_->before_update(*compute_, state);
  if (!on) return tl::unexpected(std::move(on.error()));
  auto* scratch = reinterpret_cast<std::byte*>(compiled_.update_scratch.data());
  const auto count = static_cast<std::int64_t>(on->parameters.size());
  float* g = on->gradients.data();
  // As core::clip(), without waiting for the norm.
  if (step.clip_value > 0)
    if (auto ran = compute_->launch(Clamp{g, step.clip_value, count}); !ran) return ran;
  if (step.clip_norm > 0) {
    auto* norm = reinterpret_cast<double*>(scratch + UpdateScratch::kNorm);
    auto* chunks = reinterpret_cast<double*>(scratch + UpdateScratch::kChunks);
    if (auto ran = compute_->launch(SquaredNorm{g, chunks, norm, count}); !ran) return ran;
    if (auto ran = compute_->launch(LimitNorm{g, norm, step.clip_norm, count}); !ran) return ran;
  }
  const Optimize optimize{.kind = step.kind,
                          .x = on->parameters.data(),
                          .g = g,
                          .first = on->state.first.data(),
                          .second = on->state.second.data(),
                          .numbers = core::step_numbers(step),
                          .count = count};
  if (auto ran = compute_->launch(optimize); !ran) return ran;
  return arenas_->after_update(*compute_, state);
}

void GpuReplica::apply(const core::OptimizerStep& step, core::OptimizerState state) {
  state = nn::checked_state(step, state, parameters().size());
  if (gradients().empty()) throw std::logic_error("apply() on a replica that was compiled with training = false");
  if (auto updated = update(step, state); !updated) failed_ = std::move(updated.error());
  ++version_;
}

std::span<const float> GpuReplica::outputs() const noexcept {
  const std::size_t count = static_cast<std::size_t>(batch_ * graph_.output().size());
  if (!outputs_are_here_)
    outputs_are_here_ = compute_->copy_to_host(outputs_.data(), compiled_.program.outputs, count * sizeof(float)) &&
                        compute_->synchronize();
  return {outputs_.data(), count};
}

std::size_t GpuReplica::workspace_bytes() const noexcept {
  return (compiled_.program.workspace.size() + compiled_.update_scratch.size()) * sizeof(float);
}

}  // namespace troupe::gpu
