#include "experiment/state/start_state.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/plural.hpp"
#include "nn/initialise.hpp"

namespace troupe::experiment {

namespace {

CanonicalVector find(const Checkpoint* checkpoint, const std::string& prefix) {
  if (!checkpoint) return nullptr;
  const auto found = checkpoint->vectors.find(prefix);
  return found == checkpoint->vectors.end() ? nullptr : found->second;
}

CanonicalVector fresh_parameters(const RunSpec& spec) {
  auto fresh = std::make_shared<std::vector<float>>(static_cast<std::size_t>(spec.graph->parameter_count()));
  nn::initialise(*spec.graph, static_cast<std::uint64_t>(spec.settings->run.seed), *fresh);
  return fresh;
}

/// Whether the workers, or servers, continue from the saved state: only the rule that wrote it can read it.
bool workers_go_on(const RunSpec& spec, const Checkpoint* checkpoint) {
  return checkpoint && spec.needs.worker_state != strategies::WorkerState::discarded &&
         checkpoint->optimizer == spec.settings->train.optimizer;
}
bool servers_go_on(const RunSpec& spec, const Checkpoint* checkpoint) {
  return checkpoint && !spec.needs.server_state_of.empty() &&
         checkpoint->server_optimizer == spec.needs.server_state_of;
}

/// Notes for the user about saved state that is not taken over.
std::vector<Note> left_behind(const RunSpec& spec, const Checkpoint* checkpoint) {
  std::vector<Note> notes;
  if (!checkpoint) return notes;
  if (spec.needs.worker_state != strategies::WorkerState::discarded && !workers_go_on(spec, checkpoint))
    notes.push_back({Note::Level::warning,
                     fmt::format("the checkpoint's optimizer state is that of \"{}\": \"{}\" starts with its own",
                                 checkpoint->optimizer, spec.settings->train.optimizer)});
  const bool averages = spec.needs.averages() && spec.needs.model == strategies::ModelHome::center;
  if (averages && servers_go_on(spec, checkpoint) && !checkpoint->vectors.contains(kCenterPrefix))
    notes.push_back(
        {Note::Level::warning,
         "the checkpoint, of an older program, has the average and not the centre: the centre begins there"});
  if (!checkpoint->server_optimizer.empty() && !servers_go_on(spec, checkpoint))
    notes.push_back(
        {Note::Level::warning, fmt::format("the servers' state in the checkpoint, of \"{}\", is not taken up",
                                           checkpoint->server_optimizer)});
  return notes;
}

/// In-step hosts all begin at one step, whatever rule wrote the checkpoint.
strategies::Step first_step(const RunSpec& spec, const Checkpoint& checkpoint, std::uint32_t worker) {
  const auto& steps = checkpoint.totals.worker_steps;
  if (steps.empty()) return 0;
  if (spec.needs.in_step) return *std::ranges::max_element(steps);
  return worker < steps.size() ? steps[worker] : *std::ranges::min_element(steps);
}

}  // namespace

namespace {

/// A continuing worker takes its own optimizer state, or the one that all share; a new worker has none. REQUIRES its first step. Version
/// 0.1 did not save how many steps had made the state: it used the worker's steps.
void take_states(const Checkpoint& checkpoint, std::uint32_t worker, StartState& start) {
  for (int k = 0; k < 2; ++k) {
    for (const int whose : {static_cast<int>(worker), -1}) {
      const auto prefix = optimizer_prefix(whose, k);
      auto state = find(&checkpoint, prefix);
      if (!state) continue;
      start.optimizer_states[worker].push_back(std::move(state));
      const auto steps = checkpoint.optimizer_steps.find(prefix);
      const bool known = steps != checkpoint.optimizer_steps.end();
      start.optimizer_steps[worker] = known ? steps->second : start.first_steps[worker];
      break;
    }
  }
}

/// Of programs. Optimizers that must be equal take any worker's, where their own was not saved.
void take_own_states(const RunSpec& spec, const Checkpoint& checkpoint, StartState& start) {
  const auto& states = checkpoint.own_states;
  std::vector<std::string> without;
  start.own_states.resize(spec.workers);
  for (std::uint32_t worker = 0; worker < spec.workers; ++worker) {
    auto own = states.find(worker);
    if (own == states.end() && spec.needs.worker_state == strategies::WorkerState::replicated) own = states.begin();
    if (own != states.end())
      start.own_states[worker] = own->second;
    else
      without.push_back(std::to_string(worker));
  }
  if (!without.empty() && checkpoint.step > 0)
    start.notes.push_back(
        {Note::Level::warning, fmt::format("the checkpoint has no optimizer state of {} {}: {} anew",
                                           core::noun(without.size(), "worker"), fmt::join(without, ", "),
                                           without.size() == 1 ? "its optimizer begins" : "their optimizers begin")});
}

}  // namespace

StartState start_state(const RunSpec& spec, const Checkpoint* checkpoint) {
  StartState start{.parameters = find(checkpoint, ""),
                   .statistics = nullptr,
                   .optimizer_states = std::vector<std::vector<CanonicalVector>>(spec.workers),
                   .first_steps = std::vector<strategies::Step>(spec.workers, 0),
                   .optimizer_steps = std::vector<std::uint64_t>(spec.workers, 0),
                   .server_states = {},
                   .center_version = 0,
                   .notes = left_behind(spec, checkpoint)};
  if (!start.parameters) start.parameters = fresh_parameters(spec);
  if (checkpoint) start.statistics = std::make_shared<const std::vector<float>>(checkpoint->statistics);
  if (workers_go_on(spec, checkpoint)) {
    for (std::uint32_t worker = 0; worker < spec.workers; ++worker) {
      start.first_steps[worker] = first_step(spec, *checkpoint, worker);
      take_states(*checkpoint, worker, start);
    }
  }
  if (checkpoint && spec.graph->is_program()) take_own_states(spec, *checkpoint, start);
  if (servers_go_on(spec, checkpoint)) {
    start.center_version = checkpoint->totals.center_version;
    for (int k = 0; k < spec.needs.server_states; ++k)
      start.server_states.push_back(find(checkpoint, server_state_prefix(k)));
  }
  if (!spec.needs.averages()) return start;
  if (const auto model = spec.needs.model_slot; spec.needs.model != strategies::ModelHome::center) {
    start.average = start.parameters;
    start.average_slot = model;
  } else {
    start.server_states.resize(spec.needs.server_states);
    auto& average = start.server_states.at(model.index);
    if (!average) average = start.parameters;  // an average that is always a model begins at the parameters
  }
  if (auto followed = find(checkpoint, kCenterPrefix)) start.parameters = std::move(followed);
  return start;
}

}  // namespace troupe::experiment
