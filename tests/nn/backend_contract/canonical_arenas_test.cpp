// CompileOptions::canonical_arenas: every backend then has plain_layout(), and computes what it computes without. The rest of the suite runs
// over such replicas, too: backends.cpp has a backend that always compiles with them.
#include <algorithm>

#include <gtest/gtest.h>

#include "nn/zoo/models.hpp"
#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

/// Groups, images of few channels, kernels of 1 and more, Winograd's sizes, a pooled convolution, batch norm.
std::vector<Graph> canonical_nets() {
  const PoolLayer halve{PoolKind::max, 2, 2, 0};
  return {lenet(), small_net(),
          graph_of({3, 12, 12}, {Conv2dLayer{32, 3, 1, 1, {}}, halve, Conv2dLayer{64, 3, 1, 1, {}, 2},
                                 ActivationLayer{Activation::relu}, Conv2dLayer{20, 1, 1, 0, {}, 1, false},
                                 BatchNormLayer{}, Conv2dLayer{8, 1, 2, 0, {}}, FlattenLayer{}, LinearLayer{5, {}}}),
          graph_of({3, 5, 5}, {Conv2dLayer{4, 1, 1, 0, {}}, FlattenLayer{}, LinearLayer{5, {}}})};
}

class CanonicalArenas : public BackendTest {};
TROUPE_OVER_BACKENDS(CanonicalArenas);

TEST_P(CanonicalArenas, HaveThePlainLayoutOfEveryBackend) {
  for (const Graph& graph : canonical_nets())
    for (const bool training : {true, false}) {
      Model model(backend(), graph, {.batch = 3, .canonical_arenas = true, .training = training});
      EXPECT_EQ(model.replica->layout_fingerprint(), plain_layout(graph).fingerprint());
    }
}

TEST_P(CanonicalArenas, ComputeTheSameBits) {
  for (const auto precision : backend().capabilities().precisions)
    for (const Graph& graph : canonical_nets()) {
      SCOPED_TRACE(::testing::Message() << name_of(precision) << ", " << graph.parameters().size() << " parameters");
      Model native(backend(), graph, {.batch = 3, .precision = precision, .measure = false});
      Model plain(backend(), graph, {.batch = 3, .precision = precision, .canonical_arenas = true, .measure = false});
      for (std::uint64_t lease = 0; lease < 3; ++lease) {
        native.momentum_step(lease);
        plain.momentum_step(lease);
        ASSERT_EQ(native.canonical_gradients(), plain.canonical_gradients()) << "step " << lease;
        ASSERT_EQ(native.canonical_parameters(), plain.canonical_parameters()) << "step " << lease;
      }
      const auto expected = native.replica->evaluate(native.batch());
      const auto result = plain.replica->evaluate(plain.batch());
      ASSERT_TRUE(expected && result);
      EXPECT_EQ(expected->loss, result->loss);
    }
}

TEST_P(CanonicalArenas, BucketsAreThoseOfEveryBackend) {
  for (const Graph& graph : canonical_nets()) {
    Model model(backend(), graph, {.batch = 2, .canonical_arenas = true});
    Model first(backend_of(backends().front()), graph, {.batch = 2, .canonical_arenas = true});
    ASSERT_EQ(model.replica->buckets().size(), first.replica->buckets().size());
    for (std::size_t b = 0; b < model.replica->buckets().size(); ++b) {
      EXPECT_EQ(model.replica->buckets()[b].offset, first.replica->buckets()[b].offset);
      EXPECT_EQ(model.replica->buckets()[b].count, first.replica->buckets()[b].count);
    }
  }
}

/// What one backend exports continues in every other one.
TEST_P(CanonicalArenas, CanonicalVectorsOfOneBackendContinueInAnother) {
  for (const auto& kind : backends()) {
    if (kind.absence && !kind.absence().empty()) continue;
    Model from(backend(), lenet(), {.batch = 4, .measure = false});
    Model to(backend_of(kind), lenet(), {.batch = 4, .measure = false});
    from.momentum_step(0);
    to.replica->import_canonical(from.canonical_parameters());
    EXPECT_EQ(to.canonical_parameters(), from.canonical_parameters());
    EXPECT_NEAR(to.step(1).loss, from.step(1).loss, 1e-4) << kind.name;
  }
}

}  // namespace
}  // namespace troupe::nn::testing
