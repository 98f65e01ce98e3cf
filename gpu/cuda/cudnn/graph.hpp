/// A convolution's operation graph as cuDNN's descriptors, and cuDNN's engines for it.
/// Thread rule: one thread at a time; finished plans are read-only and may be executed by several threads, each with a handle of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "gpu/cuda/cudnn/descriptor.hpp"
#include "gpu/plans/operation_graph.hpp"

namespace troupe::gpu {

/// The device for which cuDNN plans: that of a handle, or one that is only described. With a description cuDNN's heuristics and planning run
/// on a machine without a GPU, which is how tests check the graphs of every network against real engines.
struct CudnnTarget {
  std::shared_ptr<const CudnnLibrary> library;
  cudnnHandle_t handle = nullptr;             // null: `properties` counts
  std::optional<CudnnDescriptor> properties;  // CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR

  /// A device as cuDNN's JSON describes it: {"deviceVer": 900, "multiProcessorCount": 132, …}.
  [[nodiscard]] static core::Result<CudnnTarget> described(std::shared_ptr<const CudnnLibrary> library,
                                                           const std::string& json);
};

/// Which engines may be used. All that CUDNN_ATTR_ENGINE_NUMERICAL_NOTE says counts; sums in less than float32 never.
struct CudnnFilter {
  std::size_t workspace = 0;   // at most, bytes
  bool deterministic = false;  // the same bits each time
  bool tensor_cores = true;    // false: products of float32 exactly
};

/// An engine with its knobs: "cudnn 41 2=7 13=1": global index, then type=value of each knob, in cuDNN's order.
struct CudnnEngine {
  std::int64_t index = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> knobs;
  bool operator==(const CudnnEngine&) const = default;
};
[[nodiscard]] std::string to_string(const CudnnEngine& engine);
/// Nothing for text that to_string() does not write.
[[nodiscard]] std::optional<CudnnEngine> parse_cudnn_engine(std::string_view text);

/// A finished execution plan. The graph that made it must outlive it.
struct CudnnPlan {
  CudnnDescriptor config;  // what `descriptor` was made from; its engine too
  CudnnDescriptor engine_descriptor;
  CudnnDescriptor descriptor;
  CudnnEngine engine;
  std::size_t workspace = 0;
};

/// Owns every descriptor that the graph names.
class CudnnGraph {
 public:
  [[nodiscard]] static core::Result<CudnnGraph> build(const CudnnTarget& target, const OperationGraph& graph);

  /// The engines that pass the filter in the order of cuDNN's heuristics A, B and fallback, each once, at most `most`. Engines that cuDNN
  /// cannot finish are left out. May be empty.
  [[nodiscard]] core::Result<std::vector<CudnnPlan>> plans(const CudnnTarget& target, const CudnnFilter& filter,
                                                           std::size_t most) const;
  /// The plan of one engine. Errc::config when cuDNN does not know it for this graph, or the filter refuses it.
  [[nodiscard]] core::Result<CudnnPlan> plan(const CudnnTarget& target, const CudnnFilter& filter,
                                             const CudnnEngine& engine) const;

 private:
  CudnnGraph() = default;
  [[nodiscard]] core::Result<void> add_tensors(const CudnnTarget& target, const OperationGraph& graph);
  [[nodiscard]] core::Result<void> add_convolution(const CudnnTarget& target, const OperationGraph& graph,
                                                   const GraphNode& node);
  [[nodiscard]] core::Result<void> add_pointwise(const CudnnTarget& target, const GraphNode& node);
  [[nodiscard]] core::Result<void> add_statistics(const CudnnTarget& target, const GraphNode& node);
  [[nodiscard]] core::Result<void> finish(const CudnnTarget& target);

  std::vector<CudnnDescriptor> tensors_;
  std::vector<CudnnDescriptor> parts_;  // of convolutions and pointwise operations: what they compute
  std::vector<CudnnDescriptor> operations_;
  std::optional<CudnnDescriptor> graph_;
};

}  // namespace troupe::gpu
