#include "sim/cluster/neuron_parallel_costs.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace troupe::sim {
namespace {

/// Neurons whose values travel.
struct Exchanged {
  double neurons = 0;
  double of_busiest = 0;
  double owners = 0;
};

Exchanged exchanged(std::int64_t neurons, std::int64_t ranks) {
  return {.neurons = static_cast<double>(neurons),
          .of_busiest = static_cast<double>((neurons + ranks - 1) / ranks),
          .owners = static_cast<double>(std::min(neurons, ranks))};
}

}  // namespace

NeuronStepTime neuron_parallel_step_time(std::span<const std::int64_t> widths, std::int64_t batch, std::int64_t ranks,
                                         double flops_per_s, double latency_s, double bytes_per_s,
                                         NeuronMessages messages) {
  const bool positive = std::ranges::all_of(widths, [](std::int64_t width) { return width > 0; });
  if (widths.size() < 2 || !positive || batch < 1 || ranks < 1 || !(flops_per_s > 0) || !(latency_s >= 0) ||
      !(bytes_per_s > 0))
    throw std::invalid_argument("a neuron-parallel step needs positive widths, batch, ranks and speeds");
  const auto samples = static_cast<double>(batch);
  const double rounds = std::ceil(std::log2(static_cast<double>(ranks)));
  const auto message = [&](const Exchanged& layer) {
    if (ranks == 1) return 0.0;
    const double bytes = sizeof(float) * samples;
    if (messages == NeuronMessages::broadcasts)
      return layer.owners * rounds * (latency_s + bytes * layer.of_busiest / bytes_per_s);
    return latency_s + (layer.owners - 1) / layer.owners * bytes * layer.neurons / bytes_per_s;
  };
  NeuronStepTime time;
  for (std::size_t layer = 1; layer < widths.size(); ++layer) {
    const auto own = exchanged(widths[layer], ranks);
    const double products = layer == 1 ? 2 : 3;
    time.compute_s += products * 2 * own.of_busiest * static_cast<double>(widths[layer - 1]) * samples / flops_per_s;
    time.communication_s += message(own);
    if (layer > 1) time.communication_s += message(exchanged(widths[layer - 1], ranks));
  }
  return time;
}

}  // namespace troupe::sim
