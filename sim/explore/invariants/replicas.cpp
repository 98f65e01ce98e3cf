#include <map>
#include <string>

#include "sim/explore/invariants/invariants.hpp"
#include "sim/explore/world/virtual_run.hpp"

namespace troupe::explore {
namespace {

class ReplicasChecker final : public Invariant {
 public:
  explicit ReplicasChecker(std::uint32_t group_size) : group_size_(group_size) {}

  void step_begins(const VirtualRun&, const StepBegins& begins) override {
    const auto now = checksum(begins.params);
    const auto [first, fresh] = first_.try_emplace({begins.step, begins.worker / group_size_}, now);
    if (!fresh && first->second != now)
      throw Violation("worker " + std::to_string(begins.worker) + " begins step " + std::to_string(begins.step) +
                      " with other parameters than those before it");
  }

 private:
  std::uint32_t group_size_;
  std::map<std::pair<Step, std::uint32_t>, std::uint64_t> first_;  // by step and group: checksum of the first worker
};

}  // namespace

std::unique_ptr<Invariant> checker(const EqualReplicas& property) {
  return std::make_unique<ReplicasChecker>(property.group_size);
}

}  // namespace troupe::explore
