#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/explore/run.hpp"

namespace troupe::explore {
namespace {

/// Enough for every schedule that is drawn, twice over; a run takes about a millisecond.
constexpr std::uint64_t kMostRuns = 2000;

/// What is violated, without the worker, step or number that it is violated with.
std::string rule_of(std::string violation) {
  std::erase_if(violation, [](unsigned char c) { return std::isdigit(c) || c == '.' || c == '-'; });
  return violation;
}

class Shrinking {
 public:
  Shrinking(Schedule schedule, const std::string& violation, const Maker& make)
      : best_{std::move(schedule), violation, {}, 0}, rule_(rule_of(violation)), make_(make) {}

  Shrunk finish() && {
    while (pass()) {
    }
    if (auto outcome = run_schedule(best_.schedule, make_, true); outcome && outcome->violation)
      best_.chronicle = std::move(outcome->chronicle), best_.violation = *outcome->violation;
    return std::move(best_);
  }

 private:
  /// Takes `candidate` when it shows the same.
  bool take(const Schedule& candidate) {
    if (best_.runs >= kMostRuns) return false;
    ++best_.runs;
    const auto outcome = run_schedule(candidate, make_);
    if (!outcome || !outcome->violation || rule_of(*outcome->violation) != rule_) return false;
    best_.schedule = candidate;
    return true;
  }

  template <class Change>
  bool with(Change change) {
    auto candidate = best_.schedule;
    change(candidate);
    return take(candidate);
  }

  /// The least that shows it, trying the smallest first: few values, and the smaller the run the faster the try.
  template <class T>
  bool least(T Schedule::*size) {
    for (T value = 1; value < best_.schedule.*size; ++value)
      if (with([&](Schedule& s) { s.*size = value; })) return true;
    return false;
  }

  /// Without runs of irregularities, longest first; then one by one.
  bool without_some() {
    bool any = false;
    for (auto chunk = best_.schedule.irregularities.size(); chunk > 0; chunk /= 2) {
      for (std::size_t begin = 0; begin + chunk <= best_.schedule.irregularities.size();) {
        const bool gone = with([&](Schedule& s) {
          const auto first = s.irregularities.begin() + static_cast<std::ptrdiff_t>(begin);
          s.irregularities.erase(first, first + static_cast<std::ptrdiff_t>(chunk));
        });
        any = any || gone;
        if (!gone) begin += chunk;
      }
    }
    return any;
  }

  /// Options that are whole numbers: a smaller one often lets the company be smaller.
  bool smaller_numbers() {
    bool any = false;
    for (std::size_t i = 0; i < best_.schedule.options.size(); ++i) {
      const auto& option = best_.schedule.options[i];
      const auto key = option.substr(0, option.find('=') + 1);
      const auto value = option.substr(key.size());
      if (value.size() != 1 || !std::isdigit(static_cast<unsigned char>(value[0]))) continue;
      for (char less = '0'; less < value[0]; ++less) {
        if (!with([&](Schedule& s) { s.options[i] = key + less; })) continue;
        any = true;
        break;
      }
    }
    return any;
  }

  /// To the first shard, and earlier: with the shard that it names the company could not be smaller.
  bool plainer_pushes() {
    bool any = false;
    for (std::size_t i = 0; i < best_.schedule.irregularities.size(); ++i) {
      const auto* bad = std::get_if<BadPush>(&best_.schedule.irregularities[i]);
      if (!bad) continue;
      const BadPush now = *bad;
      for (const auto& plainer : {BadPush{0, 0}, BadPush{0, now.nth}, BadPush{now.shard, now.nth / 2}}) {
        if (plainer == now || !with([&](Schedule& s) { s.irregularities[i] = plainer; })) continue;
        any = true;
        break;
      }
    }
    return any;
  }

  bool pass() {
    const auto& now = best_.schedule;
    bool smaller = without_some();
    if (now.delays != Delays::constant) smaller |= with([](Schedule& s) { s.delays = Delays::constant; });
    smaller |= plainer_pushes();
    smaller |= smaller_numbers();
    smaller |= least(&Schedule::workers);
    smaller |= least(&Schedule::servers);
    smaller |= least(&Schedule::steps);
    if (now.peer_slots < kPeerSlots) smaller |= with([](Schedule& s) { s.peer_slots = kPeerSlots; });
    if (now.buckets > 0) smaller |= with([](Schedule& s) { s.buckets = 0; });
    if (now.carriage != Carriage::in_place) smaller |= with([](Schedule& s) { s.carriage = Carriage::in_place; });
    return smaller;
  }

  Shrunk best_;
  std::string rule_;
  const Maker& make_;
};

}  // namespace

Shrunk shrink(const Schedule& schedule, const std::string& violation, const Maker& make) {
  return Shrinking(schedule, violation, make).finish();
}

}  // namespace troupe::explore
