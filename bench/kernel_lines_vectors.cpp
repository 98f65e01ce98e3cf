#include <cstdlib>

#include <fmt/format.h>

#include "bench/kernel_lines.hpp"

namespace troupe::bench {
namespace {

using namespace core;

Line optimizer_line(const char* name, OptimizerKind kind, double passes, bool delta = false) {
  const OptimizerStep step{kind, 1e-6f, 0.9f, 1e-6f};
  return {fmt::format("{} {}", delta ? "optimize_delta" : "optimize", name), passes,
          [step, delta](const Kernels& k, const auto& v) {
            const OptimizerState state(v[2], v[3]);
            delta ? k.optimize_delta(v[0], v[1], state, step) : k.optimize(v[0], v[1], state, step);
          }};
}

/// The first half of a vector's memory, as 16-bit floats.
HalfSpan halves(Span vector) { return {reinterpret_cast<std::uint16_t*>(vector.data()), vector.size()}; }

void add_conversions(std::vector<Line>& all, const char* name, HalfKind kind) {
  all.push_back({fmt::format("narrow {}", name), 1.5,
                 [kind](const Kernels& k, const auto& v) { k.narrow(halves(v[0]), v[1], kind); }});
  all.push_back({fmt::format("widen {}", name), 1.5,
                 [kind](const Kernels& k, const auto& v) { k.widen(v[0], halves(v[1]), kind); }});
  all.push_back({fmt::format("add_wide {}", name), 2.5,
                 [kind](const Kernels& k, const auto& v) { k.add_wide(v[0], halves(v[1]), kind); }});
}

}  // namespace

std::vector<Line> vector_lines() {
  std::vector<Line> all = {
      {"fill", 1, [](const Kernels& k, const auto& v) { k.fill(v[0], 1); }},
      {"copy", 2, [](const Kernels& k, const auto& v) { k.copy(v[0], v[1]); }},
      {"scale", 2, [](const Kernels& k, const auto& v) { k.scale(v[0], 1); }},
      {"axpy", 3, [](const Kernels& k, const auto& v) { k.axpy(v[0], 1e-6f, v[1]); }},
      {"scale_add", 3, [](const Kernels& k, const auto& v) { k.scale_add(v[0], 0.5f, 0.5f, v[1]); }},
      {"difference", 3, [](const Kernels& k, const auto& v) { k.difference(v[0], v[1], v[2]); }},
      {"clamp", 2, [](const Kernels& k, const auto& v) { k.clamp(v[0], 2); }},
      {"clip by value and norm", 3, [](const Kernels& k, const auto& v) { clip(k, v[0], 2, 1e30f); }},
      {"elastic_pair", 4, [](const Kernels& k, const auto& v) { k.elastic_pair(v[0], v[1], 0.25f, 0.25f); }},
      {"all_within, elastic_pair", 4,
       [](const Kernels& k, const auto& v) {
         if (!k.all_within(v[0], kLargestUsable)) std::abort();  // as a server does for every push
         k.elastic_pair(v[0], v[1], 0.25f, 0.25f);
       }},
      {"elastic_delta", 4, [](const Kernels& k, const auto& v) { k.elastic_delta(v[0], v[1], 0.25f, 0.25f); }},
      {"broadcast_all of 4", 4, [](const Kernels& k, const auto& v) { k.broadcast_all(std::span(v).first(4), 0); }},
  };
  for (const std::size_t n : {2, 3, 4, 8, 12})
    all.push_back(
        {fmt::format("reduce_all of {}", n), 2.0 * static_cast<double>(n),
         [n](const Kernels& k, const auto& v) { k.reduce_all(std::span(v).first(n), 1.0f / static_cast<float>(n)); }});
  all.push_back(optimizer_line("sgd", OptimizerKind::sgd, 3));
  all.push_back(optimizer_line("momentum", OptimizerKind::momentum, 5));
  all.push_back(optimizer_line("nesterov", OptimizerKind::nesterov, 5));
  all.push_back(optimizer_line("rmsprop", OptimizerKind::rmsprop, 5));
  all.push_back(optimizer_line("rmsprop_inside", OptimizerKind::rmsprop_inside, 5));
  all.push_back(optimizer_line("adagrad", OptimizerKind::adagrad, 5));
  all.push_back(optimizer_line("adam", OptimizerKind::adam, 7));
  all.push_back(optimizer_line("adamw", OptimizerKind::adamw, 7));
  all.push_back(optimizer_line("adadelta", OptimizerKind::adadelta, 7));
  all.push_back(optimizer_line("momentum", OptimizerKind::momentum, 5, true));
  all.push_back(optimizer_line("adam", OptimizerKind::adam, 7, true));
  add_conversions(all, "fp16", HalfKind::fp16);
  add_conversions(all, "bf16", HalfKind::bf16);
  // The result must be used, or the compiler removes the call.
  all.push_back({"squared_norm", 1, [](const Kernels& k, const auto& v) {
                   if (k.squared_norm(v[0]) < 0) std::abort();
                 }});
  all.push_back({"all_within", 1, [](const Kernels& k, const auto& v) {
                   if (!k.all_within(v[0], kLargestUsable)) std::abort();
                 }});
  all.push_back({"all_finite", 1, [](const Kernels& k, const auto& v) {
                   if (!k.all_finite(v[0])) std::abort();
                 }});
  return all;
}

}  // namespace troupe::bench
