#include "nn/zoo/models.hpp"

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/command.hpp"
#include "apps/help.hpp"
#include "apps/output.hpp"
#include "core/text/layout.hpp"

namespace troupe::apps {
namespace {

core::Result<void> run_models(bool json) {
  constexpr std::size_t kDescription = 18;  // its column
  const auto columns = output_columns();
  std::string text;
  for (const auto& model : nn::model_zoo()) {
    if (json) {
      const nlohmann::ordered_json line{
          {"model", model.name}, {"parameters", model.parameters}, {"input", nn::to_string(model.input)}};
      text += line.dump() + "\n";
    } else {
      text += core::list_row(
          model.name,
          fmt::format("{} parameters, input {}: {}", core::readable(static_cast<double>(model.parameters)),
                      nn::to_string(model.input), model.description),
          kDescription, columns);
    }
  }
  if (!json) text += layers_help(columns);
  return print(text);
}

Action declare_models(CLI::App& app) {
  const auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "one line of JSON per model");
  return [json] { return run_models(*json); };
}

}  // namespace

Command models() {
  return {.name = "models",
          .summary = "list the models that come with Troupe, and the types of layers for your own",
          .examples =
              "  troupe models\n"
              "  troupe models --json\n",
          .declare = declare_models};
}

}  // namespace troupe::apps
