#include "experiment/sweep/search.hpp"

#include <algorithm>
#include <limits>

namespace troupe::sweep {

Search::Search(Space space, SearchOptions options)
    : space_(std::move(space)),
      options_(std::move(options)),
      points_(space_.count()),
      asha_(options_.rungs.size(), options_.eta) {}

bool Search::has_points_left() const {
  if (options_.trials > 0 && trials_.size() >= options_.trials) return false;
  return !points_ || static_cast<double>(trials_.size()) < *points_;
}

double Search::epochs() const {
  std::int64_t reached = 0;
  double diverged = 0;
  for (const auto& trial : trials_) {
    const auto rungs = trial.under_way ? *trial.under_way + 1 : trial.scores.size();
    if (trial.diverged_after)
      diverged += std::max(*trial.diverged_after, least_after(trial.scores.size() - 1));
    else if (rungs > 0)
      reached += options_.rungs[rungs - 1];
  }
  return static_cast<double>(reached) + diverged;
}

double Search::least_after(std::size_t rung) const {
  const auto before = rung > 0 ? static_cast<double>(options_.rungs[rung - 1]) : 0;
  return before + options_.least * (static_cast<double>(options_.rungs[rung]) - before);
}

std::optional<Step> Search::decided() const {
  const auto whole = static_cast<double>(options_.rungs.back());
  const bool limited = options_.epochs > 0;
  const auto budget = static_cast<double>(options_.epochs);
  const auto left = limited ? budget - epochs() : whole;
  const bool fits = has_points_left() && left >= whole;
  // With one rung a trial that has begun is at its end: there are none to take there.
  const bool finishes = limited && options_.rungs.size() > 1 && left <= options_.finish * budget;
  const bool more = fits && !finishes;
  // From this rung on a trial can be trained to its end.
  const auto lowest = static_cast<std::size_t>(
      std::ranges::find_if(options_.rungs,
                           [&](std::int64_t rung) { return whole - static_cast<double>(rung) <= left; }) -
      options_.rungs.begin());
  // Without further trials each rung is final once nothing below it is under way.
  const bool final = !more && under_way_ == 0;
  auto candidate = asha_.candidate(final, lowest);
  // The budget ends the sweep: what more there is to learn of settings would be of no use.
  if (!candidate && !more && has_points_left()) candidate = asha_.best_left(lowest);
  if (candidate) return Step{candidate->trial, candidate->rung + 1};
  // All have gone to their ends, or have diverged: what is left of the budget is for others.
  if (!more && !(fits && under_way_ == 0)) return std::nullopt;
  return Step{trials_.size(), 0};
}

std::optional<Step> Search::next() {
  const auto step = decided();
  if (!step) return step;
  if (step->rung == 0)
    trials_.push_back({suggestion(), 0});
  else
    asha_.promoted(step->trial, step->rung - 1);
  trials_[step->trial].under_way = step->rung;
  ++under_way_;
  return step;
}

bool Search::begin(const Step& step, const Point& point) {
  if (step.rung >= options_.rungs.size()) return false;
  if (step.rung == 0) {
    if (step.trial != trials_.size() || !space_.contains(point)) return false;
    trials_.push_back({point, 0});
  } else {
    if (step.trial >= trials_.size()) return false;
    auto& trial = trials_[step.trial];
    if (trial.under_way || trial.failed || trial.scores.size() != step.rung || !trial.scores.back()) return false;
    asha_.promoted(step.trial, step.rung - 1);
    trial.under_way = step.rung;
  }
  ++under_way_;
  return true;
}

double Search::loss_of(const Result& result) const {
  if (!result.score) return std::numeric_limits<double>::infinity();
  return options_.higher_is_better ? -*result.score : *result.score;
}

void Search::ended(const Step& step, const Result& result) {
  auto& trial = trials_[step.trial];
  trial.under_way.reset();
  trial.scores.push_back(result.score);
  if (!result.score && result.diverged_after) {
    const auto before = step.rung > 0 ? options_.rungs[step.rung - 1] : 0;
    trial.diverged_after =
        std::clamp(*result.diverged_after, static_cast<double>(before), static_cast<double>(options_.rungs[step.rung]));
  }
  --under_way_;
  asha_.reached(step.trial, step.rung, loss_of(result), result.last);
}

void Search::failed(const Step& step) {
  auto& trial = trials_[step.trial];
  trial.under_way.reset();
  trial.failed = true;
  --under_way_;
}

bool Search::finished() const { return under_way_ == 0 && !decided(); }

std::vector<std::size_t> Search::ranking() const {
  std::vector<std::size_t> order;
  for (std::size_t rung = asha_.rungs(); rung-- > 0;)
    for (const auto& [loss, trial] : asha_.ranking(rung))
      if (trials_[trial].scores.size() == rung + 1) order.push_back(trial);
  return order;
}

Point Search::suggestion() const {
  std::vector<Point> ranked, pending;
  for (const auto trial : ranking()) ranked.push_back(trials_[trial].point);
  for (const auto& trial : trials_)
    if (trial.scores.empty()) pending.push_back(trial.point);  // failed ones, too: another try would fail as they did
  const History history{ranked, pending};
  return options_.method == Method::random ? suggest_random(space_, history, options_.seed, trials_.size())
                                           : suggest(space_, history, options_.tpe, options_.seed, trials_.size());
}

}  // namespace troupe::sweep
