#include "sim/collectives.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::sim {

using strategies::WorkerId;

void Collectives::ask(WorkerId worker, Duration now, strategies::Step step, strategies::ExchangeId id,
                      std::span<const WorkerId> group, const CollectiveTask& task, const Vector& vector) {
  const auto [place, fresh] = gathering_.try_emplace({step, id, group.front()});
  if (fresh) {
    place->second = meetings_.take();
    auto& meeting = meetings_[place->second];
    meeting.step = step;
    meeting.id = id;
    meeting.task = task;
    meeting.members = group.size();
    meeting.parts.clear();
    meeting.complete = Duration{0};
  }
  const auto index = place->second;
  auto& meeting = meetings_[index];
  if (!(meeting.task == task) || meeting.members != group.size())
    throw std::logic_error("strategy: members of a group disagree about a collective");
  meeting.parts.push_back({worker, now});
  if (now >= meeting.complete) {
    meeting.complete = now;
    meeting.last = worker;
  }
  if (meeting.parts.size() < meeting.members) return;
  gathering_.erase(place);
  begin(index, vector);
}

void Collectives::begin(std::uint32_t index, const Vector& vector) {
  auto& meeting = meetings_[index];
  auto& parts = meeting.parts;
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.worker < b.worker; });
  hosts_.clear();
  auto begins = meeting.complete;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].worker == parts[i - 1].worker)
      throw std::logic_error("strategy: a member asked twice for a collective");
    hosts_.push_back(cluster_.workers[parts[i].worker].host);
    begins = std::max(begins, free_[parts[i].worker]);
  }
  const auto ends =
      begins + (meeting.task.broadcast ? costs_.broadcast(vector, hosts_) : costs_.reduce(vector, hosts_));
  for (const auto& part : parts) free_[part.worker] = ends;
  running_.push_back(index);
  queue_.plan(ends, EventKind::collective_done, index, era_);
}

Meeting* Collectives::done(std::uint32_t index, std::uint64_t era) { return era == era_ ? &meetings_[index] : nullptr; }

void Collectives::close(std::uint32_t index) {
  std::erase(running_, index);
  meetings_.release(index);
}

void Collectives::abandon() {
  for (const auto& [key, index] : gathering_) meetings_.release(index);
  for (const auto index : running_) meetings_.release(index);
  gathering_.clear();
  running_.clear();
  std::fill(free_.begin(), free_.end(), queue_.now());
  ++era_;
}

}  // namespace troupe::sim
