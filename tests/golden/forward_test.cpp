// Evaluation of every model of the zoo gives PyTorch's logits.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "nn/zoo/models.hpp"
#include "tests/golden/formula.hpp"

namespace troupe::golden {
namespace {

constexpr double kForwardTolerance = 1e-4;  // of the greatest logit: float32 through up to 50 layers

TEST(Forward, FormulaGivesTheScriptsNumbers) {
  // uniform("images", 3) and uniform("fc.weight", 2) of make_goldens.py
  EXPECT_EQ(uniform("images", 3), (std::vector<double>{-0.6310510635375977, -0.9362485408782959, -0.7815343141555786}));
  EXPECT_EQ(uniform("fc.weight", 2), (std::vector<double>{-0.0307084321975708, 0.7445392608642578}));
}

class GoldenForward : public GoldenTest {};
TROUPE_OVER_GOLDEN_BACKENDS(GoldenForward);

TEST_P(GoldenForward, LogitsAreThoseOfPyTorch) {
  std::vector<std::string> seen;
  for (const auto& row : rows("forward.json")) {
    const std::string name = row["model"];
    SCOPED_TRACE(name);
    seen.push_back(name);
    const auto graph = zoo_model(row);
    const std::int64_t batch = row["batch"];
    Model model(GetParam(), graph, batch, false);
    const auto samples = samples_of(graph, batch);
    ASSERT_TRUE(model.replica->evaluate(samples.batch()));
    const auto expected = row["logits"].get<std::vector<double>>();
    const auto logits = model.replica->outputs();
    ASSERT_EQ(logits.size(), expected.size());
    double greatest = 0, error = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      greatest = std::max(greatest, std::abs(expected[i]));
      error = std::max(error, std::abs(static_cast<double>(logits[i]) - expected[i]));
    }
    EXPECT_LT(error, kForwardTolerance * greatest);
    RecordProperty(name, std::to_string(error / greatest));
  }
  std::vector<std::string> zoo;
  for (const auto& entry : nn::model_zoo()) zoo.push_back(entry.name);
  EXPECT_TRUE(std::ranges::is_permutation(seen, zoo));
}

}  // namespace
}  // namespace troupe::golden
