#include "experiment/sweep/asha.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::sweep {

std::vector<std::int64_t> rungs_of(std::int64_t epochs, std::int64_t least, double eta) {
  std::vector<std::int64_t> rungs;
  for (double at = static_cast<double>(least); at * eta <= static_cast<double>(epochs); at *= eta) {
    const auto rung = static_cast<std::int64_t>(std::llround(at));
    if (rung < epochs && (rungs.empty() || rung > rungs.back())) rungs.push_back(rung);
  }
  rungs.push_back(epochs);
  return rungs;
}

Asha::Asha(std::size_t rungs, double eta) : rungs_(rungs), eta_(eta) {}

void Asha::reached(std::size_t trial, std::size_t rung, double loss, bool last) {
  rungs_[rung].push_back({trial, loss, last || !std::isfinite(loss), false});
}

void Asha::promoted(std::size_t trial, std::size_t rung) {
  for (auto& entry : rungs_[rung])
    if (entry.trial == trial) entry.over = entry.promoted = true;
}

std::vector<Asha::Entry> Asha::ranked(std::size_t rung) const {
  auto entries = rungs_[rung];
  std::ranges::sort(entries, {}, [](const Entry& entry) { return std::pair(entry.loss, entry.trial); });
  return entries;
}

std::optional<Asha::Candidate> Asha::candidate(bool no_more_begin, std::size_t lowest) const {
  for (std::size_t rung = rungs_.size() - 1; rung-- > lowest;) {
    const auto entries = ranked(rung);
    auto most = static_cast<std::size_t>(std::floor(static_cast<double>(entries.size()) / eta_));
    const bool none_promoted = std::ranges::none_of(entries, &Entry::promoted);
    if (no_more_begin && none_promoted) most = std::max<std::size_t>(most, 1);
    for (std::size_t i = 0; i < std::min(most, entries.size()); ++i)
      if (!entries[i].over) return Candidate{entries[i].trial, rung};
  }
  return std::nullopt;
}

std::optional<Asha::Candidate> Asha::best_left(std::size_t lowest) const {
  for (std::size_t rung = rungs_.size() - 1; rung-- > lowest;)
    for (const auto& entry : ranked(rung))
      if (!entry.over) return Candidate{entry.trial, rung};
  return std::nullopt;
}

std::vector<std::pair<double, std::size_t>> Asha::ranking(std::size_t rung) const {
  std::vector<std::pair<double, std::size_t>> result;
  for (const auto& entry : ranked(rung)) result.emplace_back(entry.loss, entry.trial);
  return result;
}

}  // namespace troupe::sweep
