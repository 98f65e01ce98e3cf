#include "service/forecast/moments.hpp"

#include <algorithm>

namespace troupe::service {
namespace {

Moment between(const Moment& a, const Moment& b, double share) {
  return {a.t + share * (b.t - a.t), a.samples + share * (b.samples - a.samples),
          a.steps + share * (b.steps - a.steps)};
}

}  // namespace

void Moments::add(const Moment& moment) {
  if (latest_ && moment.t < latest_->t) return;
  latest_ = moment;
  if (!kept_.empty() && moment.t - kept_.back().t < gap_) return;
  kept_.push_back(moment);
  if (kept_.size() <= kMost) return;
  std::size_t count = 0;
  for (std::size_t i = 0; i < kept_.size(); i += 2) kept_[count++] = kept_[i];
  kept_.resize(count);
  gap_ = (kept_.back().t - kept_.front().t) / static_cast<double>(count - 1);
}

std::vector<Moment> Moments::all() const {
  auto moments = kept_;
  if (latest_ && !moments.empty() && moments.back().t < latest_->t) moments.push_back(*latest_);
  return moments;
}

std::optional<Moment> moment_at(const std::vector<Moment>& moments, double t) {
  if (moments.empty() || t > moments.back().t) return std::nullopt;
  const auto next = std::ranges::lower_bound(moments, t, {}, &Moment::t);
  const Moment before = next == moments.begin() ? Moment{} : *(next - 1);
  return next->t > before.t ? between(before, *next, (t - before.t) / (next->t - before.t)) : *next;
}

std::optional<double> time_of_samples(const std::vector<Moment>& moments, double samples) {
  Moment before;
  for (const auto& moment : moments) {
    if (moment.samples >= samples)
      return moment.samples > before.samples
                 ? between(before, moment, (samples - before.samples) / (moment.samples - before.samples)).t
                 : moment.t;
    before = moment;
  }
  return std::nullopt;
}

}  // namespace troupe::service
