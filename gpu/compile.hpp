/// Compiles a graph into a program with the layout of its arenas. Compile time only. Thread rule: the thread that will own the replica.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "gpu/plans/engine_cache.hpp"
#include "gpu/program/program.hpp"
#include "nn/backend.hpp"

namespace troupe::gpu {

/// The float32 vectors of a replica in one memory.
struct ArenaBuffers {
  core::Buffer parameters;
  core::Buffer gradients;   // empty if not training
  core::Buffer statistics;  // in nn::statistics_layout; empty without statistics
};

/// All that a Replica owns, besides streams.
struct Compiled {
  Program program;
  std::shared_ptr<const nn::Layout> layout;
  ArenaBuffers arenas;  // device memory
  ArenaBuffers
      mirrors;  // host memory of CompileOptions::arenas; empty if that is device memory, and `arenas` are from it
  std::vector<nn::Bucket> buckets;
  std::vector<std::size_t> bucket_ends;  // of each: the operations of backward after which it is final
  std::array<core::Buffer, 2> inputs;    // device memory for batches on their way (gpu/input_buffers.hpp)
  core::Buffer update_scratch;           // device memory, as UpdateScratch says; empty if not training
  nn::Plan plan;
};

/// What is where in the scratch memory of an optimizer step and of the check of gradients in fp16, in bytes.
struct UpdateScratch {
  static constexpr std::size_t kNorm = 0;      // double: the gradient's squared norm
  static constexpr std::size_t kFinite = 32;   // int32: whether the gradients of a step in fp16 are finite
  static constexpr std::size_t kChunks = 128;  // doubles: squared_norm_scratch()
};

/// Errc::config names the node that cannot be computed; Errc::out_of_memory: what is needed and what there is. Before it refuses, engines
/// with less workspace are taken, if no plan is given. `cache`: earlier measurements, or null. The initial statistics are in the mirrors; in
/// device memory the replica sets them.
[[nodiscard]] core::Result<Compiled> compile(Device& device, const nn::Graph& graph, const nn::CompileOptions& options,
                                             EngineCache* cache = nullptr);

}  // namespace troupe::gpu
