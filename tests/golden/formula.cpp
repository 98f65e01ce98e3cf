#include "tests/golden/formula.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "cpu/backend.hpp"
#include "gpu/backend.hpp"
#include "gpu/device/load.hpp"
#include "nn/layout.hpp"
#include "nn/zoo/models.hpp"

namespace troupe::golden {
namespace {

constexpr std::int64_t kClasses = 10;

template <class Value>
Value taken(core::Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

void append(std::vector<float>& all, const std::string& name, const std::vector<std::int64_t>& shape) {
  std::int64_t size = 1, fan_in = 1;
  for (const auto extent : shape) size *= extent;
  for (std::size_t d = 1; d < shape.size(); ++d) fan_in *= shape[d];
  const double bound = std::sqrt(6.0 / static_cast<double>(fan_in));
  for (const double u : uniform(name, static_cast<std::size_t>(size))) {
    const double value = shape.size() > 1                 ? u * bound
                         : name.ends_with(".running_var") ? 1.0 + 0.5 * u
                         : name.ends_with(".weight")      ? 1.0 + 0.2 * u
                                                          : 0.1 * u;
    all.push_back(static_cast<float>(value));
  }
}

/// The same graph with dropout that keeps everything.
nn::Graph without_dropout(const nn::Graph& graph) {
  std::vector<nn::NodeSpec> specs;
  for (const auto& node : graph.nodes()) {
    nn::NodeSpec spec{.layer = node.layer, .name = node.name};
    if (std::holds_alternative<nn::DropoutLayer>(node.layer)) spec.layer = nn::DropoutLayer{0};
    for (const int input : node.inputs)
      spec.inputs.push_back(input < 0 ? "input" : graph.nodes()[static_cast<std::size_t>(input)].name);
    specs.push_back(std::move(spec));
  }
  std::vector<nn::AuxiliaryLoss> auxiliary;
  for (const auto& head : graph.heads())
    if (head.node + 1 < static_cast<int>(graph.nodes().size()))
      auxiliary.push_back({graph.nodes()[static_cast<std::size_t>(head.node)].name, head.weight});
  return taken(nn::Graph::build(graph.name(), graph.input(), specs, graph.loss(), auxiliary));
}

/// The first NVIDIA GPU.
core::Result<std::shared_ptr<gpu::Device>>& gpu_here() {
  static auto device = gpu::load_device(0);
  return device;
}

std::unique_ptr<nn::Backend> backend_named(const std::string& name) {
  if (name == "cpu") return cpu::make_backend();
  if (name == "gpu_on_host") return gpu::make_backend_on_host();
  return gpu::make_backend({taken(gpu_here())}, "gpu");
}

}  // namespace

void GoldenTest::SetUp() {
  if (GetParam() == "cuda" && !gpu_here()) GTEST_SKIP() << gpu_here().error().message;
}

std::vector<double> uniform(const std::string& name, std::size_t count) {
  std::uint64_t seed = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {  // SplitMix64
    std::uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    z ^= z >> 31;
    numbers[i] = static_cast<double>(z >> 40) / 0x1p23 - 1.0;
  }
  return numbers;
}

std::vector<float> parameters_of(const nn::Graph& graph) {
  std::vector<float> all;
  all.reserve(static_cast<std::size_t>(graph.parameter_count()));
  for (const auto& parameter : graph.parameters()) append(all, parameter.name, parameter.shape);
  return all;
}

std::vector<float> statistics_of(const nn::Graph& graph) {
  std::vector<float> all;
  for (const auto& statistic : graph.statistics()) append(all, statistic.name, {statistic.channels});
  return all;
}

Samples samples_of(const nn::Graph& graph, std::int64_t batch, const std::string& suffix) {
  Samples samples;
  for (const double u : uniform("images" + suffix, static_cast<std::size_t>(batch * graph.input().size())))
    samples.images.push_back(static_cast<float>(1.5 * u));
  for (const double u : uniform("labels" + suffix, static_cast<std::size_t>(batch)))
    samples.labels.push_back(static_cast<std::int32_t>((u + 1) / 2 * static_cast<double>(kClasses)));
  return samples;
}

nlohmann::json rows(const std::string& name) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& root :
       {std::filesystem::path(TROUPE_SOURCE_DIR), program.parent_path()})  // a bundle has bin/ and tests/
    if (std::ifstream file(root / "tests/golden" / name); file) return nlohmann::json::parse(file);
  throw std::runtime_error("there is no tests/golden/" + name);
}

nn::Graph zoo_model(const nlohmann::json& row) {
  nn::ModelConfig config;
  config.name = row["model"];
  config.activation = row.value("activation", "auto");
  const auto& shape = row["input"];
  return without_dropout(taken(nn::build_model(config, {shape[0], shape[1], shape[2]}, kClasses)));
}

// Kernels by measurement round differently from run to run, and a maximum of two nearly equal values moves its gradient to another weight.
Model::Model(const std::string& on, const nn::Graph& graph, std::int64_t batch, bool training)
    : backend(backend_named(on)) {
  replica = taken(backend->compile(graph, {.batch = batch, .arenas = &memory, .training = training, .measure = false}));
  replica->import_canonical(parameters_of(graph));
  nn::statistics_layout(graph).from_canonical(statistics_of(graph), replica->statistics());
}

}  // namespace troupe::golden
