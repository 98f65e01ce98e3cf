#include <chrono>

#include "actors/run/assembly.hpp"
#include "experiment/state/start_state.hpp"
#include "sim/replay/run.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/contract/promises.hpp"
#include "tests/contract/worlds.hpp"
#include "tests/transport/tcp/certificates.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::contract {

std::vector<CenterFloat> center_of(const tests::SmallRun& run) {
  const auto spec = experiment::build_run_spec(run.settings().value(), true).value();
  const auto began = experiment::start_state(spec, nullptr).parameters;
  const auto tensors = run.tensors();
  std::vector<CenterFloat> center;
  for (const auto& parameter : spec.graph->parameters())
    for (const float ended : tensors.at(parameter.name)) center.push_back({began->at(center.size()), ended});
  return center;
}

namespace {

core::Duration steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

Seen train(tests::SmallRun& run, bool tls) {
  tell_time_by(steady_now);
  const auto end = tls ? run.train_launched([](actors::Launch& launch) {
    launch.options.tcp.tls = transport::testing::good_certificate();
  })
                       : run.train();
  tell_time_by({});
  if (end.failed) return {end.error.message};
  return {{}, center_of(run)};
}

World world(const std::string& name, const std::string& endpoint, bool tls, const std::vector<std::string>& more,
            const std::function<Seen(tests::SmallRun&)>& then) {
  const auto run = [endpoint, tls, more, then](const Scenario& scenario) {
    auto options = run_options(scenario);
    if (!endpoint.empty()) options.push_back("exchange.endpoint=" + endpoint);
    options.insert(options.end(), more.begin(), more.end());
    tests::SmallRun files(options);
    auto seen = train(files, tls);
    return then && seen.error.empty() ? then(files) : seen;
  };
  return {name, run, false, endpoint.empty() ? "" : transport::built_in_endpoints().absence(endpoint)};
}

/// Replays all rules from the journal.
Seen replay(tests::SmallRun& files) {
  reset();
  const auto report = replay::replay_run({files.run_directory().string(), {}}, tests::backend());
  if (!report) return {report.error().message};
  std::uint64_t hashes = 0;
  for (const auto& segment : report->segments) {
    hashes += segment.hashes;
    if (!segment.complete || segment.replayed != segment.events) return {segment.path + " was not replayed as a whole"};
  }
  if (hashes == 0) return {"no hash was compared"};
  return {{}, center_of(files)};
}

World made(const std::string& kind, bool dedicated, const std::function<Seen(tests::SmallRun&)>& then) {
  const std::string prefix = then ? "replay_of_" : "";
  if (kind.empty()) return world(prefix + "actors", "", false, {}, then);
  const bool tls = kind.ends_with("_tls");
  const std::string endpoint = kind.substr(0, kind.size() - (tls ? 4 : 0));
  if (!dedicated)
    return world(prefix + "actors_over_" + kind, endpoint, tls, {"cluster.server_placement=colocated"}, then);
  return world(prefix + "actors_over_" + kind + "_dedicated", endpoint, tls, {"cluster.server_placement=dedicated"},
               then);
}

}  // namespace

World actors_world() { return made("", false, {}); }
World actors_world_over(const std::string& endpoint, bool dedicated) { return made(endpoint, dedicated, {}); }
World replay_world(const std::string& endpoint) { return made(endpoint, false, replay); }

}  // namespace troupe::contract
