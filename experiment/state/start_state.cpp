#include "experiment/state/start_state.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/plural.hpp"
#include "nn/initialise.hpp"
#include "strategies/combined/averaged.hpp"

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
/// Whether there is an average beside it, as train.ema has it, matters to the average alone. Before kResumeArithmetic it mattered to all.
bool servers_go_on(const RunSpec& spec, const Checkpoint* checkpoint, int arithmetic) {
  if (!checkpoint || spec.needs.server_state_of.empty()) return false;
  if (arithmetic < kResumeArithmetic) return checkpoint->server_optimizer == spec.needs.server_state_of;
  return strategies::without_average(checkpoint->server_optimizer) ==
         strategies::without_average(spec.needs.server_state_of);
}

/// Whether workers that must have equal states take the same one of those in a checkpoint.
bool must_take_one(const RunSpec& spec, int arithmetic) {
  return spec.needs.worker_state == strategies::WorkerState::replicated && arithmetic >= kResumeArithmetic;
}

/// Whose saved optimizer state a worker continues with: -1 is the one that all share; none: it begins its own.
std::optional<int> state_owner(const RunSpec& spec, const Checkpoint& checkpoint, std::uint32_t worker,
                               int arithmetic) {
  std::vector<int> candidates{-1};
  if (must_take_one(spec, arithmetic))
    for (std::size_t rank = 0; rank < checkpoint.totals.worker_steps.size(); ++rank)
      candidates.push_back(static_cast<int>(rank));
  else
    candidates.insert(candidates.begin(), static_cast<int>(worker));
  const auto has = [&](int whose) { return checkpoint.vectors.contains(optimizer_prefix(whose, 0)); };
  const auto found = std::ranges::find_if(candidates, has);
  return found == candidates.end() ? std::nullopt : std::optional(*found);
}

bool keeps_worker_states(const Checkpoint& checkpoint) {
  return checkpoint.vectors.contains(optimizer_prefix(-1, 0)) || checkpoint.vectors.contains(optimizer_prefix(0, 0));
}

