// Random graphs of all layers, which branch and join as they like: against the double-precision reference, and the same graph computed
// in other ways.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/random.hpp"
#include "nn/layer_types.hpp"
#include "nn/shape_inference.hpp"
#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

constexpr std::int64_t kClasses = 6;
constexpr std::int64_t kMostValues = 6000;  // of a drawn layer, so that the reference is not slow
constexpr std::uint64_t kGraphs = 16;

/// Draws layers until they fit.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed, core::Purpose::test, 0) {}

  Graph build() {
    const Shape input{one_of({1, 2, 3, 16}), 5 + below(9), 5 + below(9)};
    names_ = {"input"};
    shapes_ = {input};
    (void)add(Conv2dLayer{one_of({3, 4, 16, 24, 32}), one_of({1, 3, 5}), 1, 0, {}}, {0});
    for (auto left = 3 + below(9); left > 0; --left) draw();
    auto ends = unread();
    for (auto& end : ends) {
      if (shapes_[end].height * shapes_[end].width > 1) end = add(FlattenLayer{}, {end});
      if (below(3) == 0) end = add(LinearLayer{1 + below(20), {}}, {end});
    }
    if (ends.size() > 1) ends = {add(ConcatLayer{}, ends)};
    std::vector<AuxiliaryLoss> auxiliary;
    if (below(3) == 0)
      auxiliary.push_back({names_[add(LinearLayer{kClasses, {}}, {std::max<std::size_t>(any(), 1)})], 0.3});
    (void)add(LinearLayer{kClasses, {}}, ends);
    return graph_of_nodes(input, nodes_, auxiliary);
  }

 private:
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(n))); }
  template <class T = std::int64_t>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + below(std::ssize(list)));
  }
  /// A value, rather a late one.
  std::size_t any() { return static_cast<std::size_t>(std::max(below(std::ssize(names_)), below(std::ssize(names_)))); }

  std::vector<std::size_t> unread() const {
    std::vector<std::size_t> values;
    for (std::size_t i = 1; i < names_.size(); ++i)
      if (!read_.contains(i)) values.push_back(i);
    return values;
  }

  void draw() {
    for (;;) {
      const auto from = any();
      std::vector<std::size_t> inputs{from};
      const Layer layer = draw_layer(shapes_[from]);
      const bool sum = std::holds_alternative<AddLayer>(layer);
      if (sum || std::holds_alternative<ConcatLayer>(layer))
        for (auto attempts = 3 + below(5); attempts > 0; --attempts)
          if (const auto other = any(); fits(other, from, sum)) inputs.push_back(other);
      // Behind another one, the gradients of the first are 0 but for rounding, of which a relative error means nothing.
      if (std::holds_alternative<BatchNormLayer>(layer) && from > 0 &&
          std::holds_alternative<BatchNormLayer>(nodes_[from - 1].layer))
        continue;
      InferredLayer inferred;
      if (infer(layer, shapes_of(inputs), inferred) || inferred.output.size() > kMostValues) continue;
      (void)add(layer, inputs);
      return;
    }
  }

  Layer draw_layer(const Shape& in) {
    const auto groups = in.channels % 4 == 0 ? one_of({1, 1, 2, 4}) : 1;
    switch (below(13)) {
      case 0:
      case 1:
      case 2:
        return Conv2dLayer{groups * one_of({1, 3, 4, 8, 16, 24, 32}),
                           one_of({1, 2, 3, 3, 5}),
                           one_of({1, 1, 2}),
                           one_of({0, 1, 1}),
                           {},
                           groups,
                           below(2) == 0};
      case 3:
      case 4:
        return PoolLayer{one_of({PoolKind::max, PoolKind::average}), one_of({2, 2, 3}), one_of({1, 2, 2}),
                         one_of({0, 0, 1}), below(2) == 0};
      case 5: return AdaptiveAveragePoolLayer{1 + below(4)};
      case 6: return BatchNormLayer{};
      case 7:
      case 8:
        return ActivationLayer{one_of({Activation::relu, Activation::relu, Activation::tanh, Activation::sigmoid})};
      case 9: return LrnLayer{.size = one_of({3, 5})};
      case 10: return DropoutLayer{0.3};
      case 11: return AddLayer{};
      default: return ConcatLayer{};
    }
  }

  bool fits(std::size_t other, std::size_t from, bool sum) const {
    const Shape &a = shapes_[other], &b = shapes_[from];
    return sum ? a == b : a.height == b.height && a.width == b.width;
  }
  std::vector<Shape> shapes_of(const std::vector<std::size_t>& inputs) const {
    std::vector<Shape> shapes;
    for (const auto i : inputs) shapes.push_back(shapes_[i]);
    return shapes;
  }
  std::size_t add(const Layer& layer, const std::vector<std::size_t>& inputs) {
    InferredLayer inferred;
    EXPECT_FALSE(infer(layer, shapes_of(inputs), inferred));
    NodeSpec node{layer, fmt::format("n{}", names_.size()), {}};
    for (const auto i : inputs) node.inputs.push_back(names_[i]), read_.insert(i);
    shapes_.push_back(inferred.output);
    names_.push_back(node.name);
    nodes_.push_back(std::move(node));
    return names_.size() - 1;
  }

  core::Random random_;
  std::vector<NodeSpec> nodes_;
  std::vector<std::string> names_;  // of values: the input, then the nodes
  std::vector<Shape> shapes_;
  std::set<std::size_t> read_;
};

