/// Every strategy in every variant, and random runs for them, for tests of properties of all strategies.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "sim/explore/world/virtual_run.hpp"
#include "tests/strategies/made.hpp"

namespace troupe::strategies {

struct Variant {
  std::string name;
  std::string options;
  std::uint32_t least_workers = 1;
  std::uint32_t least_servers = 1;
  [[nodiscard]] std::string text() const { return name + ", " + options; }
};

/// Each registered strategy with the options that change what its rules do. A new strategy adds its lines here.
inline const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{
      {"bsp", "combine = \"gradients\""},
      {"bsp", "combine = \"updates\""},
      {"bsp", "combine = \"weights\""},
      {"bsp", "combine = \"weights\"\naverage_momentum = true"},
      {"bsp", "backup = 1", 2},
      {"bsp", "backup = 3", 4},
      {"easgd", "tau = 1"},
      {"easgd", "tau = 3\nalpha_worker = 0.9\nalpha_server = 0.1"},
      {"easgd", "tau = 1\noverlap = \"skip\""},
      {"easgd", "tau = 2\noverlap = \"wait\"\nbeta = 0.9"},
      {"eamsgd", "tau = 2"},
      {"eamsgd", "tau = 1\noverlap = \"wait\""},
      {"sync_easgd", "tau = 2"},
      {"downpour", ""},
      {"downpour", "n_push = 2\nn_fetch = 3\nstaleness_aware = true"},
      {"downpour", "n_push = 3\noverlap = \"skip\""},
      {"downpour", "server_optimizer = \"adam\"\nn_push = 2\noverlap = \"skip\""},
      {"downpour", "server_optimizer = \"adagrad\""},
      {"ssp", "s = 0"},
      {"ssp", "s = 2\nsteps_per_clock = 3"},
      {"ssp", "s = 1\noverlap = \"wait\""},
      {"local_sgd", "tau = 1"},
      {"local_sgd", "tau = 4\nfragments = 2\ndelay = 1", 1, 2},
      {"local_sgd", "tau = 2\nquorum = 2", 2},
      {"local_sgd", "tau = 6\nfragments = 3\ndelay = 1\nquorum = 1", 1, 3},
      {"diloco", "tau = 3"},
      {"diloco", "tau = 4\ndelay = 3\nquorum = 2", 3},
      {"mixed", "group_size = 2"},
      {"mixed", "group_size = 3\nn_push = 2\nn_fetch = 3\noverlap = \"skip\"\nserver_optimizer = \"adam\"\nema = 0.9"},
      {"mixed", "group_size = 2\ninner = \"easgd\"\ntau = 2\noverlap = \"wait\"\nema = 0.99"},
      {"mixed", "group_size = 2\ninner = \"ssp\"\ns = 1\noverlap = \"wait\""},
      {"mixed", "group_size = 1\ninner = \"ssp\"\ns = 0\nsteps_per_clock = 2"},
      {"gossip", "p = 0.5"},
      {"gossip", "p = 1"},
      {"pairs", "tau = 1"},
      {"pairs", "tau = 2"},
  };
  return all;
}

/// `shape` as the variant requires it: its optimizer, and enough members.
inline explore::VirtualRunOptions fitted(const Variant& variant, explore::VirtualRunOptions shape) {
  const auto* row = find(variant.name);
  if (row && row->local_optimizer) shape.optimizer = {.kind = *row->local_optimizer, .lr = 0.02F, .momentum = 0.8F};
  shape.workers = std::max(shape.workers, variant.least_workers);
  shape.servers = std::max(shape.servers, variant.least_servers);
  return shape;
}

/// 1 to 5 workers of unequal speed, 1 to 4 shards, 1 to 12 steps: a pure function of the seed and of the variant's requirements.
inline explore::VirtualRunOptions random_shape(const Variant& variant, std::uint64_t seed) {
  core::Random random{seed, core::Purpose::test, 0};
  explore::VirtualRunOptions options;
  options.workers = static_cast<std::uint32_t>(1 + random.below(5));
  options.servers = static_cast<std::uint32_t>(1 + random.below(4));
  options.steps = 1 + random.below(12);
  options.seed = seed;
  options.delays = random.below(3) == 0 ? explore::Delays::even : explore::Delays::extreme;
  options.buckets = static_cast<int>(random.below(4));
  if (random.below(2) == 0) options.optimizer = {.kind = core::OptimizerKind::momentum, .lr = 0.02F, .momentum = 0.9F};
  for (std::uint32_t w = 0; w < options.workers; ++w) options.slowdown.push_back(random.uniform(0.5, 4));
  return fitted(variant, options);
}

inline std::unique_ptr<Strategy> made_for(const Variant& variant, const explore::VirtualRunOptions& shape) {
  return made("[strategy]\nname = \"" + variant.name + "\"\n" + variant.options,
              {.workers = shape.workers, .servers = shape.servers, .optimizer = shape.optimizer});
}

}  // namespace troupe::strategies
