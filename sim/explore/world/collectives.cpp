#include "sim/explore/world/collectives.hpp"

#include <algorithm>

#include "sim/explore/world/memory.hpp"

namespace troupe::explore {

void Collectives::ask(WorkerId worker, Step step, ExchangeId id, const Task& task, core::Span memory, Done done) {
  const auto key = std::pair{step, id};
  auto& collectives = collectives_[key];
  auto collective = std::find_if(collectives.begin(), collectives.end(), [&](const PendingCollective& m) {
    return std::find(m.task.group.begin(), m.task.group.end(), worker) != m.task.group.end();
  });
  if (collective == collectives.end()) collective = collectives.insert(collective, PendingCollective{task, {}});
  if (!(collective->task == task)) throw Violation("members of a group disagree about a collective");
  if (!collective->parts.emplace(worker, Part{memory, std::move(done), queue_.now()}).second)
    throw Violation("a member asked twice for a collective");
  if (task.broadcast) spread(*collective, worker);
  if (collective->parts.size() < task.group.size()) return;
  if (!task.broadcast) perform(*collective, step, worker);
  ++performed_;
  collectives.erase(collective);
  if (collectives.empty()) collectives_.erase(key);
}

void Collectives::perform(PendingCollective& collective, Step step, WorkerId last) {
  std::vector<core::Span> all;
  for (const auto& [rank, part] : collective.parts) all.push_back(part.memory);
  std::vector<std::vector<float>> before;
  if (watch_)
    for (const auto& part : all) before.emplace_back(part.begin(), part.end());
  kernels_.reduce_all(all, collective.task.op == ReduceOp::mean ? 1.0F / static_cast<float>(all.size()) : 1.0F);
  if (watch_) watch_(step, collective.task, before, all);
  for (auto& [rank, part] : collective.parts) {
    network_.send({Traffic::collective, rank, rank}, Order::any,
                  [done = std::move(part.done), waited = queue_.now() - part.asked, last] { done(waited, last); });
  }
}

/// Called when `last` has asked.
void Collectives::spread(PendingCollective& collective, WorkerId last) {
  if (last == collective.task.root) {
    const auto& mine = collective.parts.at(last).memory;
    collective.roots_vector = std::make_shared<const std::vector<float>>(mine.begin(), mine.end());
    for (auto& [rank, part] : collective.parts) bring(collective, rank, part, last);
  } else if (collective.roots_vector) {
    bring(collective, last, collective.parts.at(last), last);
  }
}

void Collectives::bring(const PendingCollective& collective, WorkerId to, Part& part, WorkerId last) {
  network_.send({Traffic::collective, to, to}, Order::any,
                [memory = part.memory, vector = collective.roots_vector, done = std::move(part.done),
                 waited = queue_.now() - part.asked, last] {
                  std::copy(vector->begin(), vector->end(), memory.begin());
                  done(waited, last);
                });
}

}  // namespace troupe::explore
