#include "replay/session.hpp"

namespace troupe::replay {

using experiment::Blueprint;

namespace {

core::Result<Blueprint> drawn(const std::string& file, const std::vector<std::string>& overrides, bool open_data) {
  auto config = core::Config::load(experiment::schema(), file, overrides);
  if (!config) return tl::unexpected(config.error());
  const auto settings = experiment::resolve(std::move(*config));
  if (!settings) return tl::unexpected(settings.error());
  return experiment::draw(*settings, open_data);
}

}  // namespace

core::Result<Session> open_session(const std::string& file, const std::vector<std::string>& overrides) {
  auto plan = drawn(file, overrides, true);
  if (!plan) return tl::unexpected(plan.error());
  if (overrides.empty()) return Session{file, overrides, *plan, *plan};
  auto recorded = drawn(file, {}, false);
  if (!recorded) return tl::unexpected(recorded.error());
  recorded->source = plan->source;  // a schedule is one of samples: changes are none of the data
  return Session{file, overrides, std::move(*recorded), std::move(*plan)};
}

}  // namespace troupe::replay
