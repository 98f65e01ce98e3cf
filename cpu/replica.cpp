#include "cpu/replica.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "cpu/layers/loss.hpp"
#include "nn/program/step_checks.hpp"

namespace troupe::cpu {
namespace {

/// The slice that one thread updates at a time; one thread updates smaller arenas. LeNet (4 slices): 44 µs by one, 28 µs by two.
constexpr std::size_t kOptimizerSlice = std::size_t{128} << 10;  // floats; a multiple of kAlignmentFloats

/// Runs `work`; adds the time that it took to `seconds`, if it is not null.
template <class Work>
void time_into(double* seconds, const Work& work) {
  if (seconds == nullptr) return work();
  const auto began = std::chrono::steady_clock::now();
  work();
  *seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// Times the operations of one list.
class StopWatch {
 public:
  explicit StopWatch(std::vector<double>* seconds) : seconds_(seconds) {}
  template <class Work>
  void time(std::size_t operation, const Work& work) const {
    time_into(seconds_ == nullptr ? nullptr : &(*seconds_)[operation], work);
  }

 private:
  std::vector<double>* seconds_;
};

/// Whether an operation is a matrix product or a convolution, or a gradient of one.
bool is_product(const Operation& operation) {
  return operation.what == "convolution" || operation.what == "product" || operation.kernel.convolution.batch > 0;
}

}  // namespace

void Operation::run(const dnnl::stream& stream, const StepContext& context) const {
  if (kernel.run != nullptr) {
    kernel.run(kernel, context);
    return;
  }
  // The C function, because the C++ one copies its arguments into a new vector each time.
  const auto status =
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.data());
  if (status != dnnl_success) throw dnnl::error(status, "a prepared primitive failed");
}

CpuReplica::CpuReplica(const nn::Graph& graph, const nn::CompileOptions& options, Compiled compiled)
    : graph_(graph),
      batch_(options.batch),
      threads_(options.threads),
      label_smoothing_(options.label_smoothing),
      compiled_(std::move(compiled)),
      stream_(compiled_.engine) {}

core::Result<nn::StepResult> CpuReplica::run_forward(const nn::Batch& batch, std::int64_t samples,
                                                     const StepContext& context) {
  omp_set_num_threads(threads_);
  nn::check_batch(batch, batch_, graph_.input().size(), samples);
  Program& program = compiled_.program;
  // oneDNN takes inputs as void*, and only reads them.
  for (const dnnl::memory& input : program.inputs) input.set_data_handle(const_cast<float*>(batch.images.data()));
  if (refreshed_version_ != version_) {
    const StopWatch watch(seconds_of(StepPart::refresh));
    for (std::size_t i = 0; i < program.refresh.size(); ++i)
      watch.time(i, [&] { program.refresh[i].run(stream_, context); });
    refreshed_version_ = version_;
  }
  const StopWatch watch(seconds_of(StepPart::forward));
  for (std::size_t i = 0; i < program.forward.size(); ++i)
    if (program.forward[i].belongs_to(context)) watch.time(i, [&] { program.forward[i].run(stream_, context); });
  core::Result<nn::StepResult> result;
  time_into(measured_ ? &measured_->loss : nullptr, [&] { result = lose(batch, samples, context); });
  return result;
}

core::Result<nn::StepResult> CpuReplica::lose(const nn::Batch& batch, std::int64_t samples,
                                              const StepContext& context) {
  const auto& heads = compiled_.program.heads;
  double auxiliary = 0;
  for (const ProgramHead& head : heads) {
    const bool main = &head == &heads.back();
    if (!main && !context.training) continue;
    auto result = compute_loss(graph_.loss(), head.outputs, batch.labels, samples, classes(), head.gradients,
                               context.training ? label_smoothing_ : 0);
    if (!result) return result;
    if (main) {
      result->loss += auxiliary;
      return result;
    }
    auxiliary += head.weight * result->loss;
    const auto weight = static_cast<float>(head.weight);
    for (float& gradient : core::Span(head.gradients, static_cast<std::size_t>(batch_ * classes()))) gradient *= weight;
  }
  return nn::StepResult{};
}

core::Result<nn::StepResult> CpuReplica::step(const nn::Batch& batch, const std::function<void(int)>& on_bucket_ready) {
  if (compiled_.gradients.empty())
    throw std::logic_error("step() on a replica that was compiled with training = false");
  using Clock = std::chrono::steady_clock;
  const StepContext context{batch.lease, true, batch.first};
  const auto began = Clock::now();
  auto result = run_forward(batch, batch_, context);
  if (!result) return result;
  const auto forward_done = Clock::now();
  const auto& backward = compiled_.program.backward;
  const StopWatch watch(seconds_of(StepPart::backward));
  for (std::size_t i = 0; i < backward.size(); ++i) {
    const Operation& operation = backward[i];
    watch.time(i, [&] { operation.run(stream_, context); });
    if (operation.finished_bucket >= 0 && on_bucket_ready) on_bucket_ready(operation.finished_bucket);
  }
  if (measured_) ++measured_->steps;
  result->forward_s = std::chrono::duration<double>(forward_done - began).count();
  result->backward_s = std::chrono::duration<double>(Clock::now() - forward_done).count();
  return result;
}

core::Result<nn::StepResult> CpuReplica::evaluate(const nn::Batch& batch) {
  return run_forward(batch, batch.count, {batch.lease, false, batch.first});
}

void CpuReplica::apply(const core::OptimizerStep& step, core::OptimizerState state) {
  omp_set_num_threads(threads_);
  const core::Span x = parameters();
  const core::Span g = gradients();
  state = nn::checked_state(step, state, x.size());  // here, because no exception may cross the threads below
  const auto optimize = [&] {
    core::clip(core::host_kernels(), g, step.clip_value, step.clip_norm);
    const auto slices = static_cast<std::int64_t>((x.size() + kOptimizerSlice - 1) / kOptimizerSlice);
#pragma omp parallel for schedule(static) if (slices > 1)
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      const std::size_t first = static_cast<std::size_t>(slice) * kOptimizerSlice;
      const std::size_t count = std::min(kOptimizerSlice, x.size() - first);
      core::host_kernels().optimize(x.subspan(first, count), g.subspan(first, count), state.part(first, count), step);
    }
  };
  time_into(measured_ ? &measured_->optimizer : nullptr, optimize);
  parameters_written();
}

