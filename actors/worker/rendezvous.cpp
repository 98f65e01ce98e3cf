#include "actors/worker/rendezvous.hpp"

#include <algorithm>

#include "transport/exchange/reduce.hpp"

namespace troupe::actors {

using strategies::WorkerId;

void Rendezvous::begin(Key key, Task task, BorrowedView slice, core::Duration now) {
  auto& entry = entries_[key];
  entry.task = std::move(task);
  entry.began = now;
  entry.parts.emplace(self_, std::move(slice));
  entry.last_part = now;
  entry.last_worker = self_;
}

void Rendezvous::offered(Key key, WorkerId from, BorrowedView slice, core::Duration now) {
  auto& entry = entries_[key];
  entry.parts.emplace(from, std::move(slice));
  entry.last_part = now;
  entry.last_worker = from;
}

void Rendezvous::share_done(Key key, WorkerId from) { entries_[key].done.push_back(from); }

bool Rendezvous::work(Key key, const core::Kernels& kernels) {
  auto& entry = entries_[key];
  if (!entry.task || entry.worked || entry.parts.size() < entry.task->group.size()) return false;
  std::vector<core::Span> arenas;  // in rank order, as the map
  std::size_t own = 0;
  std::size_t root = 0;
  for (const auto& [worker, part] : entry.parts) {
    if (worker == self_) own = arenas.size();
    if (entry.task->root == worker) root = arenas.size();
    arenas.push_back(part.data);
  }
  if (entry.task->root) {
    exchange::broadcast_slice(kernels, arenas, own, root);
  } else {
    const auto count = static_cast<float>(arenas.size());
    exchange::reduce_slice(kernels, arenas, own, entry.task->op == strategies::ReduceOp::mean ? 1 / count : 1);
  }
  entry.worked = true;
  entry.done.push_back(self_);
  return true;
}

std::optional<Rendezvous::Finished> Rendezvous::finish(Key key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  const auto& entry = found->second;
  if (!entry.worked || entry.done.size() < entry.task->group.size()) return {};
  const Finished finished{key.second, entry.task->slot, entry.last_part - entry.began, entry.last_worker};
  entries_.erase(found);
  return finished;
}

std::optional<core::Duration> Rendezvous::oldest() const {
  std::optional<core::Duration> oldest;
  for (const auto& [key, entry] : entries_) {
    if (entry.task && (!oldest || entry.began < *oldest)) oldest = entry.began;
  }
  return oldest;
}

std::vector<WorkerId> Rendezvous::missing() const {
  std::vector<WorkerId> missing;
  for (const auto& [key, entry] : entries_) {
    if (!entry.task) continue;
    for (const auto worker : entry.task->group) {
      const bool came = entry.parts.contains(worker);
      const bool did = std::find(entry.done.begin(), entry.done.end(), worker) != entry.done.end();
      if (!came || !did) missing.push_back(worker);
    }
    break;
  }
  return missing;
}

}  // namespace troupe::actors
