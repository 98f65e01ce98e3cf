// Every model of the zoo: one step in every backend beside the first one's. Models with so many parameters that a step takes seconds are made
// of the same layers as smaller ones, and are left out.
#include <cmath>

#include "nn/initialise.hpp"
#include "nn/zoo/models.hpp"
#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

constexpr std::int64_t kMostParameters = 30'000'000;

/// The zoo's models with the smallest square images, of 32 pixels or more, that they take; or their own.
std::vector<std::string> comparable_models() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : model_zoo())
    if (entry.parameters < kMostParameters) names.push_back(entry.name);
  return names;
}

Graph zoo_graph(const std::string& name) {
  ModelConfig config;
  config.name = name;
  for (const std::int64_t size : {name == "resnet50" ? 64 : 32, 64, 128})
    if (auto graph = build_model(config, {3, size, size}, 10)) return *graph;
  for (const ZooEntry& entry : model_zoo())
    if (entry.name == name) return build_model(config, entry.input, 10).value();
  throw std::invalid_argument(name);
}

/// One step from the model's own initial values.
struct Stepped {
  StepResult result;
  std::vector<float> gradients;
  std::vector<float> statistics;
};
Stepped stepped(Backend& backend, const Graph& graph) {
  Model model(backend, graph, {.batch = 4, .seed = 5, .measure = false});
  std::vector<float> start(model.replica->layout()->canonical_floats());
  initialise(graph, 1, start);
  model.replica->import_canonical(start);
  return {model.step(3), model.canonical_gradients(), model.canonical_statistics()};
}

/// ‖a − b‖ / ‖b‖
double apart(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / norm);
}

class WholeZoo : public BackendTestOver<std::string> {};

TEST_P(WholeZoo, OneStepIsThatOfTheFirstBackend) {
  Backend& first = backend_of(backends().front());
  const Graph graph = zoo_graph(param());
  const Stepped want = stepped(first, graph);
  const Stepped got = stepped(backend(), graph);
  EXPECT_NEAR(got.result.loss, want.result.loss, 1e-4 * want.result.loss);
  EXPECT_EQ(got.result.top1, want.result.top1);
  // Rounding moves values across 0 of a relu: parameters that are a last place apart move resnet50's gradients by 0.02 to 0.03.
  EXPECT_LT(apart(got.gradients, want.gradients), param() == "resnet50" ? 0.04 : 0.01);
  if (!want.statistics.empty()) {
    EXPECT_LT(apart(got.statistics, want.statistics), 1e-4);
  }
}

std::vector<BackendKind> other_backends() { return {backends().begin() + 1, backends().end()}; }

INSTANTIATE_TEST_SUITE_P(Backends, WholeZoo,
                         ::testing::Combine(::testing::ValuesIn(other_backends()),
                                            ::testing::ValuesIn(comparable_models())),
                         [](const auto& info) { return std::get<0>(info.param).name + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace troupe::nn::testing
