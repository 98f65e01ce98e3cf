#include "replay/wire.hpp"

#include <new>
#include <utility>
#include <vector>

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
  if (!plan_.wire) return;
  std::vector<std::uint16_t> halves(vector.size());
  kernels_.narrow(halves, vector, *plan_.wire);
  kernels_.widen(vector, halves, *plan_.wire);
}

experiment::Lent Wire::room(core::ConstSpan vector, Position position, bool filled) const {
  const auto there = std::make_shared<core::Buffer>(buffer(vector.size()));
  if (filled) send(vector, there->view(), position);
  return {there->view(), there};
}

experiment::Lent Wire::letter(strategies::WorkerId from, strategies::WorkerId to, core::ConstSpan arena) const {
  if (is_between_workers(from, to)) return room(arena, 0, true);
  const auto copy = std::make_shared<core::Buffer>(buffer(arena.size()));
  kernels_.copy(copy->view(), arena);
  return {copy->view(), copy};
}

void Wire::send(core::ConstSpan from, core::Span to, Position position) const {
  if (!travels_packed(position)) {
    kernels_.copy(to, from);
    return round(to);
  }
  auto dense = packed(from, *position);
  round(dense.view());
  unpack(dense.view(), *position, to);
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
