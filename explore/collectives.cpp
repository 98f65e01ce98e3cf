#include "explore/collectives.hpp"

#include <algorithm>

#include "explore/memory.hpp"

namespace troupe::explore {

void Collectives::ask(WorkerId worker, Step step, ExchangeId id, const Task& task, core::Span memory, Done done) {
  const auto key = std::pair{step, id};
  auto& meetings = meetings_[key];
  auto meeting = std::find_if(meetings.begin(), meetings.end(), [&](const Meeting& m) {
    return std::find(m.task.group.begin(), m.task.group.end(), worker) != m.task.group.end();
  });
  if (meeting == meetings.end()) meeting = meetings.insert(meeting, Meeting{task, {}});
  if (!(meeting->task == task)) throw Violation("members of a group disagree about a collective");
  if (!meeting->parts.emplace(worker, Part{memory, std::move(done), queue_.now()}).second)
    throw Violation("a member asked twice for a collective");
  if (meeting->parts.size() < task.group.size()) return;

  std::vector<core::Span> all;
  std::size_t root = 0;
  for (const auto& [rank, part] : meeting->parts) {
    if (rank == task.root) root = all.size();
    all.push_back(part.memory);
  }
  std::vector<std::vector<float>> before;
  if (watch_)
    for (const auto& part : all) before.emplace_back(part.begin(), part.end());
  if (task.broadcast) {
    kernels_.broadcast_all(all, root);
  } else {
    kernels_.reduce_all(all, task.op == ReduceOp::mean ? 1.0F / static_cast<float>(all.size()) : 1.0F);
  }
  ++performed_;
  if (watch_) watch_(step, task, before, all);
  for (auto& [rank, part] : meeting->parts) {
    network_.send({Traffic::collective, rank, rank}, Order::any,
                  [done = std::move(part.done), waited = queue_.now() - part.asked, worker] { done(waited, worker); });
  }
  meetings.erase(meeting);
  if (meetings.empty()) meetings_.erase(key);
}

}  // namespace troupe::explore
