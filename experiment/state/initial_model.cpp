#include "experiment/state/initial_model.hpp"

#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "experiment/directory/run_directory.hpp"
#include "nn/checkpoint/weights.hpp"
#include "nn/hash.hpp"
#include "nn/initialise.hpp"
#include "nn/layout.hpp"

namespace troupe::experiment {
namespace {

constexpr std::size_t kMostTold = 6;  // tensors in the note on a partial beginning

std::string text_or(const nn::SafetensorsFile& file, const char* key, const char* otherwise) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() || found->second.empty() ? otherwise : found->second;
}

/// What a fresh run begins with.
std::vector<float> fresh_statistics(const nn::Graph& graph) {
  const auto layout = nn::statistics_layout(graph);
  std::vector<float> arena(layout.arena_floats()), canonical(layout.canonical_floats());
  nn::initialise_statistics(graph, arena);
  layout.to_canonical(arena, canonical);
  return canonical;
}

std::string origin_of(const nn::WeightsFile& weights) {
  if (!weights.step) return "another program's file";
  return fmt::format("step {} of a run with {}", *weights.step,
                     text_or(weights.file, "strategy", "an unknown strategy"));
}

std::string model_of(const nn::WeightsFile& weights) {
  if (!weights.step) return {};  // other programs do not say
  return fmt::format("the file has model \"{}\", and ", text_or(weights.file, "model", "?"));
}

std::string describe_taken(const nn::TakenWeights& taken) {
  if (taken.kept.empty() && taken.left_over.empty()) return {};
  auto text = fmt::format(", {} tensors taken", taken.taken);
  if (!taken.kept.empty()) text += fmt::format("; fresh: {}", nn::first_lines(taken.kept, kMostTold));
  if (!taken.left_over.empty()) text += fmt::format("; left out: {}", nn::first_lines(taken.left_over, kMostTold));
  return text;
}

/// All but the model.
void complete(const RunSpec& spec, Checkpoint& begin) {
  if (spec.leases) {
    auto fresh = *spec.leases;  // before the first lease; its state is read while it is paused
    fresh.pause();
    begin.leases = fresh.state();
  }
  begin.strategy = spec.settings->strategy;
  begin.optimizer = spec.settings->train.optimizer;  // without vectors: its state begins at zero, as in a fresh run
  begin.config = spec.settings->config.to_toml();
}

InitialModel of_program(const RunSpec& spec, const InitialValues& values) {
  Checkpoint begin;
  begin.graph = spec.graph;
  begin.statistics = values.statistics;
  auto note = fmt::format("begins with the program's own values, {}", nn::center_hash(*values.parameters));
  begin.vectors.emplace("", values.parameters);
  complete(spec, begin);
  return InitialModel{std::make_shared<const Checkpoint>(std::move(begin)), std::move(note)};
}

}  // namespace

core::Result<std::string> checkpoint_file(const std::string& path) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (!exists && !error)
    return core::fail(core::Errc::config,
                      fmt::format("{} does not exist: give a checkpoint's file, or a run's directory", path));
  if (!std::filesystem::is_directory(path, error)) return path;
  const auto run = RunDirectory::open(path);
  if (!run) return tl::unexpected(run.error());
  return nn::load_newest(run->checkpoints()).map([](const nn::NewestCheckpoint& newest) { return newest.path; });
}

core::Result<SavedModel> load_model(const std::string& path, const nn::Graph& graph) {
  const auto file = checkpoint_file(path);
  if (!file) return tl::unexpected(file.error());
  const auto weights = nn::read_weights(*file, graph);
  if (!weights) return tl::unexpected(weights.error());
  SavedModel model;
  model.parameters.resize(static_cast<std::size_t>(graph.parameter_count()));
  model.statistics.resize(nn::statistics_layout(graph).canonical_floats());
  const auto taken = nn::weights_from(weights->file, graph, model.parameters, model.statistics, nn::Fit::whole);
  if (!taken)
    return core::fail(taken.error().code,
                      fmt::format("{}: is it of the model that the config describes?", taken.error().message));
  model.file = *file;
  model.step = weights->step;
  return model;
}

core::Result<InitialModel> initial_model(const RunSpec& spec) {
  const auto& settings = *spec.settings;
  if (settings.run.init.empty() && settings.initial) return of_program(spec, *settings.initial);
  if (settings.run.init.empty()) {
    if (!settings.run.init_partial) return InitialModel{};
    return core::fail(core::Errc::config,
                      fmt::format("{}: run.init_partial = true needs run.init: the file whose tensors are taken",
                                  settings.config.where("run.init_partial")));
  }
  const auto refuse = [&](const core::Error& error) {
    return core::fail(error.code, fmt::format("{}: run.init: {}", settings.config.where("run.init"), error.message));
  };
  const auto& graph = *spec.graph;
  const auto path = checkpoint_file(settings.run.init);
  if (!path) return refuse(path.error());
  const auto weights = nn::read_weights(*path, graph);
  if (!weights) return refuse(weights.error());

  Checkpoint begin;
  begin.graph = spec.graph;
  std::vector<float> parameters(static_cast<std::size_t>(graph.parameter_count()));
  nn::initialise(graph, static_cast<std::uint64_t>(settings.run.seed), parameters);
  begin.statistics = fresh_statistics(graph);
  const bool partial = settings.run.init_partial;
  const auto taken =
      nn::weights_from(weights->file, graph, parameters, begin.statistics, partial ? nn::Fit::partial : nn::Fit::whole);
  if (!taken)
    return refuse(
        {taken.error().code,
         fmt::format("{} ({}this run trains \"{}\"{})", taken.error().message, model_of(*weights), graph.name(),
                     partial ? "" : "; --partial, run.init_partial, takes the tensors that fit")});

  auto note = fmt::format("begins with the weights of {} ({}), {}{}", *path, origin_of(*weights),
                          nn::center_hash(parameters), describe_taken(*taken));
  begin.vectors.emplace("", std::make_shared<const std::vector<float>>(std::move(parameters)));
  complete(spec, begin);
  return InitialModel{std::make_shared<const Checkpoint>(std::move(begin)), std::move(note)};
}

}  // namespace troupe::experiment
