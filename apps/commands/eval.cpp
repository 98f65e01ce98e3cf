#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/run/run.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/config_arguments.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "experiment/directory/run_directory.hpp"

namespace troupe::apps {
namespace {

struct Arguments {
  std::string path;
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

core::Result<void> run_eval(const Arguments& arguments) {
  const auto run = experiment::RunDirectory::containing(arguments.path);
  if (!run) return tl::unexpected(run.error());
  const auto settings = load_settings(run->config_file(), arguments.overrides, experiment::Use::remains);
  if (!settings) return tl::unexpected(settings.error());
  const auto backend = make_backend(settings->cluster.device);
  if (!backend) return tl::unexpected(backend.error());
  ProgressLine progress("evaluating");
  const auto evaluation = actors::evaluate_checkpoint(*settings, arguments.path, **backend);
  progress.clear();
  if (!evaluation) return tl::unexpected(evaluation.error());
  return print(arguments.json ? json_line(*evaluation) : sentence(*evaluation));
}

Action declare(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("CHECKPOINT|RUN_DIR", arguments->path,
                 "a checkpoint file of a run, or the run's directory: its newest")
      ->required();
  add_set(app, arguments->overrides);
  app.add_flag("--json", arguments->json, "one line of JSON");
  return [arguments] { return run_eval(*arguments); };
}

}  // namespace

Command eval() {
  return {.name = "eval",
          .summary = "evaluate a trained model on the test split",
          .examples =
              "  troupe eval runs/20260102-030405-mnist-easgd\n"
              "  troupe eval runs/20260102-030405-mnist-easgd/checkpoints/step-0000000938.safetensors --json\n",
          .declare = declare};
}

}  // namespace troupe::apps
