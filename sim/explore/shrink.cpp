#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/explore/run.hpp"

namespace troupe::explore {
namespace {

/// Enough for every drawn schedule, twice over; a run takes about a millisecond.
constexpr std::uint64_t kMostRuns = 2000;

/// The violated rule, without workers, steps and numbers.
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
    if (auto result = run_schedule(best_.schedule, make_, true); result && result->violation)
      best_.event_log = std::move(result->event_log), best_.violation = *result->violation;
    return std::move(best_);
  }

 private:
  /// Accepts `candidate` if it shows the same violation.
  bool take(const Schedule& candidate) {
    if (best_.runs >= kMostRuns) return false;
    ++best_.runs;
    const auto result = run_schedule(candidate, make_);
    if (!result || !result->violation || rule_of(*result->violation) != rule_) return false;
    best_.schedule = candidate;
    return true;
  }

  template <class Change>
  bool with(Change change) {
    auto candidate = best_.schedule;
    change(candidate);
    return take(candidate);
  }

  /// The least value that shows it. Tries the smallest first: values are few, and small runs are fast.
  template <class T>
  bool least(T Schedule::*size) {
    for (T value = 1; value < best_.schedule.*size; ++value)
      if (with([&](Schedule& s) { s.*size = value; })) return true;
    return false;
  }
  bool fewer_epochs() {
    const auto change = [](std::uint32_t epochs) {
      return [epochs](Schedule& s) { s.epochs = epochs, s.steps -= s.steps % epochs; };
    };
    for (std::uint32_t epochs = 1; epochs < best_.schedule.epochs; ++epochs)
      if (with(change(epochs))) return true;
    return false;
  }
  bool fewer_steps() {
    for (Step steps = best_.schedule.epochs; steps < best_.schedule.steps; steps += best_.schedule.epochs)
      if (with([steps](Schedule& s) { s.steps = steps; })) return true;
    return false;
  }

  /// Removes sequences of faults, longest first; then single ones.
  bool without_some() {
    bool any = false;
    for (auto chunk = best_.schedule.faults.size(); chunk > 0; chunk /= 2) {
      for (std::size_t begin = 0; begin + chunk <= best_.schedule.faults.size();) {
        const bool gone = with([&](Schedule& s) {
          const auto first = s.faults.begin() + static_cast<std::ptrdiff_t>(begin);
          s.faults.erase(first, first + static_cast<std::ptrdiff_t>(chunk));
        });
        any = any || gone;
        if (!gone) begin += chunk;
      }
    }
    return any;
  }

  /// Lowers integer options: this often allows fewer members.
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

  /// Moves bad pushes to the first shard, and earlier: the shard that a fault names cannot be removed.
  bool plainer_pushes() {
    bool any = false;
    for (std::size_t i = 0; i < best_.schedule.faults.size(); ++i) {
      const auto* bad = std::get_if<BadPush>(&best_.schedule.faults[i]);
      if (!bad) continue;
      const BadPush now = *bad;
      for (const auto& plainer : {BadPush{0, 0}, BadPush{0, now.nth}, BadPush{now.shard, now.nth / 2}}) {
        if (plainer == now || !with([&](Schedule& s) { s.faults[i] = plainer; })) continue;
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
    smaller |= fewer_epochs();
    smaller |= fewer_steps();
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
