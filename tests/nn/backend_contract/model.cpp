#include "tests/nn/backend_contract/model.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "nn/arenas/host_view.hpp"

namespace troupe::nn::testing {

Graph graph_of(Shape input, const std::vector<Layer>& layers, Loss loss) {
  auto graph = Graph::sequential("test", input, layers, loss);
  if (!graph) throw std::invalid_argument(graph.error().message);
  return *graph;
}

Graph graph_of_nodes(Shape input, const std::vector<NodeSpec>& nodes, const std::vector<AuxiliaryLoss>& auxiliary) {
  auto graph = Graph::build("test", input, nodes, Loss::softmax_cross_entropy, auxiliary);
  if (!graph) throw std::invalid_argument(graph.error().message);
  return *graph;
}

Graph lenet() {
  const PoolLayer halve{PoolKind::max, 2, 2, 0};
  return graph_of({1, 28, 28},
                  {Conv2dLayer{20, 5, 1, 0, {}}, halve, Conv2dLayer{50, 5, 1, 0, {}}, halve, FlattenLayer{},
                   LinearLayer{500, {}}, ActivationLayer{Activation::relu}, LinearLayer{10, {}}});
}

Graph small_net() {
  return graph_of(
      {3, 9, 7}, {Conv2dLayer{5, 3, 2, 1, {}}, ActivationLayer{Activation::tanh}, PoolLayer{PoolKind::average, 3, 2, 1},
                  Conv2dLayer{4, 2, 1, 1, {}}, ActivationLayer{Activation::relu}, FlattenLayer{}, LinearLayer{6, {}},
                  ActivationLayer{Activation::sigmoid}, LinearLayer{5, {}}});
}

std::vector<float> random_floats(std::size_t count, double deviation, std::uint64_t index) {
  core::Random random(7, core::Purpose::test, index);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(deviation * random.normal());
  return values;
}

std::vector<std::int32_t> random_labels(std::int64_t count, std::int64_t classes, std::uint64_t index) {
  core::Random random(7, core::Purpose::test, index);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  for (auto& label : labels) label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(classes)));
  return labels;
}

double relative_error(std::span<const float> a, std::span<const double> b) {
  if (a.size() != b.size()) throw std::invalid_argument("vectors of different lengths");
  double scale = 1e-3;
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    scale = std::max(scale, std::abs(b[i]));
    if (!(std::abs(a[i] - b[i]) <= difference)) difference = std::abs(a[i] - b[i]);  // NaN stays
  }
  return difference / scale;
}

Model::Model(Backend& backend, Graph net, CompileOptions options) : graph(std::move(net)), reference(graph) {
  options.arenas = &backend.arenas();
  auto compiled = backend.compile(graph, options);
  if (!compiled) throw std::runtime_error(compiled.error().message);
  replica = std::move(*compiled);
  // Deviation 1 / sqrt(fan in), so that values neither vanish nor saturate.
  std::vector<float> canonical;
  for (const Parameter& parameter : graph.parameters()) {
    const double deviation = 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(parameter.fan_in, 4)));
    const auto values = random_floats(static_cast<std::size_t>(parameter.size()), deviation, 100 + canonical.size());
    canonical.insert(canonical.end(), values.begin(), values.end());
  }
  replica->import_canonical(canonical);
  reference.set_parameters(canonical);
  images = random_floats(static_cast<std::size_t>(options.batch * graph.input().size()), 1.0, 1);
  labels = random_labels(options.batch, graph.output().size(), 2);
  velocity = core::Buffer::allocate(*options.arenas, replica->parameters().size()).value();
}

Batch Model::batch(std::uint64_t lease) const {
  return {images, labels, lease, static_cast<std::int64_t>(labels.size())};
}

StepResult Model::step(std::uint64_t lease) { return replica->step(batch(lease), {}).value(); }

void Model::momentum_step(std::uint64_t lease) {
  (void)step(lease);
  replica->apply({core::OptimizerKind::momentum, 0.01f, 0.9f, 1e-3f}, velocity.view());
}

std::vector<float> Model::numbers(core::ConstSpan vector) const {
  std::vector<float> copy(vector.size());
  replica->kernels().download(copy, vector);
  return copy;
}

std::vector<float> Model::canonical_parameters() {
  std::vector<float> canonical(replica->layout()->canonical_floats());
  replica->export_canonical(canonical);
  return canonical;
}

std::vector<float> Model::canonical_gradients() {
  std::vector<float> canonical(replica->layout()->canonical_floats());
  read_canonical(replica->kernels(), *replica->layout(), replica->gradients(), canonical);
  return canonical;
}

std::vector<float> Model::canonical_statistics() {
  const Layout layout = statistics_layout(graph);
  std::vector<float> canonical(layout.canonical_floats());
  read_canonical(replica->kernels(), layout, replica->statistics(), canonical);
  return canonical;
}

void expect_like_reference(Backend& backend, const Graph& graph, std::int64_t batch, const Plan* plan, int threads,
                           double tolerance) {
  // What is measured may be faster algorithms with more rounding (CompileOptions::measure); a plan may name them.
  Model model(backend, graph, {.batch = batch, .threads = threads, .seed = 5, .plan = plan, .measure = false});
  constexpr std::uint64_t kLease = 3;
  const StepResult got = model.step(kLease);
  const auto want = model.reference.run(model.images, model.labels, model.reference.dropout_masks(5, kLease, batch));
  EXPECT_NEAR(got.loss, want.loss, 1e-5 * std::max(1.0, want.loss));
  EXPECT_EQ(got.samples, batch);
  EXPECT_EQ(got.top1, want.top1);
  EXPECT_EQ(got.top5, want.top5);
  EXPECT_LT(relative_error(model.replica->outputs(), want.outputs), tolerance);
  const auto gradients = model.canonical_gradients();
  std::size_t offset = 0;
  for (const Parameter& parameter : graph.parameters()) {
    const auto size = static_cast<std::size_t>(parameter.size());
    EXPECT_LT(
        relative_error(std::span(gradients).subspan(offset, size), std::span(want.gradients).subspan(offset, size)),
        tolerance)
        << parameter.name;
    offset += size;
  }
  EXPECT_LT(relative_error(model.canonical_statistics(), want.statistics), tolerance);
}

}  // namespace troupe::nn::testing
