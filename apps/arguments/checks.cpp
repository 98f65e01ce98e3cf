#include "apps/arguments/checks.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/layout.hpp"
#include "core/text/nearest.hpp"

namespace troupe::apps {
namespace {

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number value{};
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

enum class Kind : bool { any, whole };

CLI::Validator bounded(Kind kind, double low, double high) {
  const auto rule = std::isfinite(high) ? fmt::format("between {} and {}", core::readable(low), core::readable(high))
                                        : fmt::format("≥ {}", core::readable(low));
  const auto test = [=](const std::string& text) -> std::string {
    const auto value = number_of<double>(text);
    const bool fits = value && std::isfinite(*value) && *value >= low && *value <= high;
    if (fits && (kind == Kind::any || number_of<std::int64_t>(text))) return {};
    const bool digits = std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (fits && digits)  // CLI11 would silently take the greatest number in its place
      return fmt::format("\"{}\" must be at most {}", text, std::numeric_limits<std::int64_t>::max());
    return fmt::format("\"{}\" must be {} {}", text, kind == Kind::whole ? "a whole number" : "a number", rule);
  };
  return {test, fmt::format("[{}]", rule)};
}

}  // namespace

CLI::Validator whole_between(double low, double high) { return bounded(Kind::whole, low, high); }

CLI::Validator whole_at_least(double low) { return bounded(Kind::whole, low, std::numeric_limits<double>::infinity()); }

CLI::Validator number_between(double low, double high) { return bounded(Kind::any, low, high); }

CLI::Validator word_of(std::vector<std::string> known) {
  auto rule = fmt::format("one of {}", fmt::join(known, " | "));
  const auto test = [known = std::move(known), rule](const std::string& text) -> std::string {
    if (std::ranges::find(known, text) != known.end()) return {};
    return fmt::format("\"{}\" must be {}{}", text, rule, core::nearest_hint(text, known, core::Quotes::no));
  };
  return {test, fmt::format("[{}]", rule)};
}

}  // namespace troupe::apps
