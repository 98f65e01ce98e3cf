// One rank of an exchange among processes, on one host or several; each rank is started separately (or by mpirun). Checks the mean that
// it computes. Prints a line of JSON: "ms", the median time of an exchange, from the moment when all ranks are ready until this rank has
// the result; "bytes", the payload that this rank sends for one exchange; "formula", the same by exchange::collective_bytes; "sent", its
// total payload.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/rank.hpp"
#include "core/kernels.hpp"

namespace {

using namespace troupe;

struct Figures {
  double ms = 0;
  std::uint64_t bytes = 0;  // of one exchange
  std::uint64_t sent = 0;   // in total
};

core::Result<Figures> measure(bench::Rank& rank, int rounds) {
  const auto& kernels = core::host_kernels();
  const core::SteadyClock clock;
  const core::Slice whole{0, rank.options().floats};
  const float mean = static_cast<float>(rank.options().ranks + 1) / 2;
  std::vector<double> times;
  Figures figures;
  for (int round = 0; round <= rounds; ++round) {  // the first round is a warm-up
    kernels.fill(rank.vector(), static_cast<float>(rank.options().rank + 1));
    const auto before = rank.bytes_sent();
    if (auto all = rank.barrier(); !all) return tl::unexpected(all.error());
    const auto began = clock.now();
    if (auto exchanged = rank.mean(whole, static_cast<std::uint32_t>(round)); !exchanged)
      return tl::unexpected(exchanged.error());
    if (round > 0) times.push_back(core::seconds(clock.now() - began) * 1e3);
    figures.bytes = rank.bytes_sent() - before;
    for (const float value : {rank.vector().front(), rank.vector()[whole.count / 2], rank.vector().back()})
      if (std::abs(value - mean) > 1e-3F * mean)
        return core::fail(core::Errc::internal, fmt::format("the exchange computed {} and not {}", value, mean));
  }
  if (auto all = rank.barrier(); !all) return tl::unexpected(all.error());  // no rank closes before all have finished
  std::ranges::sort(times);
  figures.ms = times[times.size() / 2];
  figures.sent = rank.bytes_sent();
  return figures;
}

int fail(const core::Error& error) {
  std::fprintf(stderr, "bench_collective: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("One rank of an exchange among processes.");
  bench::RankOptions options;
  int rounds = 5;
  declare(app, options);
  app.add_option("--rounds", rounds, "exchanges; the median counts")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto rank = bench::Rank::meet(options);
  if (!rank) return fail(rank.error());
  const auto figures = measure(**rank, rounds);
  if (!figures) return fail(figures.error());
  const nlohmann::ordered_json json{{"rank", options.rank},
                                    {"ranks", options.ranks},
                                    {"endpoint", options.endpoint},
                                    {"algorithm", options.algorithm},
                                    {"half", options.half},
                                    {"parameters", options.floats},
                                    {"rounds", rounds},
                                    {"ms", figures->ms},
                                    {"bytes", figures->bytes},
                                    {"formula", (*rank)->bytes_of_mean(options.floats)},
                                    {"sent", figures->sent}};
  std::printf("%s\n", json.dump().c_str());
  return 0;
}
