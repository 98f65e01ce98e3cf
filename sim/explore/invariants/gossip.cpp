#include <cmath>
#include <optional>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/world/cluster.hpp"

namespace troupe::explore {
namespace {

class GossipChecker final : public Invariant {
 public:
  void happened(const Cluster& cluster) override {
    const double sum = cluster.weight();
    if (!start_) start_ = sum;
    // Multiples of 2⁻⁵² add without rounding: the sums must be exactly equal.
    if (sum != *start_ || std::abs(sum - 1) > std::ldexp(1, -48))
      throw Violation("the weights of living workers, peer messages in flight and lost members add up to 1 - " +
                      std::to_string(1 - sum));
    for (WorkerId w = 0; w < cluster.workers(); ++w)
      if (cluster.worker(w).alive() && !(cluster.worker(w).host().rule().weight() > 0))
        throw Violation("a worker has given everything away");
  }

  void at_rest(const Cluster& cluster) override {
    if (cluster.peer_message_weight() != 0)
      throw Violation("a peer message is still in flight when all workers have stopped");
  }

 private:
  std::optional<double> start_;
};

}  // namespace

std::unique_ptr<Invariant> checker(const GossipWeights&) { return std::make_unique<GossipChecker>(); }

}  // namespace troupe::explore
