#include "strategies/host/peer_graph.hpp"

#include "core/random.hpp"

namespace troupe::strategies {

namespace {

/// Index of Purpose::strategy, different from every worker's and every step's.
constexpr std::uint64_t kDistances = ~std::uint64_t{0};

}  // namespace

PeerGraph::PeerGraph(std::uint32_t workers, std::uint32_t writers) : workers_(workers) {
  if (workers <= writers + 1) return;
  distances_.resize(workers);
  distances_[1] = true;
  core::Random random(workers, core::Purpose::strategy, kDistances);
  for (std::uint32_t left = writers - 1; left > 0;) {
    const auto distance = 1 + random.below(workers - 1);
    if (distances_[distance]) continue;
    distances_[distance] = true;
    --left;
  }
}

bool PeerGraph::may_write(WorkerId from, WorkerId to) const noexcept {
  if (from == to || from >= workers_ || to >= workers_) return false;
  return distances_.empty() || distances_[(to + workers_ - from) % workers_];
}

}  // namespace troupe::strategies
