#include "gpu/program/measuring.hpp"

#include <limits>
#include <optional>

#include "gpu/program/scratch.hpp"

namespace troupe::gpu {
namespace {

/// Executions that are timed together, behind one that is not; the fastest round counts.
constexpr int kExecutions = 4;
constexpr int kRounds = 3;

/// Several executions as one captured step, which is how a step launches them. Null: a step with this engine cannot be captured.
template <class Run>
std::unique_ptr<StepGraph> capture(Stream& stream, const Run& run) {
  if (!stream.begin_capture()) return nullptr;
  bool ran = true;
  for (int i = 0; i < kExecutions && ran; ++i) ran = run().has_value();
  auto graph = stream.end_capture();  // also after a failed call
  return ran && graph ? std::move(*graph) : nullptr;
}

/// The events between which an execution is timed.
struct Moments {
  std::unique_ptr<Event> first;
  std::unique_ptr<Event> last;
  static core::Result<Moments> make(Device& device) {
    auto first = device.make_event();
    if (!first) return tl::unexpected(std::move(first.error()));
    auto last = device.make_event();
    if (!last) return tl::unexpected(std::move(last.error()));
    return Moments{std::move(*first), std::move(*last)};
  }
};

/// Seconds of one execution; none if it fails, as engines may that a library offers. Without a graph the time between two executions, which
/// the host needs, would count: it is longer than most engines take.
template <class Run>
std::optional<double> seconds(Device& device, Stream& stream, const Moments& moments, const Run& run) {
  if (!run() || !stream.synchronize()) return std::nullopt;
  const auto graph = capture(stream, run);
  if (!graph) return std::nullopt;
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    if (!stream.record(*moments.first) || !stream.launch(*graph) || !stream.record(*moments.last) ||
        !stream.synchronize())
      return std::nullopt;
    const auto took = device.seconds_between(*moments.first, *moments.last);
    if (!took) return std::nullopt;
    best = std::min(best, *took / kExecutions);
  }
  return best;
}

/// The fastest of `plans`; run(plan) enqueues what counts.
template <class Plan, class Run>
Fastest fastest_of(Device& device, Stream& stream, const Moments& moments,
                   const std::vector<std::unique_ptr<Plan>>& plans, const Run& run) {
  Fastest best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const auto took = seconds(device, stream, moments, [&] { return run(*plans[i]); });
    if (took && (best.seconds == 0 || *took < best.seconds)) best = {i, *took};
  }
  (void)stream.synchronize();  // an engine that failed may still use the memory
  return best;
}

template <class Plan, class Operands>
core::Result<Fastest> measure(Device& device, Stream& stream, const std::vector<std::unique_ptr<Plan>>& plans,
                              const Operands& operands, void* workspace) {
  const auto moments = Moments::make(device);
  if (!moments) return tl::unexpected(moments.error());
  return fastest_of(device, stream, *moments, plans,
                    [&](const Plan& plan) { return stream.run(plan, operands, workspace); });
}

}  // namespace

core::Result<StatisticsTimes> time_statistics(Device& device, Stream& stream, const Convolution& description,
                                              const std::vector<std::unique_ptr<ConvolutionPlan>>& plans,
                                              const ConvolutionPlan& apart) {
  const ConvolutionScratch scratch(device, description, plans);
  const StatisticsScratch statistics(device, description);
  const Scratch workspace(device, apart.workspace());
  if (!scratch.is_there() || !statistics.is_there() || !workspace.is_there()) return StatisticsTimes{};
  const auto moments = Moments::make(device);
  if (!moments) return tl::unexpected(moments.error());
  const auto run = [&](const ConvolutionPlan& plan, void* memory, bool summed) -> core::Result<void> {
    if (auto ran = stream.run(plan, scratch.operands(), memory); !ran) return ran;
    return stream.launch(statistics.kernel(scratch, summed));
  };
  StatisticsTimes times;
  times.summed = fastest_of(device, stream, *moments, plans,
                            [&](const ConvolutionPlan& plan) { return run(plan, scratch.workspace.get(), true); });
  times.apart = seconds(device, stream, *moments, [&] { return run(apart, workspace.get(), false); }).value_or(0);
  (void)stream.synchronize();  // as above
  return times;
}

core::Result<Fastest> fastest(Device& device, Stream& stream, const Convolution& description,
                              const std::vector<std::unique_ptr<ConvolutionPlan>>& plans) {
  if (plans.size() < 2) return Fastest{};
  const ConvolutionScratch scratch(device, description, plans);
  if (!scratch.is_there()) return Fastest{};
  return measure(device, stream, plans, scratch.operands(), scratch.workspace.get());
}

core::Result<Fastest> fastest(Device& device, Stream& stream, const MatrixProduct& description,
                              const std::vector<std::unique_ptr<MatrixPlan>>& plans) {
  if (plans.size() < 2) return Fastest{};
  const Scratch a(device, sized(description.m * description.k, description.type));
  const Scratch b(device, sized(description.k * description.n, description.type));
  const Scratch d(device, sized(description.m * description.n, description.output));
  const Scratch bias(device, description.bias ? sized(description.n, description.output) : 0);
  const Scratch workspace(device, largest_workspace(plans));
  for (const Scratch* scratch : {&a, &b, &d, &bias, &workspace})
    if (!scratch->is_there()) return Fastest{};
  return measure(device, stream, plans, MatrixOperands{a.get(), b.get(), d.get(), bias.get()}, workspace.get());
}

}  // namespace troupe::gpu
