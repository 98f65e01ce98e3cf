#include "tests/histories/conduct.hpp"

namespace troupe::histories {

Conduct conduct_of(const History& history) {
  const auto name = history.strategy();
  Conduct conduct;
  const auto backup = history.setting("strategy.backup");
  const bool backups = name == "bsp" && !backup.empty() && backup != "0";
  conduct.in_step = name != "easgd" && name != "eamsgd" && name != "downpour" && name != "gossip";
  conduct.passes_over = backups;
  conduct.goes_on = name != "pairs" && name != "mixed" && (name != "bsp" || backups);
  conduct.newcomers = conduct.goes_on && name != "gossip";
  conduct.at_epochs = conduct.in_step;
  const auto combine = history.setting("strategy.combine");
  const auto optimizer = history.setting("train.optimizer");
  const bool stateless = optimizer == "sgd";
  const bool averages = history.setting("strategy.average_momentum") == "true";
  conduct.last_step =
      name == "bsp" && !backups && (combine.empty() || combine == "gradients" || (stateless && !averages));
  const bool center = name != "gossip" && name != "pairs" && (name != "bsp" || backups);
  if (center && history.setting("cluster.server_placement") == "colocated") conduct.goes_on = conduct.newcomers = false;
  return conduct;
}

std::set<int> exit_codes(const Conduct& conduct, const Session& session) {
  if (session.crashed) return session.may_finish ? std::set{-1, 0} : std::set{-1};
  std::set<int> codes;
  const bool nobody = session.nodes > 0 && session.nodes_lost >= session.nodes;
  if (session.lost && (nobody || !conduct.goes_on)) codes.insert(75);
  if (session.interrupted) codes.insert(130);
  if (session.may_finish) codes.insert(0);
  return codes;
}

}  // namespace troupe::histories
