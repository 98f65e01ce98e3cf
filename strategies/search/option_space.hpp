/// The options with which the schedule search (sim/explore) runs a strategy: a small tree of plain data. It has the values worth
/// distinguishing: those that change what the rules do. Plain values and pure functions.
///
///     return {.choices = {range("tau", 1, 3),
///                         values("overlap", {"off", "wait"}),
///                         {{.set = {{"beta", "0.9"}}},
///                          {.set = {{"alpha_worker", "0.9"}, {"alpha_server", "0.1"}}}}}};
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::strategies {

/// {"tau", "2"}: strategy.tau = 2.
struct OptionSetting {
  std::string key;
  std::string value;
};

/// What is set, then what is drawn, in this order. Each choice draws one of its alternatives, all with the same probability (write an
/// alternative twice to draw it twice as often); the alternative may set more and draw more. Only an empty list of choices draws
/// nothing: a choice has at least one alternative.
///
/// The schedule of a seed depends on the order of choices and alternatives: append.
struct OptionSpace {
  using Choice = std::vector<OptionSpace>;
  std::vector<OptionSetting> set{};
  std::vector<Choice> choices{};
};

/// One of these values of `key`.
[[nodiscard]] OptionSpace::Choice values(const std::string& key, const std::vector<std::string>& all);
/// A whole number from `low` to `high`, both included.
[[nodiscard]] OptionSpace::Choice range(const std::string& key, std::uint64_t low, std::uint64_t high);

}  // namespace troupe::strategies
