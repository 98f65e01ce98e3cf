#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/run/run.hpp"
#include "apps/arguments/config.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "experiment/directory/run_directory.hpp"
#include "nn/checkpoint/checkpoint.hpp"

namespace troupe::apps {
namespace {

struct EvalArguments {
  std::string path;
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

std::string json_line(const actors::Evaluation& e) {
  using Json = nlohmann::ordered_json;
  const Json json{{"model", e.model}, {"dataset", e.dataset},   {"samples", e.samples},
                  {"loss", e.loss},   {"accuracy", e.accuracy}, {"top5", e.top5 < 0 ? Json(nullptr) : Json(e.top5)},
                  {"hash", e.hash}};
  return json.dump() + "\n";
}

std::string sentence(const actors::Evaluation& e) {
  const auto top5 = e.top5 < 0 ? std::string{} : fmt::format(" (top-5 {:.2f} %)", 100 * e.top5);
  return fmt::format("{} on {} test samples of {}: accuracy {:.2f} %{}, loss {:.4f}, {}\n", e.model, e.samples,
                     e.dataset, 100 * e.accuracy, top5, e.loss, e.hash);
}

/// A checkpoint outside a run directory contains the configuration of its run.
core::Result<experiment::Settings> own_settings(const EvalArguments& arguments) {
  const auto loaded = nn::load_checkpoint(arguments.path);
  if (!loaded) return tl::unexpected(loaded.error());
  const auto text = loaded->file.metadata().find("config");
  if (text == loaded->file.metadata().end())
    return core::fail(core::Errc::config,
                      fmt::format("{} is in no run directory, and contains no configuration, as an older version wrote "
                                  "it: name its run's with --config FILE",
                                  arguments.path));
  return core::Config::parse(experiment::schema(), text->second, arguments.path, arguments.overrides)
      .and_then([](core::Config config) { return experiment::resolve(std::move(config), experiment::Use::remains); });
}

core::Result<experiment::Settings> settings_of(const EvalArguments& arguments) {
  const auto from = [&](const std::string& file) {
    return load_settings(file, arguments.overrides, experiment::Use::remains);
  };
  if (!arguments.config.empty()) return from(arguments.config);
  const auto run = experiment::RunDirectory::containing(arguments.path);
  if (run) return from(run->config_file());
  std::error_code ignored;
  if (std::filesystem::is_regular_file(arguments.path, ignored)) return own_settings(arguments);
  return tl::unexpected(run.error());
}

core::Result<void> run_eval(const EvalArguments& arguments) {
  const auto settings = settings_of(arguments);
  if (!settings) return tl::unexpected(settings.error());
  const auto backend = make_backend(settings->cluster.device);
  if (!backend) return tl::unexpected(backend.error());
  ProgressLine progress("evaluating");
  const auto evaluation = actors::evaluate_checkpoint(*settings, arguments.path, **backend);
  progress.clear();
  if (!evaluation) return tl::unexpected(evaluation.error());
  return print(arguments.json ? json_line(*evaluation) : sentence(*evaluation));
}

Action declare_eval(CLI::App& app) {
  const auto arguments = std::make_shared<EvalArguments>();
  app.add_option("CHECKPOINT|RUN_DIR", arguments->path, "a checkpoint file, or a run's directory: its newest")
      ->required();
  app.add_option("--config", arguments->config,
                 "configuration (TOML) for the model and data, in place of the run's or of the one in the checkpoint")
      ->type_name("FILE");
  add_set(app, arguments->overrides);
  app.add_flag("--json", arguments->json, "one line of JSON");
  return [arguments] { return run_eval(*arguments); };
}

}  // namespace

Command eval() {
  return {.name = "eval",
          .summary = "evaluate a trained model on the test split",
          .examples =
              "  troupe eval runs/20260102-030405-mnist-easgd --json\n"
              "  troupe eval runs/20260102-030405-mnist-easgd/checkpoints/step-000000000938.safetensors\n"
              "  troupe eval best.safetensors --set data.path=elsewhere/mnist\n",
          .declare = declare_eval};
}

}  // namespace troupe::apps
