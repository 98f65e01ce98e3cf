/// The time of one training step of a fully connected model whose neurons are spread over ranks (cpu/neurons/): closed formulas. Pure.
///
/// Layer l has n_l neurons; n_0 is the input. R ranks, B samples, F multiplications and additions per second of a rank, α latency, β bytes
/// per second. The busiest rank has r_l = ⌈n_l / R⌉ neurons, and o_l = min(n_l, R) ranks have any. A layer takes
///   compute         2 r_l n_{l−1} B / F   forward, as much for the weight gradient, and as much for the error of the layer before, if any
///   collectives     forward α + (o_l − 1)/o_l · 4 n_l B / β; behind the first layer as much with n_{l−1} for the error   (Troupe: each rank
///                   sends its part to all others at once)
///   broadcasts      forward o_l ⌈log2 R⌉ (α + 4 r_l B / β); behind the first layer as much with n_{l−1} for the error    (the Blue Gene
///                   program: one broadcast of every rank after the other, and one reduction to every rank; Horak, Elliott & Showers 2017,
///                   section 4.3)
/// Nothing overlaps: the time is that of the blocking step.
#pragma once

#include <cstdint>
#include <span>

namespace troupe::sim {

/// How ranks exchange a layer's values.
enum class NeuronMessages : std::uint8_t { collectives, broadcasts };

struct NeuronStepTime {
  double compute_s = 0;
  double communication_s = 0;
  [[nodiscard]] double total_s() const noexcept { return compute_s + communication_s; }
};

/// `widths`: the input and then each layer's neurons, at least two numbers, all > 0. `batch`, `ranks`, `flops_per_s`, `bytes_per_s` > 0,
/// `latency_s` ≥ 0 (std::invalid_argument).
[[nodiscard]] NeuronStepTime neuron_parallel_step_time(std::span<const std::int64_t> widths, std::int64_t batch,
                                                       std::int64_t ranks, double flops_per_s, double latency_s,
                                                       double bytes_per_s,
                                                       NeuronMessages messages = NeuronMessages::collectives);

}  // namespace troupe::sim
