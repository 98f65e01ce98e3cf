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
      {"a kill while a resume begins turns the journal off for good",
       [](const History& history) { return has(history, Doing::cut); }},
  };
  return all;
}

const std::vector<Pardon>& pardons() {
  static const std::vector<Pardon> all{
      {"run.journal = \"all\" removes segments", "and the journal begins with segment"},
  };
  return all;
}

}  // namespace troupe::histories
