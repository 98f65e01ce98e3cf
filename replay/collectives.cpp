#include "replay/collectives.hpp"

#include "transport/reduce.hpp"

namespace troupe::replay {

void Collectives::join(strategies::WorkerId worker, strategies::Step step, strategies::ExchangeId id, Task task,
                       core::Span part) {
  auto& parts = open_[{task.group, step, id}];
  parts.emplace(worker, part);
  if (parts.size() < task.group.size()) return;
  std::vector<core::Span> arenas;  // in rank order: the map is ordered
  std::size_t root = 0;
  for (const auto& [member, span] : parts) {
    if (member == task.root) root = arenas.size();
    arenas.push_back(span);
    done_.emplace(member, id);
  }
  const auto ranks = arenas.size();
  const float scale = task.op == strategies::ReduceOp::mean ? 1 / static_cast<float>(ranks) : 1;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (task.broadcast)
      transport::broadcast_slice(kernels_, arenas, rank, root);
    else
      transport::reduce_slice(kernels_, arenas, rank, scale);
  }
  open_.erase({task.group, step, id});
}

bool Collectives::take_done(strategies::WorkerId worker, strategies::ExchangeId id) {
  return done_.erase({worker, id}) > 0;
}

}  // namespace troupe::replay
