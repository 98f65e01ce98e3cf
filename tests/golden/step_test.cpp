// One training step of whole networks: loss, all gradients and the running statistics are PyTorch's.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "nn/layout.hpp"
#include "tests/golden/formula.hpp"

namespace troupe::golden {
namespace {

constexpr double kLossTolerance = 3e-5;  // relative; PyTorch's own float32 is 1.1e-5 off for resnet50
constexpr double kLeastRounding = 1e-4;  // of gradients; make_goldens.py measured PyTorch's own for each model
constexpr double kNormTolerance = 4;     // times the rounding, of a tensor's norm
constexpr double kEntryTolerance = 20;   // times the rounding, of the entry and of the tensor's root mean square
constexpr double kStatisticTolerance = 1e-4;

class GoldenStep : public GoldenTest {};
TROUPE_OVER_GOLDEN_BACKENDS(GoldenStep);

TEST_P(GoldenStep, LossGradientsAndStatisticsAreThoseOfPyTorch) {
  for (const auto& row : rows("steps.json")) {
    SCOPED_TRACE(row["model"].get<std::string>() + " " + row["activation"].get<std::string>());
    const auto graph = zoo_model(row);
    const std::int64_t batch = row["batch"];
    Model model(GetParam(), graph, batch, true);
    const auto samples = samples_of(graph, batch);
    const auto result = model.replica->step(samples.batch(), {});
    ASSERT_TRUE(result) << result.error().message;
    const double loss = row["loss"];
    EXPECT_NEAR(result->loss, loss, kLossTolerance * loss);

    std::vector<float> gradients(static_cast<std::size_t>(graph.parameter_count()));
    model.replica->layout()->to_canonical(model.replica->gradients(), gradients);
    const auto& expected = row["gradients"];
    const double rounding = std::max(row["rounding"].get<double>(), kLeastRounding);
    EXPECT_EQ(expected.size(), graph.parameters().size());
    std::size_t offset = 0;
    for (const auto& parameter : graph.parameters()) {
      const auto gradient = std::span(gradients).subspan(offset, static_cast<std::size_t>(parameter.size()));
      offset += gradient.size();
      ASSERT_TRUE(expected.contains(parameter.name)) << parameter.name;
      const auto numbers = expected[parameter.name].get<std::vector<double>>();  // norm, first, middle, last
      double squares = 0;
      for (const float value : gradient) squares += static_cast<double>(value) * static_cast<double>(value);
      EXPECT_NEAR(std::sqrt(squares), numbers[0], kNormTolerance * rounding * numbers[0]) << parameter.name;
      const double typical = numbers[0] / std::sqrt(static_cast<double>(gradient.size()));
      const auto near = [&](float value, double wanted) {
        EXPECT_NEAR(value, wanted, kEntryTolerance * rounding * (std::abs(wanted) + typical)) << parameter.name;
      };
      near(gradient.front(), numbers[1]);
      near(gradient[gradient.size() / 2], numbers[2]);
      near(gradient.back(), numbers[3]);
    }

    const auto layout = nn::statistics_layout(graph);
    std::vector<float> statistics(layout.canonical_floats());
    layout.to_canonical(model.replica->statistics(), statistics);
    EXPECT_EQ(row["statistics"].size(), graph.statistics().size());
    offset = 0;
    for (const auto& statistic : graph.statistics()) {
      const auto values = std::span(statistics).subspan(offset, static_cast<std::size_t>(statistic.channels));
      offset += values.size();
      const auto numbers = row["statistics"][statistic.name].get<std::vector<double>>();  // norm, last
      double squares = 0;
      for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
      EXPECT_NEAR(std::sqrt(squares), numbers[0], kStatisticTolerance * numbers[0]) << statistic.name;
      EXPECT_NEAR(values.back(), numbers[1], kStatisticTolerance * (std::abs(numbers[1]) + numbers[0]))
          << statistic.name;
    }
  }
}

}  // namespace
}  // namespace troupe::golden
