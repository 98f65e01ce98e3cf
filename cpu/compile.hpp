/// Compiles a graph into a program with the layout of its arenas. Compile time only. Thread rule: the thread that will own the
/// replica.
#pragma once

#include <memory>
#include <vector>

#include <dnnl.hpp>

#include "cpu/program/program.hpp"
#include "nn/backend.hpp"

namespace troupe::cpu {

/// All that a Replica owns.
struct Compiled {
  dnnl::engine engine;
  Program program;
  std::shared_ptr<const nn::Layout> layout;
  core::Buffer parameters;
  core::Buffer gradients;           // empty if not training
  core::Buffer statistics;          // in nn::statistics_layout, with the initial values; empty without statistics
  std::vector<nn::Bucket> buckets;  // as cut_buckets() cuts them
  nn::Plan plan;
};

/// Whether this CPU can compute in bfloat16: with AVX-512; fast with its bf16 instructions, which oneDNN emulates otherwise.
[[nodiscard]] bool computes_bf16();

/// REQUIRES omp_set_num_threads(options.threads) on the calling thread. Errc::config names the node that cannot be computed;
/// Errc::out_of_memory: arenas or workspace do not fit into memory.
[[nodiscard]] core::Result<Compiled> compile(const nn::Graph& graph, const nn::CompileOptions& options);

/// What any program for this graph needs of its options. Errors as compile().
[[nodiscard]] core::Result<void> check_options(const nn::Graph& graph, const nn::CompileOptions& options);

}  // namespace troupe::cpu
