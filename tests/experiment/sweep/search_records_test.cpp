// Searches whose steps and results are recorded: an interruption changes no decision, and what the record says holds.
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/experiment/sweep/searches.hpp"

namespace troupe::sweep {
namespace {

struct Event {
  Step step;
  Point point;
  bool ends = false;
  Search::Result result{};
};

/// A sweep with `places` runs at once, whose results come in a random order; every event is recorded. `interrupt_at`: after so many events
/// another Search is made from the record alone. `check` sees the search after every event.
template <class Check>
std::vector<Event> recorded_sweep(const SearchOptions& options, std::size_t places, std::uint64_t seed,
                                  std::size_t interrupt_at, Check check) {
  const auto make = [&] { return Search(conditional_space(), options); };
  auto search = make();
  std::vector<Event> events;
  std::vector<Step> running;
  core::Random random(seed, core::Purpose::test, 0);
  const auto record = [&](Event event) {
    events.push_back(std::move(event));
    check(search, events);
    if (events.size() != interrupt_at) return;
    search = make();
    for (const auto& [step, point, ends, result] : events) {
      if (ends)
        search.ended(step, result);
      else
        EXPECT_TRUE(search.begin(step, point));
    }
  };
  for (;;) {
    while (running.size() < places) {
      const auto step = search.next();
      if (!step) break;
      running.push_back(*step);
      record({*step, search.trials()[step->trial].point});
    }
    if (running.empty()) break;
    const auto which = static_cast<std::ptrdiff_t>(random.below(running.size()));
    const auto step = running[static_cast<std::size_t>(which)];
    running.erase(running.begin() + which);
    const auto result = result_of(search, step);
    search.ended(step, result);
    record({step, {}, true, result});
  }
  EXPECT_TRUE(search.finished());
  return events;
}

std::vector<Event> recorded_sweep(std::uint64_t seed, std::size_t interrupt_at) {
  return recorded_sweep(asha_options(15), 3, seed, interrupt_at, [](const auto&, const auto&) {});
}

TEST(SearchRecords, AnInterruptionAtAnyEventChangesNoDecision) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto whole = recorded_sweep(seed, 0);
    ASSERT_GT(whole.size(), 40U);
    for (std::size_t at = 1; at < whole.size(); ++at) {
      const auto parts = recorded_sweep(seed, at);
      ASSERT_EQ(parts.size(), whole.size()) << at;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        EXPECT_EQ(parts[i].step, whole[i].step) << at << " " << i;
        EXPECT_EQ(parts[i].point, whole[i].point) << at << " " << i;
      }
    }
  }
}

/// What a step that is over has not trained of its epochs, because it diverged.
double untrained(const SearchOptions& options, const Step& step, const Search::Result& result) {
  if (result.score || !result.diverged_after) return 0;
  const auto before = step.rung > 0 ? static_cast<double>(options.rungs[step.rung - 1]) : 0;
  const auto end = static_cast<double>(options.rungs[step.rung]);
  return end - std::clamp(*result.diverged_after, before + 0.05 * (end - before), end);
}

/// Counted from the steps alone, as a reader of the log would: a step trains from its rung's epochs before to its own, or diverges. Where no trial diverges,
/// at least one is trained to its end, and what is left at last suffices for no other trial's end.
RC_GTEST_PROP(SearchRecords, NeitherExceedsABudgetOfEpochsNorEndsWithoutAWholeRun, ()) {
  SearchOptions options;
  options.method = *rc::gen::element(Method::random, Method::tpe);
  options.eta = *rc::gen::element(2.0, 3.0, 4.0);
  options.rungs = rungs_of(*rc::gen::inRange<std::int64_t>(1, 13), 1, options.eta);
  const auto whole = options.rungs.back();
  options.epochs = *rc::gen::inRange<std::int64_t>(whole, 8 * whole + 1);
  options.trials = *rc::gen::element<std::size_t>(0, 0, 5);
  const auto places = *rc::gen::inRange<std::size_t>(1, 5);
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto cut = *rc::gen::inRange<std::size_t>(0, 30);
  options.seed = seed;
  const auto check = [&](const Search& search, const std::vector<Event>& events) {
    double epochs = 0;
    for (const auto& [step, point, ends, result] : events) {
      const auto planned = options.rungs[step.rung] - (step.rung > 0 ? options.rungs[step.rung - 1] : 0);
      epochs += ends ? -untrained(options, step, result) : static_cast<double>(planned);
    }
    RC_ASSERT(epochs <= static_cast<double>(options.epochs));
    RC_ASSERT(std::abs(search.epochs() - epochs) < 1e-9);
    if (events.back().ends || events.back().step.rung > 0) return;
    // In the last quarter a trial begins only where none can go on.
    const bool early =
        4 * (static_cast<double>(options.epochs + options.rungs[0]) - epochs) > static_cast<double>(options.epochs);
    RC_ASSERT(early || std::ranges::none_of(search.trials(), [&](const Search::Trial& trial) {
                return !trial.under_way && trial.scores.back() && trial.scores.size() < options.rungs.size();
              }));
  };
  const auto events = recorded_sweep(options, places, seed, 0, check);

  std::vector<std::int64_t> trained;  // epochs by trial
  auto left = static_cast<double>(options.epochs);
  bool diverged = false, any_whole = false;
  for (const auto& [step, point, ends, result] : events) {
    if (!ends) continue;
    trained.resize(std::max(trained.size(), step.trial + 1));
    left -= static_cast<double>(options.rungs[step.rung] - trained[step.trial]) - untrained(options, step, result);
    trained[step.trial] = options.rungs[step.rung];
    if (!result.score) trained[step.trial] = whole;  // it goes no further
    diverged |= !result.score;
    any_whole |= result.score && step.rung + 1 == options.rungs.size();
  }
  RC_ASSERT(any_whole || diverged);
  if (options.trials == 0) {
    RC_ASSERT(left < static_cast<double>(whole));
    for (const auto epochs : trained) RC_ASSERT(epochs == whole || static_cast<double>(whole - epochs) > left);
  }

  const auto parts = recorded_sweep(options, places, seed, cut, check);
  RC_ASSERT(parts.size() == events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    RC_ASSERT(parts[i].step == events[i].step);
    RC_ASSERT(parts[i].point == events[i].point);
  }
}

}  // namespace
}  // namespace troupe::sweep
