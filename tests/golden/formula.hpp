/// Weights, images and labels from the formula of make_goldens.py, and its results. For tests; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "nn/backend.hpp"
#include "nn/graph.hpp"

namespace troupe::golden {

/// `count` numbers in [-1, 1): the same doubles as uniform() of the script.
[[nodiscard]] std::vector<double> uniform(const std::string& name, std::size_t count);

/// Canonical vectors.
[[nodiscard]] std::vector<float> parameters_of(const nn::Graph& graph);
[[nodiscard]] std::vector<float> statistics_of(const nn::Graph& graph);

struct Samples {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  [[nodiscard]] nn::Batch batch() const {
    return {.images = images, .labels = labels, .count = static_cast<std::int64_t>(labels.size())};
  }
};
/// `suffix` distinguishes batches: ".3".
[[nodiscard]] Samples samples_of(const nn::Graph& graph, std::int64_t batch, const std::string& suffix = "");

/// The rows of tests/golden/NAME. Throws when the file cannot be read.
[[nodiscard]] nlohmann::json rows(const std::string& name);
/// The model of a row, without dropout. Throws with the error's message.
[[nodiscard]] nn::Graph zoo_model(const nlohmann::json& row);

/// Tests over every backend, by name: "cpu", "gpu_on_host", "cuda". Skipped, with the reason, where it is absent.
class GoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
};
#define TROUPE_OVER_GOLDEN_BACKENDS(suite)                                                   \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, ::testing::Values("cpu", "gpu_on_host", "cuda"), \
                           [](const auto& info) { return info.param; })

/// A replica of this backend with the formula's weights, in host memory. Throws when it cannot be compiled.
struct Model {
  Model(const std::string& on, const nn::Graph& graph, std::int64_t batch, bool training);
  core::HostAllocator memory;
  std::unique_ptr<nn::Backend> backend;
  std::unique_ptr<nn::Replica> replica;
};

}  // namespace troupe::golden
