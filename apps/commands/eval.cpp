#include <cmath>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "actors/run/run.hpp"
#include "apps/arguments/checkpoint.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "apps/reports/confusion_report.hpp"
#include "core/text/plural.hpp"
#include "experiment/plot/fonts.hpp"
#include "experiment/plot/gnuplot.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::apps {
namespace {

struct EvalArguments {
  CheckpointArguments checkpoint;
  bool classes = false;
  std::string plot;  // directory
  bool json = false;
};

std::string json_line(const actors::Evaluation& e, bool classes) {
  using Json = nlohmann::ordered_json;
  Json json{{"model", e.model}, {"dataset", e.dataset},   {"samples", e.samples},
            {"loss", e.loss},   {"accuracy", e.accuracy}, {"top5", e.top5 < 0 ? Json(nullptr) : Json(e.top5)},
            {"hash", e.hash},   {"replaced", e.replaced}};
  if (classes) json.update(confusion_json(e.confusion, e.class_names));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string sentence(const actors::Evaluation& e) {
  const auto top5 = e.top5 < 0 ? std::string{} : fmt::format(" (top-5 {:.2f} %)", 100 * e.top5);
  const auto replaced = e.replaced == 0 ? std::string{}
                                        : fmt::format("{} could not be read: others stood in their place\n",
                                                      core::counted(static_cast<std::uint64_t>(e.replaced), "sample"));
  if (e.dataset == "numbers") {  // a program evaluates on what it likes, and tells what it likes
    std::vector<std::string> scores;
    if (!std::isnan(e.accuracy)) scores.push_back(fmt::format("accuracy {:.2f} %{}", 100 * e.accuracy, top5));
    if (!std::isnan(e.loss)) scores.push_back(fmt::format("loss {:.4f}", e.loss));
    if (scores.empty()) scores.emplace_back("it tells no accuracy and no loss");
    return fmt::format("{}, evaluated by its program: {}, {}\n", e.model, fmt::join(scores, ", "), e.hash);
  }
  return fmt::format("{} on {} test samples of {}: accuracy {:.2f} %{}, loss {:.4f}, {}\n{}", e.model, e.samples,
                     e.dataset, 100 * e.accuracy, top5, e.loss, e.hash, replaced);
}

/// Names that pictures can show: a name with a character that no font has is its number.
ClassNames drawable(ClassNames names) {
  plot::InstalledFonts fonts;
  for (std::size_t label = 0; label < names.size(); ++label) {
    if (plot::can_draw(fonts, names[label])) continue;
    const auto number = std::to_string(label);
    tell(fmt::format("troupe: {}\n", plot::explanation({names[label], number})));
    names[label] = number;
  }
  return names;
}

core::Result<void> run_eval(const EvalArguments& arguments) {
  const auto settings = settings_of(arguments.checkpoint);
  if (!settings) return tl::unexpected(settings.error());
  const auto backend = make_backend(*settings);
  if (!backend) return tl::unexpected(backend.error());
  ProgressLine progress("evaluating");
  const auto evaluation = actors::evaluate_checkpoint(*settings, arguments.checkpoint.path, **backend);
  progress.clear();
  if (!evaluation) return tl::unexpected(evaluation.error());
  auto text = arguments.json ? json_line(*evaluation, arguments.classes) : sentence(*evaluation);
  if (arguments.classes && !arguments.json)
    text += "\n" + confusion_text(evaluation->confusion, evaluation->class_names);
  if (arguments.plot.empty()) return print(text);
  const auto title = fmt::format("{} on {}", evaluation->model, evaluation->dataset);
  const auto pictures = plot::render(confusion_figures(evaluation->confusion, drawable(evaluation->class_names), title),
                                     {.directory = arguments.plot,
                                      .formats = {"png"},
                                      .publish = std::bind_front(nn::replace_file, std::ref(nn::system_files()))});
  if (!pictures) return tl::unexpected(pictures.error());
  if (!arguments.json) text += fmt::format("{}\n", fmt::join(*pictures, "\n"));
  return print(text);
}

Action declare_eval(CLI::App& app) {
  const auto arguments = std::make_shared<EvalArguments>();
  add_checkpoint(app, arguments->checkpoint);
  app.add_flag("--classes", arguments->classes,
               "also the accuracy of each class and the confusion matrix; of more than 20 classes the worst 20, with "
               "--json all");
  app.add_option("--plot", arguments->plot, "draw them into this directory: confusion.png, class-accuracy.png")
      ->type_name("DIR");
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
              "  troupe eval best.safetensors --set data.path=elsewhere/mnist\n"
              "  troupe eval runs/20260102-030405-mnist-easgd --classes --plot pictures\n",
          .declare = declare_eval};
}

}  // namespace troupe::apps
