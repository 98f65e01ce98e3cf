/// A compiled model on a HostDevice of its own, with random parameters and one random batch. For tests.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/backend.hpp"
#include "gpu/device/faulty_device.hpp"
#include "gpu/device/host_device.hpp"
#include "gpu/replica.hpp"
#include "nn/graph.hpp"

namespace troupe::gpu::testing {

/// Convolutions with and without relu, batch norms with and without a sum, all poolings, branches, dropout, an auxiliary loss.
[[nodiscard]] nn::Graph branching_net();
[[nodiscard]] nn::Graph lenet();
/// A model of the zoo as it comes, for `input` and `classes`.
[[nodiscard]] nn::Graph zoo(const std::string& name, nn::Shape input, std::int64_t classes);

[[nodiscard]] std::vector<float> random_floats(std::size_t count, double deviation, std::uint64_t index);

/// The name of a test of one kind of calls.
[[nodiscard]] inline std::string kind_name(const ::testing::TestParamInfo<CallKind>& info) {
  std::string name = to_string(info.param);
  std::ranges::replace(name, ' ', '_');
  return name;
}

/// A replica with its backend. Throws with the error's message when it cannot be compiled.
class TrainedModel {
 public:
  /// `options.arenas`: host memory if null.
  TrainedModel(std::shared_ptr<Device> device, const nn::Graph& graph, nn::CompileOptions options);

  [[nodiscard]] nn::Batch batch(std::uint64_t lease = 0) const;
  [[nodiscard]] nn::StepResult step(std::uint64_t lease = 0);
  void momentum_step(std::uint64_t lease = 0);
  [[nodiscard]] std::vector<float> parameters();
  [[nodiscard]] std::vector<float> gradients();
  [[nodiscard]] const GpuReplica& gpu() const { return static_cast<const GpuReplica&>(*replica); }

  std::shared_ptr<Device> device;
  core::HostAllocator host;
  std::unique_ptr<nn::Backend> backend;
  nn::Graph graph;
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  core::Buffer velocity;  // of the memory of the arenas
  std::unique_ptr<nn::Replica> replica;
};

}  // namespace troupe::gpu::testing
