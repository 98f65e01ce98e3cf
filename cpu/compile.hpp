/// A graph becomes a program with its arenas' layout. Compile time only.
#pragma once

#include <memory>
#include <vector>

#include <dnnl.hpp>

#include "cpu/program/program.hpp"
#include "nn/backend.hpp"

namespace troupe::cpu {

/// Everything a Replica owns.
struct Compiled {
  dnnl::engine engine;
  Program program;
  std::shared_ptr<const nn::Layout> layout;
  core::Buffer parameters;
  core::Buffer gradients;           // empty when not training
  core::Buffer statistics;          // of nn::statistics_layout, holding the initial values; empty without any
  std::vector<nn::Bucket> buckets;  // in backward order
  nn::Plan plan;
};

/// REQUIRES omp_set_num_threads(options.threads) on the calling thread. Errc::config names the node that cannot be computed;
/// out_of_memory when arenas or workspace do not fit.
[[nodiscard]] core::Result<Compiled> compile(const nn::Graph& graph, const nn::CompileOptions& options);

/// Buckets of at least `floats` floats (all but the last), cut between nodes, from the arena's tail: backward runs from the last
/// node to the first. Also tells each backward operation which bucket it finishes.
[[nodiscard]] std::vector<nn::Bucket> cut_buckets(const nn::Graph& graph, const nn::Layout& layout, std::size_t floats,
                                                  std::vector<Operation>& backward);

}  // namespace troupe::cpu
