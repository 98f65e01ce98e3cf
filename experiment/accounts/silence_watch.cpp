#include "experiment/accounts/silence_watch.hpp"

#include <algorithm>

namespace troupe::experiment {

void SilenceWatch::granted(std::uint32_t worker, std::size_t leases, double now_s) {
  auto& one = workers_.at(worker);
  if (one.leases == 0) {  // until now it had nothing to report
    if (one.last) one.last = now_s;
    one.unheard_s = 0;
  }
  one.leases += leases;
}

std::optional<double> SilenceWatch::heard(std::uint32_t worker, std::size_t finished, double now_s) {
  auto& one = workers_.at(worker);
  const double pause = one.last ? now_s - *one.last : 0;
  const bool was_silent = one.silent;
  one = {.last = now_s,
         .longest_s = std::max(one.longest_s, pause),
         .reports = one.reports + 1,
         .leases = one.leases - std::min(one.leases, finished),
         .longest_unheard_s = std::max(one.longest_unheard_s, one.unheard_s)};
  if (!was_silent) return {};
  return pause;
}

std::vector<SilenceWatch::Silent> SilenceWatch::look(double now_s) {
  std::vector<Silent> found;
  const auto speaks = [&](const Worker& one) { return one.last && now_s - *one.last <= kOthers_s; };
  if (std::ranges::none_of(workers_, speaks)) return found;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    auto& one = workers_[w];
    // The first pause says nothing: the first step is slow.
    if (!one.last || one.silent || one.leases == 0 || one.reports < 3) continue;
    const double pause = now_s - *one.last;
    if (pause < std::max(kLeast_s, kPauses * one.longest_s)) continue;
    one.silent = true;
    found.push_back({static_cast<std::uint32_t>(w), pause});
  }
  return found;
}

std::vector<SilenceWatch::Silent> SilenceWatch::overdue(double now_s, double limit_s) {
  const double passed = overdue_asked_s_ ? std::clamp(now_s - *overdue_asked_s_, 0.0, kMostBetween_s) : 0;
  overdue_asked_s_ = now_s;
  std::vector<Silent> found;
  for (std::size_t w = 0; w < workers_.size(); ++w) {
    auto& one = workers_[w];
    if (one.leases == 0) continue;
    one.unheard_s += passed;
    if (one.unheard_s <= std::max(limit_s, kPauses * one.longest_unheard_s)) continue;
    found.push_back({static_cast<std::uint32_t>(w), one.unheard_s});
    one.unheard_s = 0;
  }
  return found;
}

}  // namespace troupe::experiment
