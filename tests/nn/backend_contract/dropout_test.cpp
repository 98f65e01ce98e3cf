#include <algorithm>

#include <gtest/gtest.h>

#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

class DropoutByLease : public BackendTest {};
TROUPE_OVER_BACKENDS(DropoutByLease);

Graph with_dropout() {
  return graph_of({20, 1, 1},
                  {LinearLayer{40, {}}, ActivationLayer{Activation::relu}, DropoutLayer{0.5}, LinearLayer{10, {}}});
}

std::vector<float> outputs_of(Model& model) {
  const auto outputs = model.replica->outputs();
  return {outputs.begin(), outputs.end()};
}

TEST_P(DropoutByLease, IsTheSameInEveryReplica) {
  Model one(backend(), with_dropout(), {.batch = 6, .seed = 9});
  Model two(backend(), with_dropout(), {.batch = 6, .seed = 9});
  (void)two.step(1);
  for (const std::uint64_t lease : {7u, 8u, 7u}) {
    (void)one.step(lease);
    (void)two.step(lease);
    EXPECT_EQ(outputs_of(one), outputs_of(two));
    EXPECT_EQ(one.canonical_gradients(), two.canonical_gradients());
  }
}

TEST_P(DropoutByLease, DiffersByLeaseAndSeed) {
  Model model(backend(), with_dropout(), {.batch = 6, .seed = 9});
  Model other_seed(backend(), with_dropout(), {.batch = 6, .seed = 10});
  (void)model.step(7);
  const auto first = outputs_of(model);
  (void)model.step(8);
  EXPECT_NE(outputs_of(model), first);
  (void)other_seed.step(7);
  EXPECT_NE(outputs_of(other_seed), first);
}

TEST_P(DropoutByLease, IsOffInEvaluation) {
  Model training(backend(), with_dropout(), {.batch = 6, .seed = 9});
  Model evaluating(backend(), with_dropout(), {.batch = 6, .training = false});
  const auto want = training.reference.run(training.images, training.labels);
  for (Model* model : {&training, &evaluating}) {
    ASSERT_TRUE(model->replica->evaluate(model->batch(7)).has_value());
    EXPECT_LT(relative_error(model->replica->outputs(), want.outputs), 1e-5);
  }
}

}  // namespace
}  // namespace troupe::nn::testing
