#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/arguments/checks.hpp"
#include "apps/arguments/config.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/program.hpp"
#include "apps/progress_line.hpp"
#include "apps/reports/step_breakdown.hpp"
#include "cpu/step_bench.hpp"
#include "experiment/run_spec.hpp"
#include "nn/checkpoint/file_system.hpp"
#include "nn/zoo/models.hpp"

namespace troupe::apps {
namespace {

constexpr std::size_t kMostLayers = 30;  // lines of a breakdown

struct BenchArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string model = "lenet";
  nn::CompileOptions compile;
  std::string precision = "fp32";
  std::string device = "cpu";
  double seconds = 1;
  double slowdown = 1;
  std::string profile;
  bool batch_given = false;
  bool precision_given = false;
  bool threads_given = false;
  bool breakdown = false;
  bool nondeterministic = false;
  bool statistics_apart = false;
  bool json = false;
};

/// Step times for a cluster file of `troupe simulate`: docs/formats/step-profile.md.
core::Result<void> write_profile(const BenchArguments& arguments, const nn::Graph& graph, const cpu::StepBench& bench) {
  const nlohmann::ordered_json json{{"model", graph.name()},
                                    {"batch", arguments.compile.batch},
                                    {"precision", arguments.precision},
                                    {"device", arguments.device},
                                    {"threads", arguments.compile.threads},
                                    {"slowdown", arguments.slowdown},
                                    {"parameters", graph.parameter_count()},
                                    {"steps_ms", bench.steps_ms}};
  const auto text = json.dump() + "\n";
  const std::filesystem::path path(arguments.profile);
  const auto directory = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::array parts{std::as_bytes(std::span(text))};
  return nn::replace_file(nn::system_files(), directory, path.filename().string(), parts);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : nn::model_zoo()) names.push_back(entry.name);
  return names;
}

/// The configuration's model for its data. Its worker 0 gives what the flags leave open: see declare_step().
core::Result<nn::Graph> configured_model(BenchArguments& arguments) {
  const auto settings = load_settings(arguments.config, arguments.overrides, experiment::Use::remains);
  if (!settings) return tl::unexpected(settings.error());
  if (auto own = check_no_program(*settings, "`troupe bench`"); !own) return tl::unexpected(std::move(own.error()));
  const auto spec = experiment::build_run_spec(*settings, false);
  if (!spec) return tl::unexpected(spec.error());
  const auto given = std::exchange(arguments.compile, settings->compile_options(0));
  arguments.compile.device_name.clear();  // --device says it
  arguments.compile.canonical_arenas = false;
  if (arguments.batch_given) arguments.compile.batch = given.batch;
  if (arguments.threads_given) arguments.compile.threads = given.threads;
  if (!arguments.precision_given) arguments.precision = settings->cluster.precision;
  return *spec->graph;
}

core::Result<void> run_step(BenchArguments arguments) {
  if (arguments.config.empty() && !arguments.overrides.empty())
    return core::fail(core::Errc::usage, "--set changes a key of a CONFIG: name one; see `troupe bench step --help`");
  if (arguments.breakdown && arguments.device != "cpu")
    return core::fail(core::Errc::usage, "--breakdown times the layers of the CPU: use it with --device cpu");
  if ((arguments.nondeterministic || arguments.statistics_apart) && arguments.device == "cpu")
    return core::fail(
        core::Errc::usage,
        "--nondeterministic and --statistics-apart are about engines of a GPU: use them with --device cuda");
  const auto backend = make_backend(arguments.device);
  if (!backend) return tl::unexpected(backend.error());
  const auto model = arguments.config.empty() ? nn::zoo_model(arguments.model) : configured_model(arguments);
  if (!model) return tl::unexpected(model.error());
  const auto& graph = *model;
  if (arguments.nondeterministic) arguments.compile.deterministic = false;
  if (arguments.statistics_apart && arguments.compile.deterministic)
    return core::fail(core::Errc::usage,
                      "--statistics-apart changes nothing with engines that are deterministic: add --nondeterministic");
  ProgressLine progress("measuring");
  arguments.compile.statistics_in_convolutions = !arguments.statistics_apart;
  arguments.compile.precision = nn::parse_precision(arguments.precision).value();  // declare_step() checks the name
  const cpu::StepBenchOptions options{.compile = arguments.compile,
                                      .seconds = arguments.seconds,
                                      .slowdown = arguments.slowdown,
                                      .breakdown = arguments.breakdown,
                                      .backend = arguments.device == "cpu" ? nullptr : backend->get()};
  const auto bench = cpu::run_step_bench(graph, options);
  progress.clear();
  if (!bench) return tl::unexpected(bench.error());
  if (!arguments.profile.empty())
    if (auto written = write_profile(arguments, graph, *bench); !written) return written;
  cpu::Ceilings ceilings;
  if (arguments.breakdown) {
    const auto measured = cpu::measure_ceilings(options.compile.precision, options.compile.threads);
    if (!measured) return tl::unexpected(measured.error());
    ceilings = *measured;
  }
  if (arguments.json) {
    nlohmann::ordered_json json{
        {"images_per_s", bench->images_per_s}, {"ms_per_step", bench->ms_per_step}, {"gflops", bench->gflops}};
    if (arguments.device != "cpu") json["deterministic"] = arguments.compile.deterministic;
    if (arguments.breakdown) json["breakdown"] = breakdown_json(bench->breakdown, ceilings);
    return print(json.dump() + "\n");
  }
  std::string text;
  if (arguments.breakdown) text = breakdown_text(bench->breakdown, ceilings, kMostLayers);
  // Rates of large networks are a few images per second.
  const int digits = bench->images_per_s < 100 ? 2 : 0;
  return print(text + fmt::format("{}, batch {}, {}, {} x {}: {:.{}f} images/s, {:.3f} ms per step, {:.1f} GFLOP/s\n",
                                  graph.name(), arguments.compile.batch, arguments.precision, arguments.compile.threads,
                                  arguments.device, bench->images_per_s, digits, bench->ms_per_step, bench->gflops));
}

