#include "sim/explore/invariants/invariants.hpp"

#include <algorithm>
#include <map>

namespace troupe::explore {
namespace {

/// The inputs from which invariants are made.
struct Run {
  const Schedule& schedule;
  const core::Config& config;
  const Needs& needs;
  [[nodiscard]] std::int64_t whole(const char* key) const { return std::get<std::int64_t>(config.value(key)); }
  [[nodiscard]] double real(const char* key) const { return std::get<double>(config.value(key)); }
  [[nodiscard]] bool flag(const char* key) const { return std::get<bool>(config.value(key)); }
  [[nodiscard]] std::string word(const char* key) const { return std::get<std::string>(config.value(key)); }
};

void bsp(Invariants& all, const Run& run) {
  all.push_back(equal_replicas());
  const auto backup = run.whole("strategy.backup");
  if (backup > 0) all.push_back(backup_steps(static_cast<std::size_t>(backup)));
}

/// `workers`: number of members that exchange: groups, where groups do.
void elastic(Invariants& all, const Run& run, std::uint32_t workers) {
  const double beta = run.real("strategy.beta");
  const double alpha = beta > 0 ? beta / workers : run.real("strategy.alpha");
  const auto or_alpha = [&](const char* key) { return run.real(key) < 0 ? alpha : run.real(key); };
  all.push_back(
      elastic_exchanges({.alpha_worker = or_alpha("strategy.alpha_worker"),
                         .alpha_server = or_alpha("strategy.alpha_server"),
                         .schedule = std::get<std::vector<double>>(run.config.value("strategy.alpha_schedule"))}));
}

void easgd(Invariants& all, const Run& run) { elastic(all, run, run.schedule.workers); }

void sync_easgd(Invariants& all, const Run& run) {
  const double alpha = run.real("strategy.alpha");
  all.push_back(sync_elastic_rounds(alpha > 0 ? alpha : run.real("strategy.beta") / run.schedule.workers));
}

void downpour(Invariants& all, const Run& run) {
  all.push_back(pushes_count(run.word("strategy.server_optimizer") != "none", run.flag("strategy.staleness_aware")));
}

void clocks(Invariants& all, const Run& run, std::uint32_t group_size) {
  all.push_back(pushes_count(false, false));
  all.push_back(ssp_clocks(static_cast<Step>(run.whole("strategy.s")),
                           static_cast<Step>(run.whole("strategy.steps_per_clock")), group_size));
}

void ssp(Invariants& all, const Run& run) { clocks(all, run, 1); }

void local_sgd(Invariants& all, const Run& run) {
  const bool nesterov = run.word("strategy.outer") == "nesterov";
  const double lr = run.real("strategy.outer_lr");
  all.push_back(outer_rounds({.nesterov = nesterov,
                              .lr = lr > 0     ? lr
                                    : nesterov ? 0.7
                                               : 1,
                              .momentum = run.real("strategy.outer_momentum")},
                             static_cast<std::size_t>(run.whole("strategy.quorum"))));
}

void mixed(Invariants& all, const Run& run) {
  const auto size = std::min(static_cast<std::uint32_t>(run.whole("strategy.group_size")), run.schedule.workers);
  all.push_back(equal_replicas(size));
  const auto inner = run.word("strategy.inner");
  if (inner == "downpour") downpour(all, run);
  if (inner == "easgd") elastic(all, run, (run.schedule.workers + size - 1) / size);
  if (inner == "ssp") clocks(all, run, size);
  if (run.real("strategy.ema") > 0) all.push_back(moving_average(run.real("strategy.ema"), run.needs.model_slot));
}

void gossip(Invariants& all, const Run&) { all.push_back(gossip_weights()); }
void pairs(Invariants& all, const Run&) { all.push_back(means_of_pairs()); }

}  // namespace

Invariants invariants_for(const Schedule& schedule, const core::Config& config, const Needs& needs) {
  using Add = void (*)(Invariants&, const Run&);
  static const std::map<std::string, Add> kOwn{
      {"bsp", bsp},           {"easgd", easgd},   {"eamsgd", easgd},        {"sync_easgd", sync_easgd},
      {"downpour", downpour}, {"ssp", ssp},       {"local_sgd", local_sgd}, {"diloco", local_sgd},
      {"mixed", mixed},       {"gossip", gossip}, {"pairs", pairs}};
  Invariants all;
  all.push_back(general());
  if (const auto own = kOwn.find(schedule.strategy); own != kOwn.end()) own->second(all, {schedule, config, needs});
  return all;
}

}  // namespace troupe::explore
