#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/arguments/checkpoint.hpp"
#include "apps/arguments/checks.hpp"
#include "apps/command.hpp"
#include "apps/output.hpp"
#include "apps/program.hpp"
#include "apps/reports/model_description.hpp"
#include "experiment/state/initial_model.hpp"
#include "nn/checkpoint/tensors.hpp"
#include "nn/hash.hpp"
#include "nn/onnx/encode.hpp"

namespace troupe::apps {
namespace {

struct ExportArguments {
  CheckpointArguments checkpoint;
  std::string form;
  std::string file;
};

/// The data says how images become inputs. A model can be exported without it.
core::Result<experiment::RunSpec> spec_of(const experiment::Settings& settings) {
  if (auto own = check_no_program(settings, "`troupe export`"); !own) return tl::unexpected(std::move(own.error()));
  auto spec = experiment::build_run_spec(settings, true);
  if (spec) return spec;
  auto bare = experiment::build_run_spec(settings, false);
  if (!bare) return tl::unexpected(spec.error());
  print_note({experiment::Note::Level::warning,
              fmt::format("the file will not say how images are prepared, which the data would tell: {}",
                          spec.error().message)});
  return bare;
}

core::Result<void> write_file(const std::string& path, std::span<const nn::Bytes> parts) {
  const std::filesystem::path file(path);
  const std::string folder = file.parent_path();
  return nn::replace_file(nn::system_files(), folder.empty() ? "." : folder, file.filename(), parts);
}

core::Result<void> write_onnx(const std::string& path, const nn::Graph& graph, const experiment::SavedModel& model,
                              const std::map<std::string, std::string>& texts) {
  const auto bytes = nn::encode_onnx(graph, model.parameters, model.statistics, texts, TROUPE_VERSION);
  if (!bytes) return tl::unexpected(bytes.error());
  const std::array parts{std::as_bytes(std::span(*bytes))};
  return write_file(path, parts);
}

/// The names of a PyTorch state_dict: it also has a counter of batches for each batch normalisation, which takes no part in evaluation.
core::Result<void> write_safetensors(const std::string& path, const nn::Graph& graph,
                                     const experiment::SavedModel& model, std::map<std::string, std::string> texts) {
  constexpr std::string_view kMean = "running_mean";
  constexpr std::array<std::int64_t, 1> kNone{0};
  auto tensors = nn::canonical_tensors(graph, model.parameters);
  for (auto& tensor : nn::statistics_tensors(graph, model.statistics)) {
    if (tensor.name.ends_with(kMean))
      tensors.push_back({tensor.name.substr(0, tensor.name.size() - kMean.size()) + "num_batches_tracked",
                         nn::DType::i64,
                         {},
                         std::as_bytes(std::span(kNone))});
    tensors.push_back(std::move(tensor));
  }
  texts["format"] = "pt";  // what readers of PyTorch's files look for
  const auto encoded = nn::encode_safetensors(tensors, texts);
  if (!encoded) return tl::unexpected(encoded.error());
  return write_file(path, encoded->parts());
}

core::Result<void> run_export(const ExportArguments& arguments) {
  const auto settings = settings_of(arguments.checkpoint);
  if (!settings) return tl::unexpected(settings.error());
  const auto spec = spec_of(*settings);
  if (!spec) return tl::unexpected(spec.error());
  const auto& graph = *spec->graph;
  const auto model = experiment::load_model(arguments.checkpoint.path, graph);
  if (!model) return tl::unexpected(model.error());
  auto texts = describe_model(*spec);
  texts["weights"] = nn::center_hash(model->parameters);
  if (model->step) texts["step"] = std::to_string(*model->step);
  const auto written = arguments.form == "onnx" ? write_onnx(arguments.file, graph, *model, texts)
                                                : write_safetensors(arguments.file, graph, *model, texts);
  if (!written) return written;
  return print(fmt::format("{}: {}, {} parameters, {}\n", arguments.file, graph.name(), graph.parameter_count(),
                           texts["weights"]));
}

Action declare_export(CLI::App& app) {
  const auto arguments = std::make_shared<ExportArguments>();
  add_checkpoint(app, arguments->checkpoint);
  app.add_option("FILE", arguments->file, "the file to write; one that is there is replaced")->required();
  app.add_option("--to", arguments->form,
                 "onnx: the network for evaluation, with logits as its output; safetensors: the weights with the names "
                 "of a PyTorch state_dict")
      ->check(word_of({"onnx", "safetensors"}))
      ->required();
  return [arguments] { return run_export(*arguments); };
}

}  // namespace

Command export_model() {
  return {.name = "export",
          .summary = "write a trained model as ONNX, or as safetensors with PyTorch's names",
          .examples =
              "  troupe export runs/20260102-030405-mnist-easgd --to onnx lenet.onnx\n"
              "  troupe export best.safetensors --to safetensors weights.safetensors\n",
          .declare = declare_export};
}

}  // namespace troupe::apps
