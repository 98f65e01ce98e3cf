#include <set>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/invariants/oracle.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

class PairsChecker final : public Invariant {
 public:
  void performed(const VirtualRun&, Step step, const Collectives::Task& task,
                 const std::vector<std::vector<float>>& before, const std::vector<core::Span>& after) override {
    if (after.size() != 2) throw Violation("a pair of " + std::to_string(after.size()));
    for (const auto worker : task.group)
      if (!met_.emplace(step, worker).second) throw Violation("a worker met two others in one round");
    for (std::size_t i = 0; i < after[0].size(); ++i) {
      const double mean = (double{before[0][i]} + double{before[1][i]}) / 2;
      for (const auto& one : after) expect_close(one[i], mean, mean, "a pair goes on from other than its mean");
      if (after[0][i] != after[1][i]) throw Violation("a pair goes on from two means");
    }
  }

 private:
  std::set<std::pair<Step, WorkerId>> met_;
};

}  // namespace

std::unique_ptr<Invariant> checker(const MeansOfPairs&) { return std::make_unique<PairsChecker>(); }

}  // namespace troupe::explore
