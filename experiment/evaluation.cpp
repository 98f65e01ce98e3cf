#include "experiment/evaluation.hpp"

#include <algorithm>
#include <limits>

#include "experiment/batches/batch_memory.hpp"
#include "nn/arenas/host_view.hpp"
#include "nn/program/own_process.hpp"

namespace troupe::experiment {

core::Result<Score> evaluate(nn::Replica& replica, const data::BatchBuilder& builder, core::ConstSpan parameters,
                             core::ConstSpan statistics, const std::function<bool()>& goes_on,
                             ConfusionMatrix* confusion) {
  replica.import_canonical(parameters);
  nn::write_canonical(replica.kernels(), nn::statistics_layout(replica.graph()), statistics, replica.statistics());
  BatchMemory memory(replica, builder);
  Score total{.top5 = builder.classes() < 5 ? -1 : 0};
  double loss = 0;
  for (std::int64_t first = 0; first < builder.size(); first += replica.batch()) {
    const auto count = std::min(replica.batch(), builder.size() - first);
    const auto batch = memory.build_range(first, count);
    if (!batch) return tl::unexpected(batch.error());
    const auto result = replica.evaluate(*batch);
    if (!result) return tl::unexpected(result.error());
    loss += result->loss * static_cast<double>(result->samples);
    add_hits(result->top1, total.top1);
    add_hits(result->top5, total.top5);
    total.samples += result->samples;
    if (confusion != nullptr && !replica.graph().is_program())  // a program keeps its outputs
      confusion->add(batch->labels.first(static_cast<std::size_t>(count)), replica.outputs(),
                     replica.graph().output().size());
    if (goes_on && !goes_on()) return core::fail(core::Errc::interrupted, "the evaluation is not needed any more");
  }
  total.replaced = builder.bad_samples();
  // No sample: a program that evaluates nothing.
  total.loss = total.samples > 0 ? loss / static_cast<double>(total.samples) : std::numeric_limits<double>::quiet_NaN();
  return total;
}

nn::CompileOptions evaluation_options(const RunSpec& spec, int threads, core::Allocator& arenas) {
  constexpr std::int64_t kBatch = 100;             // large enough to be efficient
  constexpr std::int64_t kMostFloats = 1'000'000;  // of a batch's images: activations take many times as much
  const auto& test = *spec.source.test;
  const auto fit = std::max<std::int64_t>(kMostFloats / test.image_shape().size(), 1);
  return {.batch = std::min({kBatch, fit, test.size()}),
          .precision = spec.settings->precision(),
          .device_name = spec.settings->device(0),
          .threads = threads,
          .arenas = &arenas,
          .training = false,
          .measure = spec.settings->cluster.kernels == "measured",
          .deterministic = spec.settings->cluster.deterministic};
}

core::Result<std::unique_ptr<nn::Replica>> compile_evaluation(nn::Backend& backend, const nn::Graph& graph,
                                                              nn::CompileOptions options,
                                                              const data::BatchBuilder& test) {
  const auto bytes = byte_preparation(test);
  options.bytes = bytes.get();
  return backend.compile(graph, options);
}

core::Result<Score> evaluate(const RunSpec& spec, nn::Backend& backend, core::ConstSpan parameters,
                             core::ConstSpan statistics, ConfusionMatrix* confusion) {
  core::HostAllocator memory;
  auto replica = compile_evaluation(backend, *spec.graph, evaluation_options(spec, spec.settings->threads(0), memory),
                                    *spec.source.test);
  if (!replica) return tl::unexpected(replica.error());
  auto score = evaluate(**replica, *spec.source.test, parameters, statistics, {}, confusion);
  // A program that fails afterwards says so among its lines.
  if (auto* const process = nn::own_process_of(**replica)) static_cast<void>(process->end(score.has_value()));
  return score;
}

}  // namespace troupe::experiment
