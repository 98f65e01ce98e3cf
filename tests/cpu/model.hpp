/// The models of tests/nn/backend_contract, compiled by the CPU backend: for tests of what only this backend does.
#pragma once

#include "cpu/backend.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::cpu::testing {

using nn::testing::graph_of;
using nn::testing::lenet;
using nn::testing::random_floats;
using nn::testing::random_labels;
using nn::testing::relative_error;
using nn::testing::small_net;

[[nodiscard]] inline nn::Backend& backend() {
  static const auto made = make_backend();
  return *made;
}

struct Model : nn::testing::Model {
  Model(nn::Graph graph, nn::CompileOptions options) : nn::testing::Model(backend(), std::move(graph), options) {}
};

inline void expect_like_reference(const nn::Graph& graph, std::int64_t batch, const nn::Plan* plan = nullptr,
                                  int threads = 1) {
  nn::testing::expect_like_reference(backend(), graph, batch, plan, threads);
}

}  // namespace troupe::cpu::testing
