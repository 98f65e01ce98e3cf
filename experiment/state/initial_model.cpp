#include "experiment/state/initial_model.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "experiment/directory/run_directory.hpp"
#include "nn/checkpoint/tensors.hpp"
#include "nn/hash.hpp"
#include "nn/layout.hpp"

namespace troupe::experiment {
namespace {

std::string text_or(const nn::SafetensorsFile& file, const char* key, const char* otherwise) {
  const auto found = file.metadata().find(key);
  return found == file.metadata().end() || found->second.empty() ? otherwise : found->second;
}

/// A tensor of the file's model that the run's model does not have: it would be left out without a word. Empty: none.
std::string left_over(const nn::SafetensorsFile& file, const nn::Graph& graph) {
  std::vector<std::string> prefixes;  // of other state
  std::istringstream words(text_or(file, "state", ""));
  for (std::string prefix; words >> prefix;) prefixes.push_back(prefix);
  for (const auto& tensor : file.tensors()) {
    const auto is = [&](const auto& known) { return known.name == tensor.name; };
    if (std::ranges::any_of(graph.parameters(), is) || std::ranges::any_of(graph.statistics(), is)) continue;
    if (std::ranges::none_of(prefixes, [&](const auto& prefix) { return tensor.name.starts_with(prefix); }))
      return tensor.name;
  }
  return {};
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

core::Result<InitialModel> initial_model(const RunSpec& spec) {
  const auto& settings = *spec.settings;
  if (settings.run.init.empty()) return InitialModel{};
  const auto refuse = [&](const core::Error& error) {
    return core::fail(error.code, fmt::format("{}: run.init: {}", settings.config.where("run.init"), error.message));
  };
  const auto path = checkpoint_file(settings.run.init);
  if (!path) return refuse(path.error());
  const auto loaded = nn::load_checkpoint(*path);
  if (!loaded) return refuse(loaded.error());
  const auto& file = loaded->file;
  const auto& graph = *spec.graph;
  const auto models = fmt::format("the checkpoint has model \"{}\", and this run trains \"{}\"",
                                  text_or(file, "model", "?"), graph.name());

  Checkpoint begin;
  begin.graph = spec.graph;
  std::vector<float> parameters(static_cast<std::size_t>(graph.parameter_count()));
  begin.statistics.resize(nn::statistics_layout(graph).canonical_floats());
  const auto read = nn::canonical_from(file, graph, parameters).and_then([&] {
    return nn::statistics_from(file, graph, begin.statistics);
  });
  if (!read) return refuse({read.error().code, fmt::format("{} ({})", read.error().message, models)});
  if (const auto other = left_over(file, graph); !other.empty())
    return refuse({core::Errc::config, fmt::format("{}: the model has no tensor \"{}\" ({})", *path, other, models)});

  auto note = fmt::format("begins with the weights of {} (step {} of a run with {}), {}", *path, loaded->step,
                          text_or(file, "strategy", "an unknown strategy"), nn::center_hash(parameters));
  begin.vectors.emplace("", std::move(parameters));
  if (spec.leases) {
    auto fresh = *spec.leases;  // before the first lease; its state is read while it is paused
    fresh.pause();
    begin.leases = fresh.state();
  }
  begin.strategy = settings.strategy;
  begin.optimizer = settings.train.optimizer;  // without vectors: its state begins at zero, as in a fresh run
  begin.config = settings.config.to_toml();
  return InitialModel{std::make_shared<const Checkpoint>(std::move(begin)), std::move(note)};
}

}  // namespace troupe::experiment