Action declare_step(CLI::App& app) {
  const auto a = std::make_shared<BenchArguments>();
  auto* config = app.add_option("CONFIG", a->config,
                                "measure the model of this configuration (TOML) as its worker 0 computes it; --batch, "
                                "--precision, --threads and --nondeterministic say otherwise");
  add_set(app, a->overrides);
  app.add_option("--model", a->model, "a model of `troupe models`")
      ->check(word_of(model_names()))
      ->capture_default_str()
      ->excludes(config);
  auto* batch = app.add_option("--batch", a->compile.batch, "samples per step")
                    ->check(whole_between(1, 1'000'000))
                    ->capture_default_str();
  auto* precision = app.add_option("--precision", a->precision, "of forward and backward")
                        ->check(word_of({"fp32", "bf16", "tf32", "fp16"}))
                        ->capture_default_str();
  app.add_option("--device", a->device, "what computes")
      ->check(word_of({"cpu", "cuda", "cuda_on_host"}))
      ->capture_default_str();
  auto* threads = app.add_option("--threads", a->compile.threads, "threads that compute the step")
                      ->check(whole_between(1, 1024))
                      ->capture_default_str();
  app.add_option("--seconds", a->seconds, "length of a window; the best of three counts")
      ->check(number_between(0.01, 3600))
      ->capture_default_str();
  app.add_option("--slowdown", a->slowdown,
                 "pause after every step, as a worker with this cluster.slowdown does; not counted")
      ->check(number_between(1, 1000))
      ->capture_default_str();
  app.add_option("--profile", a->profile, "write the time of every step, for `troupe simulate`")->type_name("FILE");
  app.add_flag("--breakdown", a->breakdown, "also the time of each layer, beside what this machine reaches at best");
  app.add_flag(
      "--nondeterministic", a->nondeterministic,
      "on a GPU: engines whose sums may have other last bits in each run, as with cluster.deterministic = false");
  app.add_flag(
      "--statistics-apart", a->statistics_apart,
      "with such engines, in bf16 or fp16: the statistics of batch norms are a pass of their own, never part of the "
      "convolution in front");
  app.add_flag("--json", a->json, "one line of JSON");
  return [a, batch, precision, threads] {
    a->batch_given = batch->count() > 0;
    a->precision_given = precision->count() > 0;
    a->threads_given = threads->count() > 0;
    return run_step(*a);
  };
}

}  // namespace

Command bench() {
  return {
      .name = "bench",
      .summary = "measure this machine",
      .examples =
          "  troupe bench step --model lenet --batch 64 --threads 1\n"
          "  troupe bench exchange --threads --ranks 2 --parameters 431080\n",
      .declare = nullptr,
      .subcommands = {{.name = "step",
                       .summary = "training throughput of one replica on one batch: forward, loss, backward, momentum",
                       .examples = "  troupe bench step --model lenet --batch 64 --threads 1 --profile lenet-64.json\n"
                                   "  troupe bench step configs/cifar10-easgd.toml --profile cifar.json\n"
                                   "  troupe bench step --model resnet50 --batch 8 --precision bf16 --breakdown\n"
                                   "  troupe bench step --model resnet50 --batch 256 --precision bf16 --device cuda\n"
                                   "  troupe bench step --model mlp --batch 64 --json\n",
                       .declare = declare_step},
                      bench_device(),
                      bench_exchange()}};
}

}  // namespace troupe::apps
