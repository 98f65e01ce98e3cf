#include "transport/exchange/collectives/collective.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/buffer.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/collectives/task.hpp"
#include "transport/native_reduction.hpp"

namespace troupe::exchange {
namespace {

void check(const OperationQueue& operations, const Group& group, const CollectiveTask& task) {
  const auto refuse = [](const char* why) { throw std::invalid_argument(std::string("collective: ") + why); };
  if (group.rank >= group.size()) refuse("the rank is not one of the group's");
  if (!group.hosts.empty() && group.hosts.size() != group.size()) refuse("not every rank has a host");
  if (task.root && *task.root >= group.size()) refuse("the root is not one of the group's");
  if (task.chunks.floats == 0 || task.chunks.floats % core::kAlignmentFloats != 0 || task.chunks.window == 0)
    refuse("chunks are not a multiple of the alignment, or no chunk may be under way");
  if (task.algorithm == Algorithm::automatic) refuse("no algorithm of this kind");
  if (info(task.algorithm).in_unknown_order() && !task.root && !has_library(operations, group.size()))
    refuse("ar, nccl: no library sums over this group");
  if (task.algorithm != Algorithm::shm) return;
  if (!task.arenas || !task.arenas->contains(task.vector)) refuse("shm: the vector is in no arena");
}

/// Each member on its own host, or all on one host: hierarchical has no advantage.
bool flat(const Group& group) {
  auto hosts = group.hosts;
  std::ranges::sort(hosts);
  const auto kinds = static_cast<std::size_t>(std::ranges::unique(hosts).begin() - hosts.begin());
  return kinds <= 1 || kinds == group.size();
}

std::uint64_t asa_floats(std::size_t floats, std::size_t rank, std::size_t ranks) {
  const std::uint64_t own = core::slice_of(floats, rank, ranks).count;
  return floats - own + own * (ranks - 1);
}

}  // namespace

bool has_library(const OperationQueue& operations, std::size_t members) {
  const auto* const native = operations.native_reduction();
  return native && native->members() == members;
}

std::unique_ptr<Collective> make_collective(OperationQueue& operations, const core::Kernels& kernels, Group group,
                                            CollectiveTask task, Collective::Done done) {
  check(operations, group, task);
  if (task.algorithm == Algorithm::hierarchical && flat(group)) task.algorithm = Algorithm::asa;
  const auto make = task.algorithm == Algorithm::shm            ? make_shared_memory
                    : task.root                                 ? make_broadcast
                    : info(task.algorithm).in_unknown_order()   ? make_library
                    : task.algorithm == Algorithm::ring         ? make_ring
                    : task.algorithm == Algorithm::hierarchical ? make_hierarchical
                                                                : make_asa;
  return make(operations, kernels, std::move(group), std::move(task), std::move(done));
}

std::uint64_t collective_bytes(const CollectiveTask& task, const Group& group, std::size_t floats) {
  const std::size_t n = group.size(), rank = group.rank;
  const auto slice = [&](std::size_t of) { return core::slice_of(floats, of % n, n).count; };
  if (n == 1) return 0;
  if (task.algorithm == Algorithm::shm) return (n - 1) * sizeof(ArenaPlace);
  if (task.root) return rank == *task.root ? (n - 1) * floats * sizeof(float) : 0;
  if (info(task.algorithm).in_unknown_order()) return 0;
  if (task.algorithm == Algorithm::asa16) return asa_floats(floats, rank, n) * sizeof(std::uint16_t);
  if (task.algorithm == Algorithm::ring) return (2 * floats - slice(rank + 1) - slice(rank + 2)) * sizeof(float);
  if (task.algorithm != Algorithm::hierarchical || flat(group)) return asa_floats(floats, rank, n) * sizeof(float);
  const auto host = group.hosts[rank];
  if (std::ranges::find(group.hosts, host) - group.hosts.begin() != static_cast<std::ptrdiff_t>(rank))
    return floats * sizeof(float);
  std::vector<std::uint32_t> leading;  // in the order of their first members
  for (const auto other : group.hosts)
    if (std::ranges::find(leading, other) == leading.end()) leading.push_back(other);
  const auto place = static_cast<std::size_t>(std::ranges::find(leading, host) - leading.begin());
  const auto neighbours = static_cast<std::uint64_t>(std::ranges::count(group.hosts, host)) - 1;
  return (neighbours * floats + asa_floats(floats, place, leading.size())) * sizeof(float);
}

std::uint64_t counted_bytes(CollectiveTask task, const Group& group, std::size_t floats) {
  if (task.algorithm == Algorithm::shm) task.algorithm = Algorithm::asa;
  return collective_bytes(task, group, floats);
}

}  // namespace troupe::exchange
