#include "sim/explore/world/collectives.hpp"

#include <algorithm>

#include "sim/explore/world/memory.hpp"

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
  if (task.broadcast) spread(*meeting, worker);
  if (meeting->parts.size() < task.group.size()) return;
  if (!task.broadcast) perform(*meeting, step, worker);
  ++performed_;
  meetings.erase(meeting);
  if (meetings.empty()) meetings_.erase(key);
}

void Collectives::perform(Meeting& meeting, Step step, WorkerId last) {
  std::vector<core::Span> all;
  for (const auto& [rank, part] : meeting.parts) all.push_back(part.memory);
  std::vector<std::vector<float>> before;
  if (watch_)
    for (const auto& part : all) before.emplace_back(part.begin(), part.end());
  kernels_.reduce_all(all, meeting.task.op == ReduceOp::mean ? 1.0F / static_cast<float>(all.size()) : 1.0F);
  if (watch_) watch_(step, meeting.task, before, all);
  for (auto& [rank, part] : meeting.parts) {
    network_.send({Traffic::collective, rank, rank}, Order::any,
                  [done = std::move(part.done), waited = queue_.now() - part.asked, last] { done(waited, last); });
  }
}

/// Called when `last` has asked.
void Collectives::spread(Meeting& meeting, WorkerId last) {
  if (last == meeting.task.root) {
    const auto& mine = meeting.parts.at(last).memory;
    meeting.roots_vector = std::make_shared<const std::vector<float>>(mine.begin(), mine.end());
    for (auto& [rank, part] : meeting.parts) bring(meeting, rank, part, last);
  } else if (meeting.roots_vector) {
    bring(meeting, last, meeting.parts.at(last), last);
  }
}

void Collectives::bring(const Meeting& meeting, WorkerId to, Part& part, WorkerId last) {
  network_.send({Traffic::collective, to, to}, Order::any,
                [memory = part.memory, vector = meeting.roots_vector, done = std::move(part.done),
                 waited = queue_.now() - part.asked, last] {
                  std::copy(vector->begin(), vector->end(), memory.begin());
                  done(waited, last);
                });
}

}  // namespace troupe::explore
