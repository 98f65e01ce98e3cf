#include "cpu/neurons/replica.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include <fmt/format.h>

#include "cpu/layers/loss.hpp"
#include "nn/program/step_checks.hpp"

namespace troupe::cpu {
namespace {

using StepClock = std::chrono::steady_clock;

/// One thread updates smaller arenas: waking the others takes longer.
constexpr std::size_t kLeastToShare = std::size_t{128} << 10;  // floats

double seconds_since(StepClock::time_point began) {
  return std::chrono::duration<double>(StepClock::now() - began).count();
}

}  // namespace

NeuronParallelReplica::NeuronParallelReplica(const nn::Graph& graph, const nn::CompileOptions& options,
                                             CompiledRanks compiled)
    : graph_(graph),
      batch_(options.batch),
      label_smoothing_(options.label_smoothing),
      overlap_(options.overlap),
      compiled_(std::move(compiled)),
      results_(compiled_.programs.size()),
      finished_(compiled_.programs.size()),
      team_(compiled_.programs.size(), [this](std::size_t rank) { compiled_.communicators[rank]->abandon(); }) {
  const auto& layers = *compiled_.layers;
  for (const int node : compiled_.last_nodes) {
    const auto layer = std::ranges::find(layers, node, [](const SplitLayer& l) { return l.link.node; });
    needed_.push_back(static_cast<std::size_t>(layers.end() - layer));
  }
}

core::Result<nn::StepResult> NeuronParallelReplica::step(const nn::Batch& batch,
                                                         const std::function<void(int)>& on_bucket_ready) {
  if (compiled_.gradients.empty())
    throw std::logic_error("step() on a replica that was compiled with training = false");
  return run({batch, batch_, true, &on_bucket_ready});
}

core::Result<nn::StepResult> NeuronParallelReplica::evaluate(const nn::Batch& batch) {
  return run({batch, batch.count, false, nullptr});
}

core::Result<nn::StepResult> NeuronParallelReplica::run(const Pass& pass) {
  nn::check_batch(pass.batch, batch_, graph_.input().size(), pass.samples);
  if (broken_) return tl::unexpected(*broken_);
  for (auto& finished : finished_) finished.store(0, std::memory_order_relaxed);
  reported_ = 0;
  try {
    team_.run([&](std::size_t rank) { results_[rank] = run_rank(rank, pass); });
  } catch (const CommunicationFailed& failed) {
    broken_ = failed.error();
    return tl::unexpected(*broken_);
  } catch (const std::exception& failed) {
    broken_ = core::Error{core::Errc::internal, fmt::format("an earlier step failed: {}", failed.what())};
    throw;
  }
  if (results_.front() && pass.training) report_buckets(pass);
  return results_.front();
}

core::Result<nn::StepResult> NeuronParallelReplica::run_rank(std::size_t rank, const Pass& pass) {
  const auto& layers = *compiled_.layers;
  RankProgram& program = *compiled_.programs[rank];
  Communicator& communicator = *compiled_.communicators[rank];
  const auto began = StepClock::now();
  program.set_images(pass.batch.images.data());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    program.forward(layer);
    communicator.start_allgather(program.values(layer), layers[layer].values);
    communicator.finish();
  }
  if (!pass.training && rank > 0) return nn::StepResult{};
  program.transpose_outputs();
  // Every rank comes to the same result, also to the same error.
  auto result =
      compute_loss(graph_.loss(), program.outputs().data(), pass.batch.labels, pass.samples, graph_.output().size(),
                   program.output_gradients().data(), pass.training ? label_smoothing_ : 0);
  if (!result || !pass.training) return result;
  result->forward_s = seconds_since(began);
  const auto forward_done = StepClock::now();
  program.take_output_gradients();
  backward(rank, pass);
  result->backward_s = seconds_since(forward_done);
  return result;
}

void NeuronParallelReplica::backward(std::size_t rank, const Pass& pass) {
  const auto& layers = *compiled_.layers;
  RankProgram& program = *compiled_.programs[rank];
  Communicator& communicator = *compiled_.communicators[rank];
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    program.error_backward(layer);
    if (layer > 0) {
      program.contribute(layer);
      communicator.start_reduce_scatter(program.errors(layer - 1), layers[layer - 1].values, layers[layer].owners);
      if (!overlap_) communicator.finish();
    }
    program.weight_gradient(layer);
    finished_[rank].fetch_add(1, std::memory_order_release);
    if (rank == 0) report_buckets(pass);
    communicator.finish();
  }
}

void NeuronParallelReplica::report_buckets(const Pass& pass) {
  std::size_t finished = compiled_.layers->size();
  for (const auto& by_rank : finished_) finished = std::min(finished, by_rank.load(std::memory_order_acquire));
  for (; reported_ < needed_.size() && needed_[reported_] <= finished; ++reported_)
    if (*pass.on_bucket_ready) (*pass.on_bucket_ready)(static_cast<int>(reported_));
}

void NeuronParallelReplica::apply(const core::OptimizerStep& step, core::OptimizerState state) {
  const core::Span x = parameters();
  const core::Span g = gradients();
  state = nn::checked_state(step, state, x.size());
  core::clip(core::host_kernels(), g, step.clip_value, step.clip_norm);
  if (x.size() < kLeastToShare)
    core::host_kernels().optimize(x, g, state, step);
  else
    team_.run([&](std::size_t rank) {
      const auto part = core::slice_of(x.size(), rank, team_.size());
      core::host_kernels().optimize(x.subspan(part.offset, part.count), g.subspan(part.offset, part.count),
                                    state.part(part.offset, part.count), step);
    });
  parameters_written();
}

std::size_t NeuronParallelReplica::workspace_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& program : compiled_.programs) bytes += program->workspace_bytes();
  return bytes;
}

}  // namespace troupe::cpu
