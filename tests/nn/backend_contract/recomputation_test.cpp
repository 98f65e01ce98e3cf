// CompileOptions::recompute: the same step in less memory.
#include <gtest/gtest.h>

#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

/// Batch norms with and without relu, pooling of a sum, channels side by side of tensors that can all be computed again.
Graph branching_net() {
  return graph_of_nodes({3, 16, 16},
                        {{Conv2dLayer{.outputs = 32, .kernel = 3, .padding = 1, .weight = {}}, "conv1", {}},
                         {BatchNormLayer{}, "bn1", {"conv1"}},
                         {ActivationLayer{}, "relu1", {"bn1"}},
                         {Conv2dLayer{.outputs = 32, .kernel = 3, .padding = 1, .weight = {}}, "conv2", {"relu1"}},
                         {BatchNormLayer{}, "bn2", {"conv2"}},
                         {AddLayer{}, "add", {"bn2", "relu1"}},
                         {ActivationLayer{}, "relu2", {"add"}},
                         {PoolLayer{PoolKind::max, 3, 1, 1}, "pool1", {"relu2"}},
                         {Conv2dLayer{.outputs = 16, .kernel = 1, .weight = {}}, "conv3", {"relu2"}},
                         {BatchNormLayer{}, "bn3", {"conv3"}},
                         {ActivationLayer{Activation::tanh}, "tanh", {"bn3"}},
                         {ConcatLayer{}, "concat", {"pool1", "tanh", "relu1"}},
                         {Conv2dLayer{.outputs = 24, .kernel = 3, .weight = {}}, "conv4", {"concat"}},
                         {BatchNormLayer{}, "bn4", {"conv4"}},
                         {PoolLayer{PoolKind::max, 2, 2, 0}, "pool2", {"bn4"}},
                         {FlattenLayer{}, "flatten", {"pool2"}},
                         {LinearLayer{10, {}}, "fc", {"flatten"}}});
}

/// A batch norm of few channels, which other implementations compute than that of many.
Graph narrow_net() {
  return graph_of({16, 11, 12}, {Conv2dLayer{.outputs = 4, .kernel = 3, .weight = {}}, BatchNormLayer{},
                                 ActivationLayer{}, Conv2dLayer{.outputs = 4, .kernel = 3, .padding = 1, .weight = {}},
                                 FlattenLayer{}, LinearLayer{10, {}}});
}

/// Convolutions that each have a batch norm and a relu behind them.
Graph normalised_chain() {
  std::vector<Layer> layers;
  for (int i = 0; i < 6; ++i)
    layers.insert(layers.end(), {Conv2dLayer{.outputs = 32, .kernel = 3, .padding = 1, .weight = {}}, BatchNormLayer{},
                                 ActivationLayer{}});
  layers.insert(layers.end(), {PoolLayer{PoolKind::average, 16, 16, 0}, FlattenLayer{}, LinearLayer{10, {}}});
  return graph_of({3, 16, 16}, layers);
}

class Recomputation : public BackendTest {};

TEST_P(Recomputation, GivesTheSameBits) {
  for (const Precision precision : backend().capabilities().precisions)
    for (const Graph& graph : {lenet(), small_net(), branching_net(), narrow_net()}) {
      SCOPED_TRACE(graph.name());
      const CompileOptions options{.batch = 6, .precision = precision, .measure = false};
      auto with = options;
      with.recompute = true;
      Model kept(backend(), graph, options);
      Model recomputed(backend(), graph, with);
      for (std::uint64_t lease = 0; lease < 3; ++lease) {
        EXPECT_EQ(recomputed.step(lease).loss, kept.step(lease).loss);
        EXPECT_EQ(recomputed.canonical_gradients(), kept.canonical_gradients());
        kept.momentum_step(lease);
        recomputed.momentum_step(lease);
      }
      EXPECT_EQ(recomputed.canonical_parameters(), kept.canonical_parameters());
      EXPECT_EQ(recomputed.canonical_statistics(), kept.canonical_statistics());
      // With engines' workspaces between them small networks' tensors may be packed less well.
      EXPECT_LE(recomputed.replica->workspace_bytes(), 1.05 * static_cast<double>(kept.replica->workspace_bytes()));
    }
}

TEST_P(Recomputation, TakesLessMemoryWhereLayersNormalise) {
  const CompileOptions options{.batch = 64, .measure = false};
  auto with = options;
  with.recompute = true;
  const Model kept(backend(), normalised_chain(), options);
  const Model recomputed(backend(), normalised_chain(), with);
  EXPECT_LT(recomputed.replica->workspace_bytes(), 0.8 * static_cast<double>(kept.replica->workspace_bytes()));
}

TROUPE_OVER_BACKENDS(Recomputation);

}  // namespace
}  // namespace troupe::nn::testing