/// Notes for the user about saved state that is not taken over.
std::vector<Note> left_behind(const RunSpec& spec, const Checkpoint* checkpoint, int arithmetic) {
  std::vector<Note> notes;
  if (!checkpoint) return notes;
  if (spec.needs.worker_state != strategies::WorkerState::discarded && !workers_go_on(spec, checkpoint))
    notes.push_back({Note::Level::warning,
                     fmt::format("the checkpoint's optimizer state is that of \"{}\": \"{}\" starts with its own",
                                 checkpoint->optimizer, spec.settings->train.optimizer)});
  if (spec.needs.worker_state == strategies::WorkerState::discarded && keeps_worker_states(*checkpoint))
    notes.push_back(
        {Note::Level::warning,
         fmt::format(
             "the workers' optimizer state in the checkpoint, of \"{}\", is not taken up: workers of {} keep none now",
             checkpoint->optimizer, spec.settings->strategy)});
  const bool averages = spec.needs.averages() && spec.needs.model == strategies::ModelHome::center;
  const auto server_optimizer = strategies::without_average(checkpoint->server_optimizer);
  const bool averaged = server_optimizer != checkpoint->server_optimizer;
  if (averages && averaged && servers_go_on(spec, checkpoint, arithmetic) &&
      !checkpoint->vectors.contains(kCenterPrefix))
    notes.push_back(
        {Note::Level::warning,
         "the checkpoint, of an older program, has the average and not the centre: the centre begins there"});
  if (!spec.needs.averages() && arithmetic >= kResumeArithmetic && checkpoint->vectors.contains(kCenterPrefix))
    notes.push_back({Note::Level::info,
                     "the model was an average of what is trained: the run goes on from the trained parameters "
                     "themselves, and they are the model now"});
  if (!server_optimizer.empty() && !servers_go_on(spec, checkpoint, arithmetic))
    notes.push_back(
        {Note::Level::warning,
         fmt::format("the servers' state in the checkpoint, of \"{}\", is not taken up", server_optimizer)});
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

/// REQUIRES the worker's first step. Version 0.1 did not save how many steps had made the state: it used the worker's steps.
void take_states(const RunSpec& spec, const Checkpoint& checkpoint, std::uint32_t worker, int arithmetic,
                 StartState& start) {
  const auto whose = state_owner(spec, checkpoint, worker, arithmetic);
  for (int k = 0; whose && k < 2; ++k) {
    const auto prefix = optimizer_prefix(*whose, k);
    auto state = find(&checkpoint, prefix);
    if (!state) continue;
    start.optimizer_states[worker].push_back(std::move(state));
    const auto steps = checkpoint.optimizer_steps.find(prefix);
    const bool known = steps != checkpoint.optimizer_steps.end();
    start.optimizer_steps[worker] = known ? steps->second : start.first_steps[worker];
  }
}

Note all_take_that_of(std::int64_t worker) {
  return {Note::Level::warning,
          fmt::format("each worker had an optimizer state of its own: all go on with that of worker {}", worker)};
}

/// Whether the workers' optimizers were equal in the session that wrote the checkpoint, as far as it tells.
bool were_equal(const Checkpoint& checkpoint) {
  const auto strategy = core::Config::parse(schema(), checkpoint.config, "the checkpoint", {})
                            .and_then([](core::Config config) { return resolve(std::move(config), Use::remains); })
                            .and_then(make_strategy);
  return !strategy || (*strategy)->needs().worker_state == strategies::WorkerState::replicated;
}

/// Of programs: a worker's own has its random numbers, too. Optimizers that must be equal take one worker's where they were not, and any where
/// their own was not saved.
void take_own_states(const RunSpec& spec, const Checkpoint& checkpoint, int arithmetic, StartState& start) {
  const auto& states = checkpoint.own_states;
  std::vector<std::string> without;
  start.own_states.resize(spec.workers);
  const bool equal = spec.needs.worker_state == strategies::WorkerState::replicated;
  const bool one_for_all = must_take_one(spec, arithmetic) && states.size() > 1 && !were_equal(checkpoint);
  if (one_for_all) start.notes.push_back(all_take_that_of(states.begin()->first));
  for (std::uint32_t worker = 0; worker < spec.workers; ++worker) {
    auto own = one_for_all ? states.begin() : states.find(worker);
    if (own == states.end() && equal) own = states.begin();
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

StartState start_state(const RunSpec& spec, const Checkpoint* checkpoint, int arithmetic) {
  StartState start{.parameters = find(checkpoint, ""),
                   .statistics = nullptr,
                   .optimizer_states = std::vector<std::vector<CanonicalVector>>(spec.workers),
                   .first_steps = std::vector<strategies::Step>(spec.workers, 0),
                   .optimizer_steps = std::vector<std::uint64_t>(spec.workers, 0),
                   .server_states = {},
                   .center_version = 0,
                   .notes = left_behind(spec, checkpoint, arithmetic)};
  if (!start.parameters) start.parameters = fresh_parameters(spec);
  if (checkpoint) start.statistics = std::make_shared<const std::vector<float>>(checkpoint->statistics);
  if (workers_go_on(spec, checkpoint)) {
    for (std::uint32_t worker = 0; worker < spec.workers; ++worker) {
      start.first_steps[worker] = first_step(spec, *checkpoint, worker);
      take_states(spec, *checkpoint, worker, arithmetic, start);
    }
    const auto whose = state_owner(spec, *checkpoint, 0, arithmetic);
    if (must_take_one(spec, arithmetic) && whose.value_or(-1) >= 0 && checkpoint->totals.worker_steps.size() > 1)
      start.notes.push_back(all_take_that_of(*whose));
  }
  if (checkpoint && spec.graph->is_program()) take_own_states(spec, *checkpoint, arithmetic, start);
  if (servers_go_on(spec, checkpoint, arithmetic)) {
    start.center_version = checkpoint->totals.center_version;
    for (int k = 0; k < spec.needs.server_states; ++k)
      start.server_states.push_back(find(checkpoint, server_state_prefix(k)));
  }
  // "" is the average; --init makes its checkpoint of that alone. Before kResumeArithmetic a run without an average went on from it.
  auto followed = find(checkpoint, kCenterPrefix);
  if (!spec.needs.averages()) {
    if (followed && arithmetic >= kResumeArithmetic) start.parameters = std::move(followed);
    return start;
  }
  if (const auto model = spec.needs.model_slot; spec.needs.model != strategies::ModelHome::center) {
    start.average = start.parameters;
    start.average_slot = model;
  } else {
    start.server_states.resize(spec.needs.server_states);
    auto& average = start.server_states.at(model.index);
    if (!average) average = start.parameters;  // an average that is always a model begins at the parameters
  }
  if (followed) start.parameters = std::move(followed);
  return start;
}

}  // namespace troupe::experiment
