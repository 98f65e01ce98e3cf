// Activations that backward computes again instead of keeping them.
#include <functional>

#include "gpu/program/program_builder.hpp"

namespace troupe::gpu {
namespace {

/// Calls `use` for each slot of the workspace that the operation reads or writes.
template <class Use>
void for_each_slot(const Draft& draft, const Use& use) {
  for (const auto* operands : {&draft.reads, &draft.writes})
    for (const Operand& operand : *operands)
      if (operand.storage == Storage::workspace) use(operand.index);
}

}  // namespace

/// Whether a tensor of forward can be computed again from tensors that live until backward anyway (`kept`) or can be computed again
/// themselves, and is what its layer wrote: no later operation of forward has overwritten it.
bool ProgramBuilder::can_recompute(int slot, const std::set<int>& kept) const {
  const auto found = recomputations_.find(slot);
  if (found == recomputations_.end()) return false;
  std::size_t writers = 0;
  for (const Draft& draft : drafts(Phase::forward))
    if (draft.when != When::evaluation)
      for (const Operand& operand : draft.writes)
        if (operand.storage == Storage::workspace && operand.index == slot) ++writers;
  if (writers != found->second.size()) return false;
  for (const Draft& draft : found->second)
    for (const Operand& operand : draft.reads)
      if (operand.storage == Storage::workspace && kept.count(operand.index) == 0 &&
          !can_recompute(operand.index, kept))
        return false;
  return true;
}

void ProgramBuilder::recompute_in_backward() {
  std::set<int> kept;
  for (const Draft& draft : drafts(Phase::backward)) for_each_slot(draft, [&](int slot) { kept.insert(slot); });
  std::vector<Draft> result;
  std::map<int, int> again;  // slot of forward → slot in backward
  const std::function<void(Draft&)> renew = [&](Draft& draft) {
    const auto renewed = [&](int slot) {
      const auto known = again.find(slot);
      if (known != again.end()) return known->second;
      if (!can_recompute(slot, kept)) return slot;
      const int there = make_bytes(slots_[static_cast<std::size_t>(slot)].bytes).index;
      for (Draft recomputation : recomputations_.at(slot)) {
        renew(recomputation);
        recomputation.renamed[slot] = there;
        for (Operand& operand : recomputation.writes)
          if (operand.storage == Storage::workspace && operand.index == slot) operand.index = there;
        result.push_back(std::move(recomputation));
      }
      again.emplace(slot, there);
      return there;
    };
    for (Operand& operand : draft.reads) {
      if (operand.storage != Storage::workspace) continue;
      const int slot = operand.index;
      operand.index = renewed(slot);
      if (operand.index != slot) draft.renamed[slot] = operand.index;
    }
  };
  for (Draft& draft : drafts(Phase::backward)) {
    renew(draft);
    result.push_back(std::move(draft));
  }
  drafts(Phase::backward) = std::move(result);
}

}  // namespace troupe::gpu
