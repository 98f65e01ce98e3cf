// A wire of 16 bits must not lose the updates of float32 masters. With a learning rate of 10⁻⁵ a step is far below the rounding of a
// parameter: a master that is rounded at every exchange does not move at all.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

using Options = std::vector<std::string>;
using Tensors = std::map<std::string, std::vector<float>>;

struct Way {
  std::string name;
  Options options;
};

/// τ = 1 in all of them. One worker where the order of several workers' exchanges is random.
std::vector<Way> ways() {
  const auto way = [](const std::string& name, const std::string& strategy, int workers, const Options& more = {}) {
    Options options{"strategy.name=" + strategy, "cluster.workers=" + std::to_string(workers)};
    options.insert(options.end(), more.begin(), more.end());
    return Way{name, options};
  };
  const std::string each = "strategy.tau=1", weights = "strategy.combine=weights";
  return {way("easgd", "easgd", 1, {each}),
          way("easgd_overlap", "easgd", 1, {each, "strategy.overlap=wait"}),
          way("eamsgd", "eamsgd", 1, {each, "train.optimizer=nesterov"}),
          way("sync_easgd", "sync_easgd", 3, {each}),
          way("pairs", "pairs", 2, {each}),
          way("bsp", "bsp", 3),
          way("bsp_updates", "bsp", 3, {"strategy.combine=updates"}),
          way("bsp_weights", "bsp", 3, {weights}),
          way("bsp_weights_and_velocity", "bsp", 3, {weights, "strategy.average_momentum=true"}),
          way("downpour", "downpour", 1),
          way("ssp", "ssp", 1),
          way("local_sgd", "local_sgd", 2, {each}),
          way("diloco", "diloco", 2, {each, "strategy.outer_lr=0.1"}),
          way("mixed_easgd", "mixed", 2, {each, "strategy.inner=easgd"})};
}

Options options_of(const Way& way, const Options& more) {
  Options options{"exchange.endpoint=inproc", "cluster.server_placement=dedicated", "train.lr=1e-5", "run.epochs=4"};
  options.insert(options.end(), way.options.begin(), way.options.end());
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

/// The parameters of the model after training.
Tensors trained(const Way& way, const Options& more) {
  SmallRun run(options_of(way, more));
  const auto end = run.train();
  EXPECT_FALSE(end.failed) << end.error.message;
  auto tensors = run.tensors();
  const auto spec = experiment::build_run_spec(*run.settings(), false).value();
  std::erase_if(tensors, [&](const auto& tensor) {
    return std::ranges::none_of(spec.graph->parameters(), [&](const auto& p) { return p.name == tensor.first; });
  });
  EXPECT_FALSE(tensors.empty());
  return tensors;
}

double distance(const Tensors& one, const Tensors& other) {
  double squares = 0;
  for (const auto& [name, values] : one)
    for (std::size_t i = 0; i < values.size(); ++i)
      squares += std::pow(static_cast<double>(values[i]) - static_cast<double>(other.at(name).at(i)), 2);
  return std::sqrt(squares);
}

class Rounding : public ::testing::TestWithParam<Way> {};

TEST_P(Rounding, AMasterVectorIsNotRoundedByA16BitWire) {
  const auto began = trained(GetParam(), {"train.lr=0", "exchange.wire=fp32"});
  const auto whole = trained(GetParam(), {"exchange.wire=fp32"});
  const auto rounded = trained(GetParam(), {"exchange.wire=bf16"});
  const auto way = distance(whole, began);
  ASSERT_GT(way, 0);
  EXPECT_LT(distance(rounded, whole), 0.05 * way) << "it came elsewhere, or nowhere";
}

INSTANTIATE_TEST_SUITE_P(, Rounding, ::testing::ValuesIn(ways()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe::tests
