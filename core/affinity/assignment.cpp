#include "core/affinity/assignment.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/plural.hpp"

namespace troupe::core {
namespace {

/// The cores, or their hardware threads, that workers can be given. Units are numbered in the machine's order.
class Units {
 public:
  explicit Units(std::vector<Core> units) : units_(std::move(units)), free_(units_.size(), true) {
    for (const auto& unit : units_) ++in_node_[unit.node];
  }

  [[nodiscard]] std::size_t size() const noexcept { return units_.size(); }

  /// Takes `count` free units, as near to each other as there are. REQUIRES: so many are free. Returns them ascending.
  std::vector<std::size_t> take(std::size_t count) {
    const auto places = free_places();
    std::map<unsigned, std::size_t> in_node;
    for (const auto& [place, free] : places) in_node[place.first] += free.size();

    // One cache has enough: from the node with the most free units, the emptier one of two, and there from the cache with the most.
    const std::pair<const Place, std::vector<std::size_t>>* best = nullptr;
    const auto room = [&](const auto& place) {
      const auto node = place.first.first;
      const auto taken = in_node_.at(node) - in_node[node];
      return std::tuple(in_node[node], std::numeric_limits<std::size_t>::max() - taken, place.second.size());
    };
    for (const auto& place : places)
      if (place.second.size() >= count && (best == nullptr || room(place) > room(*best))) best = &place;
    std::vector<std::size_t> taken;
    if (best != nullptr) {
      taken.assign(best->second.begin(), best->second.begin() + static_cast<std::ptrdiff_t>(count));
    } else {
      // Else from one node if one has enough, and from the caches with the most free units first.
      std::optional<unsigned> node;
      for (const auto& [candidate, free] : in_node)
        if (free >= count && (!node || free > in_node[*node])) node = candidate;
      std::vector<std::tuple<std::size_t, std::size_t, const std::vector<std::size_t>*>> order;
      for (const auto& [place, free] : places)
        if (!node || place.first == *node) order.emplace_back(in_node[place.first], free.size(), &free);
      std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
        return std::pair(std::get<0>(a), std::get<1>(a)) > std::pair(std::get<0>(b), std::get<1>(b));
      });
      for (const auto& [in_this_node, in_this_cache, free] : order)
        for (const auto unit : *free)
          if (taken.size() < count) taken.push_back(unit);
      std::ranges::sort(taken);
    }
    for (const auto unit : taken) free_[unit] = false;
    return taken;
  }

  [[nodiscard]] Cpus cpus(const std::vector<std::size_t>& units) const {
    Cpus all;
    for (const auto unit : units) all.insert(all.end(), units_[unit].cpus.begin(), units_[unit].cpus.end());
    std::ranges::sort(all);
    return all;
  }

  [[nodiscard]] std::vector<std::size_t> free_units() const {
    std::vector<std::size_t> units;
    for (std::size_t unit = 0; unit < units_.size(); ++unit)
      if (free_[unit]) units.push_back(unit);
    return units;
  }

 private:
  using Place = std::pair<unsigned, unsigned>;  // memory node, cache
  [[nodiscard]] std::map<Place, std::vector<std::size_t>> free_places() const {
    std::map<Place, std::vector<std::size_t>> places;
    for (const auto unit : free_units()) places[{units_[unit].node, units_[unit].cache}].push_back(unit);
    return places;
  }

  std::vector<Core> units_;
  std::vector<bool> free_;
  std::map<unsigned, std::size_t> in_node_;  // free or not
};

std::vector<Core> allowed_cores(const Machine& machine, const Cpus& allowed) {
  std::vector<Core> cores;
  for (const auto& core : machine.cores)
    if (auto cpus = common(core.cpus, allowed); !cpus.empty())
      cores.push_back({.cpus = std::move(cpus), .cache = core.cache, .node = core.node});
  return cores;
}

std::vector<Core> hardware_threads(const std::vector<Core>& cores) {
  std::vector<Core> single;
  for (const auto& core : cores)
    for (const auto cpu : core.cpus) single.push_back({.cpus = {cpu}, .cache = core.cache, .node = core.node});
  return single;
}

/// Neighbouring workers become neighbours on the machine: they exchange the most.
void put_in_order(std::vector<std::vector<std::size_t>>& units, std::span<const unsigned> threads) {
  const std::set<unsigned> sizes(threads.begin(), threads.end());
  for (const auto size : sizes) {
    std::vector<std::vector<std::size_t>> equal;
    for (std::size_t worker = 0; worker < threads.size(); ++worker)
      if (threads[worker] == size) equal.push_back(std::move(units[worker]));
    std::ranges::sort(equal);
    auto next = equal.begin();
    for (std::size_t worker = 0; worker < threads.size(); ++worker)
      if (threads[worker] == size) units[worker] = std::move(*next++);
  }
}

}  // namespace

Assignment assign(const Machine& machine, const Cpus& allowed, std::span<const unsigned> threads,
                  std::size_t decoders) {
  const auto wanted = std::accumulate(threads.begin(), threads.end(), std::size_t{0});
  auto cores = allowed_cores(machine, allowed);
  if (wanted > cores.size()) cores = hardware_threads(cores);
  if (wanted > cores.size())
    return {.workers = {},
            .helpers = {},
            .reason = fmt::format("{} on this host have {} for {} that this process may use ({})",
                                  counted(threads.size(), "worker"), counted(wanted, "thread"),
                                  counted(cores.size(), "cpu"), to_text(allowed))};
  Units units(std::move(cores));
  std::vector<std::vector<std::size_t>> taken;
  for (const auto count : threads) taken.push_back(units.take(count));
  put_in_order(taken, threads);
  Assignment assignment;
  for (const auto& own : taken) assignment.workers.push_back(units.cpus(own));
  if (const auto left = units.free_units(); left.size() >= decoders) assignment.helpers = units.cpus(left);
  return assignment;
}

std::vector<unsigned> memory_nodes(const Machine& machine, const Cpus& cpus) {
  std::set<unsigned> nodes;
  for (const auto& core : machine.cores)
    if (!common(core.cpus, cpus).empty()) nodes.insert(core.node);
  return {nodes.begin(), nodes.end()};
}

std::string describe(const Machine& machine, std::size_t worker, const Cpus& cpus) {
  auto text = fmt::format("worker {} on {} {}", worker, noun(cpus.size(), "cpu"), to_text(cpus));
  Cpus all;
  for (const auto& core : machine.cores) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  std::ranges::sort(all);
  if (memory_nodes(machine, all).size() > 1) {
    const auto nodes = memory_nodes(machine, cpus);
    text += fmt::format(" ({} {})", noun(nodes.size(), "memory node"), fmt::join(nodes, ", "));
  }
  return text;
}

}  // namespace troupe::core
