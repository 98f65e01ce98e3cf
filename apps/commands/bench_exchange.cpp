#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/arguments/checks.hpp"
#include "apps/bench/exchange_bench.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "core/kernels.hpp"
#include "core/text/plural.hpp"

namespace troupe::apps {
namespace {

struct BenchExchangeArguments {
  std::string algorithm = "shm";
  int ranks = 2;
  std::size_t parameters = 60'965'224;
  int rounds = 21;
  bool threads = false;
  bool processes = false;  // an explicit flag for the default
  bool json = false;
};

core::Result<void> run(const BenchExchangeArguments& arguments) {
  ProgressLine progress("measuring");
  const auto bench = (arguments.threads ? transport::run_exchange_bench : transport::run_process_exchange_bench)(
      core::host_kernels(), arguments.ranks, arguments.parameters, arguments.rounds);
  progress.clear();
  if (!bench) return tl::unexpected(bench.error());
  const auto ranks = static_cast<std::uint64_t>(arguments.ranks);
  if (arguments.json) {
    const nlohmann::ordered_json json{
        {"ms", bench->ms}, {"gb_per_s", bench->gb_per_s}, {"memcpy_ms", bench->memcpy_ms}};
    return print(json.dump() + "\n");
  }
  return print(
      fmt::format("{} among {}, {}: {:.3f} ms, {:.1f} GB/s; every rank copying the vector once: "
                  "{:.3f} ms, ratio "
                  "{:.2f}\n",
                  arguments.algorithm,
                  arguments.threads ? core::counted(ranks, "thread") : core::counted(ranks, "process", "processes"),
                  core::counted(arguments.parameters, "parameter"), bench->ms, bench->gb_per_s, bench->memcpy_ms,
                  bench->ms / bench->memcpy_ms));
}

Action declare_bench_exchange(CLI::App& app) {
  const auto a = std::make_shared<BenchExchangeArguments>();
  app.add_option("--algorithm", a->algorithm, "how the sum is formed")->check(word_of({"shm"}))->capture_default_str();
  app.add_option("--ranks", a->ranks, "threads or processes that take part")
      ->check(whole_between(1, 1024))
      ->capture_default_str();
  app.add_option("--parameters", a->parameters, "floats of each rank")
      ->check(whole_between(1, 0x1p36))
      ->capture_default_str();
  app.add_option("--rounds", a->rounds, "exchanges; the median counts")
      ->check(whole_between(1, 1'000'000))
      ->capture_default_str();
  auto* const threads = app.add_flag("--threads", a->threads, "ranks are threads of one process");
  app.add_flag("--processes", a->processes, "ranks are processes, which map each other's memory (the default)")
      ->excludes(threads);
  app.add_flag("--json", a->json, "one line of JSON");
  return [a] { return run(*a); };
}

}  // namespace

Command bench_exchange() {
  return {.name = "exchange",
          .summary = "one exchange of parameters among the ranks of a host, beside copying them",
          .examples =
              "  troupe bench exchange --processes --ranks 2\n"
              "  troupe bench exchange --threads --ranks 2 --parameters 431080\n",
          .declare = declare_bench_exchange};
}

}  // namespace troupe::apps
