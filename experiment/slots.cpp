#include "experiment/slots.hpp"

#include <stdexcept>

namespace troupe::experiment {

using strategies::Slot;
using strategies::SlotKind;

core::Result<Slots> Slots::create(std::shared_ptr<nn::Replica> replica, core::Allocator& allocator,
                                  const std::vector<Slot>& extra) {
  Slots slots;
  const auto floats = replica->parameters().size();
  slots.replica_ = std::move(replica);
  for (const Slot slot : extra) {
    auto buffer = core::Buffer::allocate(allocator, floats);
    if (!buffer) return tl::unexpected(buffer.error());
    slots.extra_.emplace(slot, std::make_shared<core::Buffer>(std::move(*buffer)));
  }
  return slots;
}

core::Span Slots::view(Slot slot) {
  if (slot.kind == SlotKind::params) return replica_->parameters();
  if (slot.kind == SlotKind::grads) return replica_->gradients();
  if (slot.kind == SlotKind::statistics) return replica_->statistics();
  const auto found = extra_.find(slot);
  return found == extra_.end() ? core::Span{} : found->second->view();
}

Lent Slots::lend(Slot slot, std::size_t offset, std::size_t count) {
  const auto whole = view(slot);
  if (offset + count > whole.size()) throw std::logic_error("a slot is to be lent that this worker does not have");
  const auto found = extra_.find(slot);
  if (found != extra_.end()) return {whole.subspan(offset, count), found->second};
  return {whole.subspan(offset, count), replica_};
}

}  // namespace troupe::experiment
