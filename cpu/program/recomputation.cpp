// Activations that backward computes again instead of keeping them.
#include <functional>

#include "cpu/program/program_builder.hpp"

namespace troupe::cpu {

void ProgramBuilder::add_recomputation(const Operand& output, dnnl::primitive primitive, Arguments arguments,
                                       const dnnl::memory::desc& scratchpad) {
  recomputations_[output.index] = {draft_of(std::move(primitive), std::move(arguments), scratchpad), output};
}

/// Whether a tensor of forward can be computed again from tensors that live until backward anyway (`kept`) or can be computed again
/// themselves, and is what its layer wrote: no later operation of forward has overwritten it.
bool ProgramBuilder::can_recompute(int slot, const std::set<int>& kept) const {
  const auto found = recomputations_.find(slot);
  if (found == recomputations_.end()) return false;
  int writers = 0;
  for (const Draft& draft : drafts_[static_cast<std::size_t>(Phase::forward)]) {
    if (draft.when == When::evaluation) continue;
    for (const auto& [argument, operand] : draft.arguments)
      if (argument == DNNL_ARG_DST && operand.place == Place::workspace && operand.index == slot) ++writers;
    for (const Operand& operand : draft.data)  // kernels may write any of their tensors
      if (operand.place == Place::workspace && operand.index == slot) ++writers;
  }
  if (writers != 1) return false;
  for (const auto& [argument, operand] : found->second.draft.arguments) {
    if (operand.place != Place::workspace || argument == DNNL_ARG_DST || argument == DNNL_ARG_SCRATCHPAD) continue;
    if (kept.count(operand.index) == 0 && !can_recompute(operand.index, kept)) return false;
  }
  return true;
}

void ProgramBuilder::recompute_in_backward() {
  auto& backward = drafts(Phase::backward);
  std::set<int> kept;
  for (const Draft& draft : backward) {
    for (const auto& [argument, operand] : draft.arguments)
      if (operand.place == Place::workspace) kept.insert(operand.index);
    for (const Operand& operand : draft.data)
      if (operand.place == Place::workspace) kept.insert(operand.index);
  }
  std::vector<Draft> result;
  std::map<int, int> again;  // slot of forward → slot in backward
  const std::function<void(Operand&)> renew = [&](Operand& operand) {
    if (operand.place != Place::workspace) return;
    auto known = again.find(operand.index);
    if (known == again.end()) {
      if (!can_recompute(operand.index, kept)) return;
      Draft draft = recomputations_.at(operand.index).draft;
      const Operand output = make_floats(slots_[static_cast<std::size_t>(operand.index)].floats);
      for (auto& [argument, tensor] : draft.arguments)
        if (argument == DNNL_ARG_DST)
          tensor.index = output.index;
        else
          renew(tensor);
      result.push_back(std::move(draft));
      known = again.emplace(operand.index, output.index).first;
    }
    operand.index = known->second;
  };
  for (Draft& draft : backward) {
    for (auto& [argument, operand] : draft.arguments) renew(operand);
    for (Operand& operand : draft.data) renew(operand);
    result.push_back(std::move(draft));
  }
  backward = std::move(result);
}

}  // namespace troupe::cpu
