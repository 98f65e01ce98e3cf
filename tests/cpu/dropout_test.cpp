#include <algorithm>

#include <gtest/gtest.h>

#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

using namespace nn;

Graph with_dropout() {
  return graph_of({20, 1, 1},
                  {LinearLayer{40, {}}, ActivationLayer{Activation::relu}, DropoutLayer{0.5}, LinearLayer{10, {}}});
}

std::vector<float> outputs_of(Model& model) {
  const auto outputs = model.replica->outputs();
  return {outputs.begin(), outputs.end()};
}

TEST(DropoutByLease, IsTheSameWhoeverComputesIt) {
  Model one(with_dropout(), {.batch = 6, .seed = 9});
  Model two(with_dropout(), {.batch = 6, .seed = 9});
  (void)two.step(1);
  for (const std::uint64_t lease : {7u, 8u, 7u}) {
    (void)one.step(lease);
    (void)two.step(lease);
    EXPECT_EQ(outputs_of(one), outputs_of(two));
    EXPECT_EQ(one.canonical_gradients(), two.canonical_gradients());
  }
}

TEST(DropoutByLease, DiffersByLeaseAndSeed) {
  Model model(with_dropout(), {.batch = 6, .seed = 9});
  Model other_seed(with_dropout(), {.batch = 6, .seed = 10});
  (void)model.step(7);
  const auto first = outputs_of(model);
  (void)model.step(8);
  EXPECT_NE(outputs_of(model), first);
  (void)other_seed.step(7);
  EXPECT_NE(outputs_of(other_seed), first);
}

TEST(DropoutByLease, IsOffInEvaluation) {
  Model training(with_dropout(), {.batch = 6, .seed = 9});
  Model evaluating(with_dropout(), {.batch = 6, .training = false});
  const auto want = training.reference.run(training.images, training.labels);
  for (Model* model : {&training, &evaluating}) {
    ASSERT_TRUE(model->replica->evaluate(model->batch(7)).has_value());
    EXPECT_LT(relative_error(model->replica->outputs(), want.outputs), 1e-5);
  }
}

}  // namespace
}  // namespace troupe::cpu::testing
