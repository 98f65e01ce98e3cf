#include "sim/replay/wire.hpp"

#include <new>
#include <utility>
#include <vector>

#include "transport/exchange/on_wire.hpp"

namespace troupe::replay {

Wire::Wire(const experiment::ExchangePlan& plan, std::shared_ptr<const exchange::Packing> packing,
           const core::Kernels& kernels, core::Allocator& memory)
    : plan_(plan), packing_(std::move(packing)), kernels_(kernels), memory_(memory) {}

bool Wire::is_between(strategies::WorkerId worker, strategies::ShardId shard) const {
  return !plan_.in_place() && plan_.worker_sites.at(worker) != plan_.server_sites.at(shard);
}

bool Wire::is_between_workers(strategies::WorkerId one, strategies::WorkerId other) const {
  return !plan_.in_place() && plan_.worker_sites.at(one) != plan_.worker_sites.at(other);
}

core::Buffer Wire::buffer(std::size_t floats) const {
  auto buffer = core::Buffer::allocate(memory_, floats);
  if (!buffer) throw std::bad_alloc();
  return std::move(*buffer);
}

void Wire::round(core::Span vector) const {
  std::vector<std::uint16_t> halves(vector.size());
  kernels_.narrow(halves, vector, *plan_.wire);
  kernels_.widen(vector, halves, *plan_.wire);
}

/// The caller adds the change that it receives; a change that does not fit comes as the value itself (transport/exchange/on_wire.hpp).
void Wire::change(core::Span vector, core::ConstSpan now) const {
  auto before = buffer(vector.size());
  kernels_.copy(before.view(), vector);
  std::vector<std::uint16_t> halves(vector.size());
  if (exchange::round_change(kernels_, halves, now, before.view(), *plan_.wire))
    kernels_.add_wide(vector, halves, *plan_.wire);
  else
    kernels_.widen(vector, halves, *plan_.wire);
}

template <class Act>
void Wire::travel(core::ConstSpan from, core::Span to, Position position, Act act) const {
  if (!travels_packed(position)) return act(to, from);
  auto there = packed(to, *position);
  const auto here = packed(from, *position);
  act(there.view(), here.view());
  unpack(there.view(), *position, to);
}

experiment::BorrowedView Wire::room(core::ConstSpan vector, Position position, bool filled,
                                    core::Rounding rounding) const {
  const auto there = std::make_shared<core::Buffer>(buffer(vector.size()));
  if (filled)
    travel(vector, there->view(), position, [&](core::Span to, core::ConstSpan from) {
      kernels_.copy(to, from);
      if (plan_.rounds_there(rounding)) round(to);
    });
  return {there->view(), there};
}

experiment::BorrowedView Wire::peer_message(strategies::WorkerId from, strategies::WorkerId to,
                                            core::ConstSpan arena) const {
  if (is_between_workers(from, to)) return room(arena, 0, true, core::Rounding::none);
  const auto copy = std::make_shared<core::Buffer>(buffer(arena.size()));
  kernels_.copy(copy->view(), arena);
  return {copy->view(), copy};
}

void Wire::send_back(core::ConstSpan from, core::Span to, Position position, core::Rounding rounding) const {
  travel(from, to, position, [&](core::Span there, core::ConstSpan here) {
    const bool rounds = plan_.rounds_back(rounding);
    if (rounds && rounding == core::Rounding::change && !plan_.rounds_masters) return change(there, here);
    kernels_.copy(there, here);
    if (rounds) round(there);
  });
}

core::Buffer Wire::packed(core::ConstSpan vector, std::size_t position) const {
  auto dense = buffer(packing_->packed(position, vector.size()));
  packing_->pack(vector, position, dense.view());
  return dense;
}

void Wire::unpack(core::ConstSpan dense, std::size_t position, core::Span vector) const {
  packing_->unpack(dense, position, vector);
}

}  // namespace troupe::replay
