#include "experiment/sweep/search.hpp"

#include <algorithm>
#include <limits>

namespace troupe::sweep {

Search::Search(Space space, SearchOptions options)
    : space_(std::move(space)),
      options_(std::move(options)),
      points_(space_.count()),
      asha_(options_.rungs.size(), options_.eta) {}

bool Search::may_begin_more() const {
  if (options_.trials > 0 && trials_.size() >= options_.trials) return false;
  return !points_ || static_cast<double>(trials_.size()) < *points_;
}

std::optional<Step> Search::next() {
  const bool more = may_begin_more();
  // Without further trials each rung is final once nothing below it is under way.
  const bool final = !more && under_way_ == 0;
  if (const auto candidate = asha_.candidate(final)) {
    const Step step{candidate->trial, candidate->rung + 1};
    asha_.promoted(candidate->trial, candidate->rung);
    trials_[step.trial].under_way = step.rung;
    ++under_way_;
    return step;
  }
  if (!more) return std::nullopt;
  trials_.push_back({suggestion(), 0});
  ++under_way_;
  return Step{trials_.size() - 1, 0};
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
  --under_way_;
  asha_.reached(step.trial, step.rung, loss_of(result), result.last);
}

void Search::failed(const Step& step) {
  auto& trial = trials_[step.trial];
  trial.under_way.reset();
  trial.failed = true;
  --under_way_;
}

bool Search::finished() const { return under_way_ == 0 && !may_begin_more() && !asha_.candidate(true); }

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
