#include "tests/contract/worlds.hpp"

#include <ostream>
#include <set>

#include "tests/contract/evidence.hpp"
#include "tests/contract/promises.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::contract {

void PrintTo(const World& world, std::ostream* stream) { *stream << world.name; }

std::vector<World> worlds() {
  std::vector<World> all{explore_world(false), explore_world(true), sim_world(), actors_world()};
  for (const auto& endpoint : transport::endpoint_infos()) {
    const std::string name(endpoint.name);
    if (!endpoint.needs_job) all.push_back(actors_world_over(name));
    if (endpoint.listens) all.push_back(actors_world_over(name + "_tls"));
  }
  for (const char* endpoint : {"inproc", "tcp"}) all.push_back(actors_world_over(endpoint, true));
  all.push_back(nodes_world());
  for (const char* endpoint : {"", "inproc", "shm", "tcp", "tcp_tls"}) all.push_back(replay_world(endpoint));
  return all;
}

std::vector<std::string> run_options(const Scenario& scenario) {
  std::vector<std::string> options{"strategy.name=" + scenario.probe,
                                   "cluster.workers=" + std::to_string(scenario.workers),
                                   "cluster.servers=" + std::to_string(scenario.servers),
                                   "run.seed=" + std::to_string(scenario.seed),
                                   "run.epochs=" + std::to_string(scenario.epochs),
                                   "data.train_samples=1920",
                                   "data.test_samples=40",
                                   "train.optimizer=sgd"};
  options.insert(options.end(), scenario.options.begin(), scenario.options.end());
  return options;
}

std::string wrong_in(const std::vector<CenterFloat>& center) {
  std::set<double> versions;
  for (const auto& [shard, version] : tally().versions) versions.insert(static_cast<double>(version));
  std::set<double> found;
  for (std::size_t i = 0; i < center.size(); ++i) {
    const double unit = unit_of(center[i].began), ended = center[i].ended;
    const double times = unit == 0 ? 0 : ended / unit;
    if (unit == 0 ? ended == 0 : versions.contains(times)) {
      if (unit != 0) found.insert(times);
      continue;
    }
    return "float " + std::to_string(i) + " of the centre is " + std::to_string(ended) + ", " + std::to_string(times) +
           " times what it should be once: a number was wrong on its way";
  }
  return found == versions ? "" : "some shard has none of its versions in the centre";
}

}  // namespace troupe::contract
