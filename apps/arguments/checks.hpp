/// Checks of flags' values. An error says the value and what it must be; the help shows the rule. Thread rule: the main thread.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace troupe::apps {

/// A whole number from `low` to `high`, both included.
[[nodiscard]] CLI::Validator whole_between(double low, double high);
/// From `low` to the greatest std::int64_t.
[[nodiscard]] CLI::Validator whole_at_least(double low);
/// Any number from `low` to `high`, both included.
[[nodiscard]] CLI::Validator number_between(double low, double high);
/// One of these words.
[[nodiscard]] CLI::Validator word_of(std::vector<std::string> known);

}  // namespace troupe::apps
