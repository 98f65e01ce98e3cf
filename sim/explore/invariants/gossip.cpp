#include <cmath>
#include <optional>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

class GossipChecker final : public Invariant {
 public:
  void happened(const VirtualRun& run) override {
    const double sum = run.weight();
    if (!start_) start_ = sum;
    // Multiples of 2⁻⁵² add without rounding: the sums must be exactly equal.
    if (sum != *start_ || std::abs(sum - 1) > std::ldexp(1, -48))
      throw Violation("the weights of living workers, peer messages in flight and lost members add up to 1 - " +
                      std::to_string(1 - sum));
    for (WorkerId w = 0; w < run.workers(); ++w)
      if (run.worker(w).alive() && !(run.worker(w).host().rule().weight() > 0))
        throw Violation("a worker has given everything away");
  }

  void at_rest(const VirtualRun& run) override {
    if (run.peer_message_weight() != 0)
      throw Violation("a peer message is still in flight when all workers have stopped");
  }

 private:
  std::optional<double> start_;
};

}  // namespace

std::unique_ptr<Invariant> checker(const GossipWeights&) { return std::make_unique<GossipChecker>(); }

}  // namespace troupe::explore
