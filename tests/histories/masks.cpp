#include "tests/histories/masks.hpp"

#include <algorithm>

namespace troupe::histories {

namespace {

bool has(const History& history, Doing what) {
  return std::ranges::any_of(history.events, [what](const Event& event) { return event.what == what; });
}

}  // namespace

const std::vector<Mask>& masks() {
  static const std::vector<Mask> all{
      {"nothing locks a run's directory", [](const History& history) { return has(history, Doing::intrude); }},
      {"a run that was killed between its last checkpoint and summary.json cannot finish",
       [](const History& history) { return has(history, Doing::last); }},
      {"a kill while a resume begins turns the journal off for good",
       [](const History& history) { return has(history, Doing::cut); }},
      {"workers that a resume adds to bsp begin at another step than the others, and wait for them for ever",
       [](const History& history) {
         return history.strategy() == "bsp" && history.setting("strategy.backup").empty() &&
                std::ranges::any_of(history.events, [&](const Event& event) {
                  return event.workers > 0 && event.workers != history.workers;
                });
       }},
  };
  return all;
}

const std::vector<Pardon>& pardons() {
  static const std::vector<Pardon> all{
      {"resuming at an epoch's end reports that epoch again, with a training loss of 0", "it was reported before"},
      {"the same", "training loss 0"},
      {"run.journal = \"all\" removes segments", "and the journal begins with segment"},
  };
  return all;
}

}  // namespace troupe::histories
