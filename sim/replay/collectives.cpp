#include "sim/replay/collectives.hpp"

#include <algorithm>
#include <utility>

#include "transport/exchange/reduce.hpp"

namespace troupe::replay {

Collectives::Collectives(const Wire& wire, std::unique_ptr<SiteSums> sums, const core::Kernels& kernels)
    : wire_(wire), sums_(std::move(sums)), kernels_(kernels) {}

void Collectives::join(strategies::WorkerId worker, strategies::Step step, strategies::ExchangeId id, Task task,
                       core::Span part) {
  const Key key{task.group, step, id};
  if (task.broadcast) return join_broadcast(worker, key, task, part);
  auto& parts = open_[key];
  parts.emplace(worker, part);
  if (parts.size() < task.group.size()) return;
  std::vector<core::Span> arenas;  // in rank order: the map is ordered
  for (const auto& [member, span] : parts) {
    arenas.push_back(span);
    done_.emplace(member, id);
  }
  const auto ranks = arenas.size();
  const float scale = task.op == strategies::ReduceOp::mean ? 1 / static_cast<float>(ranks) : 1;
  if (is_apart(task.group)) {
    over_sites(task, arenas, scale);
  } else {
    for (std::size_t rank = 0; rank < ranks; ++rank) exchange::reduce_slice(kernels_, arenas, rank, scale);
  }
  open_.erase(key);
}

bool Collectives::is_apart(const strategies::Group& group) const {
  return std::ranges::any_of(group, [&](auto other) { return wire_.is_between_workers(group.front(), other); });
}

void Collectives::over_sites(const Task& task, const std::vector<core::Span>& parts, float scale) {
  if (!wire_.travels_packed(task.position)) return sums_->run(task.group, parts, scale, task.rounding);
  std::vector<core::Buffer> dense;
  std::vector<core::Span> views;
  for (const auto& part : parts) dense.push_back(wire_.packed(part, *task.position));
  for (auto& buffer : dense) views.push_back(buffer.view());
  sums_->run(task.group, views, scale, task.rounding);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) wire_.unpack(views[rank], *task.position, parts[rank]);
}

void Collectives::join_broadcast(strategies::WorkerId worker, const Key& key, const Task& task, core::Span part) {
  auto& pending = pending_.try_emplace(key, PendingBroadcast{.missing = task.group.size()}).first->second;
  const auto id = std::get<2>(key);
  if (worker == task.root) {
    pending.vector.resize(part.size());
    kernels_.download(pending.vector, part);
    done_.emplace(worker, id);
    for (const auto& [member, span] : std::exchange(pending.waiting, {})) {
      spread(member, task, pending.vector, span);
      done_.emplace(member, id);
    }
  } else if (pending.vector.empty()) {
    pending.waiting.emplace(worker, part);
  } else {
    spread(worker, task, pending.vector, part);
    done_.emplace(worker, id);
  }
  if (--pending.missing == 0) pending_.erase(key);
}

/// A broadcast is never rounded. Between sites the padding is not sent.
void Collectives::spread(strategies::WorkerId to, const Task& task, core::ConstSpan vector, core::Span part) {
  if (wire_.is_between_workers(task.root, to) && wire_.travels_packed(task.position))
    wire_.unpack(wire_.packed(vector, *task.position).view(), *task.position, part);
  else
    kernels_.upload(part, vector);
}

bool Collectives::take_done(strategies::WorkerId worker, strategies::ExchangeId id) {
  return done_.erase({worker, id}) > 0;
}

}  // namespace troupe::replay
