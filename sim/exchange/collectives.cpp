#include "sim/exchange/collectives.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe::sim {

using strategies::WorkerId;

void Collectives::ask(WorkerId worker, Duration now, strategies::Step step, strategies::ExchangeId id,
                      std::span<const WorkerId> group, const CollectiveTask& task, const Vector& vector) {
  const auto [place, fresh] = gathering_.try_emplace({step, id, group.front()});
  if (fresh) {
    place->second = collectives_.take();
    auto& collective = collectives_[place->second];
    collective.step = step;
    collective.id = id;
    collective.task = task;
    collective.group.assign(group.begin(), group.end());
    collective.parts.clear();
    collective.complete = Duration{0};
  }
  const auto index = place->second;
  auto& collective = collectives_[index];
  if (!(collective.task == task) || collective.group.size() != group.size() || collective.group.back() != group.back())
    throw std::logic_error("strategy: members of a group disagree about a collective");
  collective.parts.push_back({worker, now});
  if (now >= collective.complete) {
    collective.complete = now;
    collective.last = worker;
  }
  if (collective.parts.size() < collective.group.size()) return;
  gathering_.erase(place);
  begin(index, vector);
}

void Collectives::begin(std::uint32_t index, const Vector& vector) {
  auto& collective = collectives_[index];
  auto& parts = collective.parts;
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.worker < b.worker; });
  hosts_.clear();
  auto begins = collective.complete;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].worker == parts[i - 1].worker)
      throw std::logic_error("strategy: a member asked twice for a collective");
    hosts_.push_back(cluster_.workers[parts[i].worker].host);
    begins = std::max(begins, free_[parts[i].worker]);
  }
  const auto ends =
      begins + (collective.task.broadcast ? costs_.broadcast(vector, hosts_) : costs_.reduce(vector, hosts_));
  costs_.add_card_time(vector, hosts_, collective.task.broadcast, card_time_);
  for (const auto& part : parts) free_[part.worker] = ends;
  running_.push_back(index);
  queue_.schedule(ends, EventKind::collective_done, index, collective.generation);
}

const PendingCollective* Collectives::done(std::uint32_t index, std::uint64_t generation) const {
  return collectives_[index].generation == generation ? &collectives_[index] : nullptr;
}

void Collectives::close(std::uint32_t index) {
  std::erase(running_, index);
  ++collectives_[index].generation;
  collectives_.release(index);
}

void Collectives::abandon(std::span<const WorkerId> workers) {
  const auto concerned = [&](std::uint32_t index) {
    const auto& group = collectives_[index].group;
    return std::any_of(group.begin(), group.end(),
                       [&](WorkerId member) { return std::binary_search(workers.begin(), workers.end(), member); });
  };
  std::vector<std::uint32_t> given_up;
  std::erase_if(gathering_, [&](const auto& entry) {
    if (!concerned(entry.second)) return false;
    given_up.push_back(entry.second);
    return true;
  });
  std::copy_if(running_.begin(), running_.end(), std::back_inserter(given_up), concerned);
  for (const auto index : given_up) close(index);
  for (const auto worker : workers) free_[worker] = queue_.now();
}

}  // namespace troupe::sim