std::string describe(const Graph& graph) {
  std::string text = fmt::format("input {}\n", to_string(graph.input()));
  for (const auto& node : graph.nodes())
    text += fmt::format("{}: {} of nodes {} = {}\n", node.name, layer_type(node.layer), fmt::join(node.inputs, ", "),
                        to_string(node.output));
  return text;
}

class RandomGraphs : public BackendTest {};

TEST_P(RandomGraphs, ComputeWhatTheReferenceDoes) {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed) {
    const Graph graph = RandomGraph(seed).build();
    SCOPED_TRACE(fmt::format("seed {}, {}", seed, describe(graph)));
    expect_like_reference(backend(), graph, 2 + static_cast<std::int64_t>(seed % 4), nullptr,
                          1 + static_cast<int>(seed % 2), 5e-3);
  }
}

/// In every precision; whatever the plan chose by measurement.
TEST_P(RandomGraphs, APlanAndRecomputationRepeatTheBitsAlsoBesideEvaluations) {
  for (std::uint64_t seed = 0; seed < kGraphs; ++seed)
    for (const auto precision : backend().capabilities().precisions) {
      const Graph graph = RandomGraph(seed).build();
      SCOPED_TRACE(fmt::format("seed {}, precision {}, {}", seed, static_cast<int>(precision), describe(graph)));
      CompileOptions options{.batch = 3, .precision = precision, .threads = 1 + static_cast<int>(seed % 2)};
      Model kept(backend(), graph, options);
      const Plan plan = kept.replica->plan();
      options.plan = &plan;
      options.recompute = true;
      Model again(backend(), graph, options);
      EXPECT_EQ(again.replica->plan().json, plan.json);
      for (std::uint64_t lease = 0; lease < 3; ++lease) {
        const auto loss = kept.step(lease).loss;
        EXPECT_EQ(again.step(lease).loss, loss);
        EXPECT_EQ(again.canonical_gradients(), kept.canonical_gradients());
        EXPECT_EQ(again.canonical_statistics(), kept.canonical_statistics());
        ASSERT_TRUE(again.replica->evaluate(again.batch()));
        kept.replica->apply({.lr = 0.01f}, {});
        again.replica->apply({.lr = 0.01f}, {});
      }
      EXPECT_EQ(again.canonical_parameters(), kept.canonical_parameters());
      if (precision == Precision::fp32) continue;
      Model full(backend(), graph, {.batch = 3, .measure = false});
      Model half(backend(), graph, {.batch = 3, .precision = precision, .measure = false});
      const auto want = full.step();
      EXPECT_NEAR(half.step().loss, want.loss, 0.05 * std::max(1.0, want.loss));
    }
}

TROUPE_OVER_BACKENDS(RandomGraphs);

}  // namespace
}  // namespace troupe::nn::testing
