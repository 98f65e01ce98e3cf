#include "sim/replay/session.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiment/state/start_state.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::replay {

using experiment::RunSpec;

namespace {

core::Result<RunSpec> drawn(const std::string& file, const std::vector<std::string>& overrides, bool open_data) {
  auto config = core::Config::load(experiment::schema(), file, overrides);
  if (!config) return tl::unexpected(config.error());
  const auto settings = experiment::resolve(std::move(*config), experiment::Use::remains);
  if (!settings) return tl::unexpected(settings.error());
  return experiment::build_run_spec(*settings, open_data);
}

/// Why `spec` cannot follow the recorded schedule; empty: it can.
std::string misfit(const RunSpec& recorded, const RunSpec& spec, bool goes_on) {
  if (spec.workers != recorded.workers || spec.servers != recorded.servers) {
    return fmt::format("these settings need {} workers and {} servers; the recording has {} and {}", spec.workers,
                       spec.servers, recorded.workers, recorded.servers);
  }
  if (!goes_on) return {};
  const auto there = experiment::state_slots(recorded);
  const auto wanted = experiment::state_slots(spec);
  const bool workers = std::all_of(wanted.begin(), wanted.end(), [&](strategies::Slot slot) {
    return std::find(there.begin(), there.end(), slot) != there.end();
  });
  const auto model = spec.needs.model_slot;  // of the state vectors only the recorded model slot is valid
  const bool servers = spec.needs.server_states <= recorded.needs.server_states &&
                       (model.kind != strategies::SlotKind::state || model == recorded.needs.model_slot);
  if (workers && servers) return {};
  return fmt::format(
      "the recording begins in the middle of the run, and its {} do not have the vectors that these "
      "settings need",
      workers ? "servers" : "workers");
}

bool may_change(const std::string& strategy, const std::string& key) {
  const auto* const row = strategies::find(strategy);
  return key.starts_with("train.") ||
         (row && std::ranges::any_of(row->replayable_options,
                                     [&](const std::string& name) { return key == "strategy." + name; }));
}

}  // namespace

std::string changeable(const std::string& strategy) {
  std::string list;
  const auto* const row = strategies::find(strategy);
  for (std::size_t k = 0; row && k < row->replayable_options.size(); ++k)
    list += fmt::format("{}strategy.{}", k == 0 ? "" : ", ", row->replayable_options[k]);
  return list + (list.empty() ? "train.* only" : " and train.*");
}

core::Result<void> check_overrides(const std::string& file, const std::vector<std::string>& overrides) {
  const auto recorded = core::Config::load(experiment::schema(), file, {});
  if (!recorded) return tl::unexpected(recorded.error());
  const auto strategy = recorded->get(strategies::strategy_table()).name;
  for (const auto& text : overrides) {
    const auto changed = core::Config::load(experiment::schema(), file, {text});
    if (!changed) return tl::unexpected(changed.error());
    const auto begin = text.find_first_not_of(" \t");
    const auto key = text.substr(begin, text.find_first_of(" =\t", begin) - begin);
    if (may_change(strategy, key) || (changed->unused() == recorded->unused() && *changed == *recorded)) continue;
    return core::fail(core::Errc::config,
                      fmt::format("--set {}: a replay keeps the recorded schedule, and {} may change it; with {} a "
                                  "replay can change {}",
                                  text, key, strategy, changeable(strategy)));
  }
  return {};
}

core::Result<Session> open_session(const std::string& file, const std::vector<std::string>& overrides) {
  auto spec = drawn(file, overrides, true);
  if (!spec) return tl::unexpected(spec.error());
  if (overrides.empty()) return Session{file, overrides, *spec, *spec};
  auto recorded = drawn(file, {}, false);
  if (!recorded) return tl::unexpected(recorded.error());
  recorded->source = spec->source;  // a schedule refers to samples: the data must not change
  return Session{file, overrides, std::move(*recorded), std::move(*spec)};
}

core::Result<void> check_fit(const Session& session, bool goes_on) {
  const auto why = misfit(session.recorded, session.spec, goes_on);
  if (why.empty()) return {};
  std::vector<std::string> conflicting;
  for (const auto& one : session.overrides) {
    const auto alone = drawn(session.file, {one}, false);
    if (alone && !misfit(session.recorded, *alone, goes_on).empty()) conflicting.push_back(one);
  }
  return core::fail(
      core::Errc::config,
      fmt::format("--set {}: {}", fmt::join(conflicting.empty() ? session.overrides : conflicting, ", "), why));
}

core::Result<void> check_arithmetic(const experiment::RunPlan& plan, const experiment::RunSpec& recorded,
                                    const std::string& file) {
  const auto& changed = recorded.needs.changed_arithmetic;
  if (!changed || plan.arithmetic >= changed->since) return {};
  return core::fail(core::Errc::config,
                    fmt::format("{}: recorded by version 0.1, whose {} = {} comes to other bits than this program's: "
                                "replay it with that version",
                                file, changed->key, core::to_toml(recorded.settings->config.value(changed->key))));
}

core::Result<void> check_exchange(const experiment::ExchangePlan& plan, const experiment::RunSpec& run,
                                  const std::string& file, bool same_numbers) {
  if (plan.in_place()) return {};
  if (plan.worker_sites.size() != run.workers || plan.server_sites.size() != run.servers)
    return core::fail(core::Errc::corrupt,
                      fmt::format("{}: it places {} workers and {} servers; the run has {} and {}", file,
                                  plan.worker_sites.size(), plan.server_sites.size(), run.workers, run.servers));
  const auto by_library = std::ranges::find_if(
      plan.reductions, [](const auto& reduction) { return exchange::info(reduction.algorithm).in_unknown_order(); });
  if (by_library == plan.reductions.end() || !same_numbers) return {};
  return core::fail(core::Errc::config,
                    fmt::format("{}: sums were formed by a library (exchange.algorithm = \"{}\"), in an order of its "
                                "own: such a run cannot be replayed; use \"asa\" or \"ring\" for one that can",
                                file, exchange::name(by_library->algorithm)));
}

}  // namespace troupe::replay