void CpuReplica::start_breakdown() {
  const Program& program = compiled_.program;
  measured_.emplace();
  measured_->operations = {Seconds(program.refresh.size()), Seconds(program.forward.size()),
                           Seconds(program.backward.size())};
}

Breakdown CpuReplica::breakdown() const {
  Breakdown result;
  if (!measured_ || measured_->steps == 0) return result;
  const Program& program = compiled_.program;
  const std::array lists{&program.refresh, &program.forward, &program.backward};
  std::vector<int> products(graph_.nodes().size());
  for (const auto* list : lists)
    for (const Operation& operation : *list)
      if (is_product(operation)) ++products[static_cast<std::size_t>(operation.node)];

  result.steps = measured_->steps;
  result.loss_seconds = measured_->loss / result.steps;
  result.optimizer_seconds = measured_->optimizer / result.steps;
  for (std::size_t part = 0; part < lists.size(); ++part)
    for (std::size_t i = 0; i < lists[part]->size(); ++i) {
      const Operation& operation = (*lists[part])[i];
      const auto node = static_cast<std::size_t>(operation.node);
      const double flops = is_product(operation)
                               ? static_cast<double>(batch_) * graph_.training_flops(operation.node) / products[node]
                               : 0;
      result.operations.push_back({graph_.nodes()[node].name, static_cast<StepPart>(part), operation.what,
                                   operation.implementation, measured_->operations[part][i] / result.steps, flops,
                                   operation.bytes});
    }
  return result;
}

std::span<const float> CpuReplica::outputs() const noexcept {
  return {compiled_.program.heads.back().outputs, static_cast<std::size_t>(batch_ * classes())};
}

std::size_t CpuReplica::workspace_bytes() const noexcept { return compiled_.program.workspace.size() * sizeof(float); }

}  // namespace troupe::cpu
