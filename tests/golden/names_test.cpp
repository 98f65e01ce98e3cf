// The models that torchvision has too name and shape their tensors as its state_dict does, so that its weights fit.
#include <map>

#include <gtest/gtest.h>

#include "tests/golden/formula.hpp"

namespace troupe::golden {
namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

TEST(Names, TensorsAreThoseOfTorchvisionsStateDicts) {
  std::size_t models = 0;
  for (const auto& row : rows("state_dicts.json")) {
    SCOPED_TRACE(row["model"].get<std::string>());
    const auto graph = zoo_model(row);
    Shapes ours;
    for (const auto& parameter : graph.parameters()) ours[parameter.name] = parameter.shape;
    for (const auto& statistic : graph.statistics()) {
      ours[statistic.name] = {statistic.channels};
      constexpr std::string_view kMean = "running_mean";
      if (statistic.name.ends_with(kMean))
        ours[statistic.name.substr(0, statistic.name.size() - kMean.size()) + "num_batches_tracked"] = {};
    }
    EXPECT_EQ(ours, row["tensors"].get<Shapes>());
    ++models;
  }
  EXPECT_EQ(models, 6U);
}

}  // namespace
}  // namespace troupe::golden
