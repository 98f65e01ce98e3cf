// Strong scaling of models whose neurons are spread over ranks, beside forecasts: bench/neuron_parallel.sh.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cpu/neurons/communicator.hpp"
#include "cpu/neurons/team.hpp"
#include "cpu/step_bench.hpp"
#include "sim/cluster/neuron_parallel_costs.hpp"

namespace {

using namespace troupe;

struct Options {
  std::int64_t batch = 64;
  double seconds = 0.3;
  int rounds = 3;
  std::vector<std::int64_t> widths{512, 2048, 8192};
  std::vector<int> ranks{1, 2, 4, 8};
};

constexpr std::int64_t kInputs = 784;
constexpr std::int64_t kClasses = 10;

std::array<std::int64_t, 4> widths_of(std::int64_t width) { return {kInputs, width, width, kClasses}; }

core::Result<nn::Graph> model(std::int64_t width) {
  const nn::ActivationLayer sigmoid{nn::Activation::sigmoid};
  return nn::Graph::sequential(
      fmt::format("784-{0}-{0}-10", width), {1, 28, 28},
      {nn::LinearLayer{width, {}}, sigmoid, nn::LinearLayer{width, {}}, sigmoid, nn::LinearLayer{kClasses, {}}},
      nn::Loss::softmax_cross_entropy);
}

core::Result<double> images_per_s(const nn::Graph& graph, const Options& options, int ranks, bool overlap) {
  const nn::CompileOptions compile{
      .batch = options.batch, .threads = ranks, .parallel = nn::Parallel::neurons, .overlap = overlap};
  return cpu::run_step_bench(graph, {.compile = compile, .seconds = options.seconds})
      .map([](const cpu::StepBench& bench) { return bench.images_per_s; });
}

/// Seconds of an allgather between two ranks, each with half of the floats: the best of some.
core::Result<double> allgather_s(std::size_t floats) {
  constexpr int kWindows = 5;
  constexpr int kInWindow = 40;
  auto ranks = cpu::Communicator::connect(2, std::chrono::minutes(1));
  if (!ranks) return tl::unexpected(std::move(ranks.error()));
  cpu::Team team(2, [&](std::size_t rank) { (*ranks)[rank]->abandon(); });
  const std::vector<core::Slice> parts{{0, floats / 2}, {floats / 2, floats - floats / 2}};
  std::array<std::vector<float>, 2> vectors{std::vector<float>(floats), std::vector<float>(floats)};
  double best = 1e9;
  for (int window = 0; window < kWindows; ++window) {
    const auto began = std::chrono::steady_clock::now();
    team.run([&](std::size_t rank) {
      for (int i = 0; i < kInWindow; ++i) {
        (*ranks)[rank]->start_allgather(vectors[rank], parts);
        (*ranks)[rank]->finish();
      }
    });
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    best = std::min(best, took.count() / kInWindow);
  }
  return best;
}

struct Link {
  double latency_s = 0;
  double bytes_per_s = 0;
};

core::Result<Link> measure_link() {
  constexpr std::size_t kLong = std::size_t{1} << 20;  // floats: the outputs of 8192 neurons for 128 samples
  const auto shortest = allgather_s(2);
  if (!shortest) return tl::unexpected(shortest.error());
  const auto longest = allgather_s(kLong);
  if (!longest) return tl::unexpected(longest.error());
  // A rank receives half of the vector.
  return Link{*shortest, sizeof(float) * kLong / 2 / std::max(*longest - *shortest, 1e-9)};
}

core::Result<void> measure_here(const Options& options) {
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  const auto link = measure_link();
  if (!link) return tl::unexpected(link.error());
  fmt::print(
      "Here: {} cores; ranks are threads. With more than {} ranks they take turns on the cores: no speedup is to be "
      "had there.\n"
      "Between two ranks an allgather takes {:.1f} us and moves {:.1f} GB/s. Batch {}, forward, loss, backward, "
      "momentum.\n\n",
      cores, cores, 1e6 * link->latency_s, 1e-9 * link->bytes_per_s, options.batch);
  fmt::print("{:<16} {:>5}  {:>10} {:>13}  {:>10}   speedup: {:>8} {:>13} {:>9}\n", "images/s", "ranks", "blocking",
             "non-blocking", "difference", "blocking", "non-blocking", "forecast");
  for (const auto width : options.widths) {
    const auto graph = model(width);
    if (!graph) return tl::unexpected(graph.error());
    std::array<double, 2> one{};  // images per second of the first row
    double forecast_of_one = 0;
    double flops_per_s = 0;
    for (const int ranks : options.ranks) {
      std::array<double, 2> found{};
      for (int run = 0; run < 2 * options.rounds; ++run) {
        const bool overlap = run % 2 == 1;
        const auto measured = images_per_s(*graph, options, ranks, overlap);
        if (!measured) return tl::unexpected(measured.error());
        found[overlap ? 1 : 0] = std::max(found[overlap ? 1 : 0], *measured);
      }
      if (flops_per_s == 0) {
        one = found;
        flops_per_s = found[0] * graph->training_flops() / std::min<double>(ranks, cores);
      }
      const double of_one_rank = flops_per_s * std::min(1.0, static_cast<double>(cores) / ranks);
      const double forecast = sim::neuron_parallel_step_time(widths_of(width), options.batch, ranks, of_one_rank,
                                                             link->latency_s, link->bytes_per_s)
                                  .total_s();
      if (forecast_of_one == 0) forecast_of_one = forecast;
      fmt::print("{:<16} {:>5}  {:>10.0f} {:>13.0f}  {:>+9.1f}%   {:>17.2f} {:>13.2f} {:>9.2f}\n", graph->name(), ranks,
                 found[0], found[1], 100 * (found[1] / found[0] - 1), found[0] / one[0], found[1] / one[1],
                 forecast_of_one / forecast);
      std::fflush(stdout);
    }
  }
  return {};
}

/// Of the paper: section 4.3, and section 2.2 for latency and bandwidth.
void forecast_paper() {
  struct Found {
    std::int64_t width;
    std::int64_t neurons_per_rank;  // at the fastest
    const char* speedup;
  };
  constexpr std::array<Found, 5> kPaper{
      {{32, 8, "-"}, {128, 8, "-"}, {512, 16, "-"}, {2048, 8, "-"}, {8192, 8, "375"}}};
  constexpr double kLatency = 90e-9;
  constexpr double kBytes = 2e9;
  constexpr double kFlops = 0.4e9;
  fmt::print(
      "\nThe paper (Horak, Elliott & Showers 2017, Multi-Layer Perceptron on the Blue Gene/Q): W-W-W, batch 1, up to "
      "1,024 ranks.\n"
      "Forecast: one broadcast of every rank after the other, 90 ns and 2 GB/s (section 2.2), {:.1f} GFLOP/s per rank. "
      "The paper does not tell that\n"
      "speed; one rank took more than 50 minutes for 2,000 iterations of W = 8192 (section 4.3), so it was below "
      "0.45.\n"
      "Paper: where it was fastest, the greatest speedup, and efficiencies of 0.29 to 0.68 there (section 4.3). Other "
      "times are figures only.\n"
      "Last columns: the same machine with one allgather and one reduce-scatter for each layer, as Troupe does it, and "
      "with batch 64.\n\n",
      1e-9 * kFlops);
  fmt::print("{:>6}  {:>22} {:>22}  {:>17} {:>19}  {:>28} {:>28}\n", "width", "neurons/rank: forecast", "paper",
             "speedup: forecast", "paper", "efficiency: forecast", "speedup: collectives, batch 64");
  for (const auto& found : kPaper) {
    const std::array<std::int64_t, 3> widths{found.width, found.width, found.width};
    const auto speedup = [&](std::int64_t ranks, std::int64_t batch, sim::NeuronMessages messages) {
      const auto time = [&](std::int64_t n) {
        return sim::neuron_parallel_step_time(widths, batch, n, kFlops, kLatency, kBytes, messages).total_s();
      };
      return time(1) / time(ranks);
    };
    const auto best = [&](std::int64_t batch, sim::NeuronMessages messages) {
      std::int64_t fastest = 1;
      for (std::int64_t ranks = 1; ranks <= std::min<std::int64_t>(found.width, 1024); ranks *= 2)
        if (speedup(ranks, batch, messages) > speedup(fastest, batch, messages)) fastest = ranks;
      return fastest;
    };
    const auto paper = sim::NeuronMessages::broadcasts;
    const auto ours = sim::NeuronMessages::collectives;
    const auto ranks = best(1, paper);
    const double forecast = speedup(ranks, 1, paper);
    const auto batched = best(64, ours);
    fmt::print("{:>6}  {:>22} {:>22}  {:>17.0f} {:>19}  {:>28.2f} {:>28}\n", found.width, found.width / ranks,
               found.neurons_per_rank, forecast, found.speedup, forecast / static_cast<double>(ranks),
               fmt::format("{:.0f} on {}", speedup(batched, 64, ours), batched));
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("strong scaling of neuron-parallel models: bench/neuron_parallel.sh");
  app.add_option("--batch", options.batch, "samples per step")->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--seconds", options.seconds, "length of a window; a run has three")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "runs of blocking and non-blocking steps in turn; the best window counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--widths", options.widths, "hidden neurons W of 784-W-W-10")->check(CLI::Range(1, 65'536));
  app.add_option("--ranks", options.ranks, "numbers of ranks; speedups are over the first")->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  if (const auto measured = measure_here(options); !measured) {
    fmt::print(stderr, "bench_neuron_parallel: {}\n", measured.error().message);
    return 1;
  }
  forecast_paper();
  return 0;
}
