#include "strategies/host/member_steps.hpp"

#include <algorithm>

namespace troupe::strategies {

Step newcomer_step(bool in_step, std::span<const Step> members) noexcept {
  if (members.empty()) return 0;
  return in_step ? *std::ranges::max_element(members) : *std::ranges::min_element(members);
}

void MemberSteps::joined(WorkerId worker, Step first) {
  first_.at(worker) = first;
  ended_.at(worker) = 0;
}

std::vector<Step> MemberSteps::all() const {
  std::vector<Step> all;
  for (WorkerId worker = 0; worker < first_.size(); ++worker) all.push_back(of(worker));
  return all;
}

Step MemberSteps::of_newcomer(bool in_step, std::span<const WorkerId> members) const {
  std::vector<Step> stand;
  for (const auto worker : members) stand.push_back(of(worker));
  return newcomer_step(in_step, stand);
}

}  // namespace troupe::strategies
