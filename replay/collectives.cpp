#include "replay/collectives.hpp"

#include <algorithm>

#include "transport/reduce.hpp"

namespace troupe::replay {

Collectives::Collectives(const Wire& wire, std::unique_ptr<SiteSums> sums, const core::Kernels& kernels)
    : wire_(wire), sums_(std::move(sums)), kernels_(kernels) {}

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
  const bool apart =
      std::ranges::any_of(task.group, [&](auto other) { return wire_.is_between_workers(task.group.front(), other); });
  if (apart) over_sites(task, arenas, root, scale);
  for (std::size_t rank = 0; rank < ranks && !apart; ++rank) {
    if (task.broadcast)
      transport::broadcast_slice(kernels_, arenas, rank, root);
    else
      transport::reduce_slice(kernels_, arenas, rank, scale);
  }
  open_.erase({task.group, step, id});
}

void Collectives::over_sites(const Task& task, const std::vector<core::Span>& parts, std::size_t root, float scale) {
  const auto broadcast_from = task.broadcast ? std::optional(root) : std::nullopt;
  if (!wire_.travels_packed(task.position)) return sums_->run(task.group, parts, broadcast_from, scale, task.rounding);
  std::vector<core::Buffer> dense;
  std::vector<core::Span> views;
  for (const auto& part : parts) dense.push_back(wire_.packed(part, *task.position));
  for (auto& buffer : dense) views.push_back(buffer.view());
  sums_->run(task.group, views, broadcast_from, scale, task.rounding);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) wire_.unpack(views[rank], *task.position, parts[rank]);
}

bool Collectives::take_done(strategies::WorkerId worker, strategies::ExchangeId id) {
  return done_.erase({worker, id}) > 0;
}

}  // namespace troupe::replay
