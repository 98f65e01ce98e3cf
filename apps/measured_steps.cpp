#include "apps/measured_steps.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <thread>
#include <utility>

#include "apps/backends.hpp"

namespace troupe::apps {
namespace {

/// What decides how long a step takes.
struct WorkerKind {
  std::int64_t batch = 0;
  int threads = 0;
  std::string device;
  auto operator<=>(const WorkerKind&) const = default;
};

/// `copies` replicas at once; the mean of their figures, and the steps of all.
core::Result<cpu::StepBench> measure(nn::Backend& backend, const nn::Graph& graph, const nn::CompileOptions& compile,
                                     double seconds, std::size_t copies) {
  std::vector<core::Result<cpu::StepBench>> results(copies, cpu::StepBench{});
  {
    std::vector<std::jthread> others;  // a replica belongs to the thread that compiles it
    const auto one = [&](std::size_t copy) {
      results[copy] = cpu::run_step_bench(graph, {.compile = compile, .seconds = seconds, .backend = &backend});
    };
    for (std::size_t copy = 1; copy < copies; ++copy) others.emplace_back(one, copy);
    one(0);
  }
  cpu::StepBench mean;
  const double share = 1.0 / static_cast<double>(copies);
  for (auto& result : results) {
    if (!result) return tl::unexpected(std::move(result.error()));
    mean.images_per_s += share * result->images_per_s;
    mean.ms_per_step += share * result->ms_per_step;
    mean.gflops += share * result->gflops;
    mean.steps_ms.insert(mean.steps_ms.end(), result->steps_ms.begin(), result->steps_ms.end());
  }
  return mean;
}

}  // namespace

std::size_t cores() { return std::max<std::size_t>(std::thread::hardware_concurrency(), 1); }

core::Result<MeasuredSteps> measure_steps(const experiment::Settings& settings, const nn::Graph& graph, double seconds,
                                          bool together) {
  const auto backend = make_backend(settings);
  if (!backend) return tl::unexpected(backend.error());
  const auto workers = static_cast<std::size_t>(settings.cluster.workers);
  const auto kind_of = [&](std::size_t worker) {
    return WorkerKind{settings.batch(worker) / settings.train.accumulate, settings.threads(worker),
                      settings.device(worker)};
  };
  const bool all_same = settings.data.batch.size() == 1 && settings.cluster.threads_per_worker.size() == 1 &&
                        settings.devices().size() == 1;
  MeasuredSteps measured;
  std::map<WorkerKind, cpu::StepBench> done;
  for (std::size_t worker = 0; worker < (all_same ? 1 : workers); ++worker) {
    const auto kind = kind_of(worker);
    auto known = done.find(kind);
    if (known == done.end()) {
      const auto fit = std::max<std::size_t>(cores() / static_cast<std::size_t>(kind.threads), 1);
      const auto copies = together ? std::min(fit, workers) : 1;
      auto compile = settings.compile_options(worker);
      compile.batch = kind.batch;
      auto bench = measure(**backend, graph, compile, seconds, copies);
      if (!bench) return tl::unexpected(std::move(bench.error()));
      known = done.emplace(kind, std::move(*bench)).first;
      measured.at_once = std::max(measured.at_once, copies);
    }
    measured.workers.push_back(known->second);
  }
  return measured;
}

}  // namespace troupe::apps
