#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/config/config.hpp"
#include "core/text/layout.hpp"

namespace troupe::core {
namespace {

/// Applies a test to the number, or to every number of the list. Text never passes: a numeric rule on text is an error in a table.
template <class Test>
std::function<bool(const Value&)> every_number(Test test) {
  return [test](const Value& value) {
    return std::visit(
        [&]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>)
            return test(static_cast<double>(v));
          else if constexpr (std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<double>>)
            return std::all_of(v.begin(), v.end(), [&](auto element) { return test(static_cast<double>(element)); });
          else
            return false;
        },
        value);
  };
}

}  // namespace

Rule anything() { return {}; }

Rule at_least(double low) {
  return {fmt::format("≥ {}", readable(low)), every_number([low](double v) { return v >= low; })};
}

Rule above(double low) {
  return {fmt::format("> {}", readable(low)), every_number([low](double v) { return v > low; })};
}

Rule between(double low, double high) {
  return {fmt::format("between {} and {}", readable(low), readable(high)),
          every_number([=](double v) { return v >= low && v <= high; })};
}

Rule one_of(std::vector<std::string> names) {
  std::string text = fmt::format("one of {}", fmt::join(names, " | "));
  auto allows = [names](const Value& value) {
    const auto known = [&](const std::string& v) { return std::find(names.begin(), names.end(), v) != names.end(); };
    if (const auto* one = std::get_if<std::string>(&value)) return known(*one);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value))
      return std::all_of(list->begin(), list->end(), known);
    return false;
  };
  return {.text = std::move(text), .allows = std::move(allows), .names = std::move(names)};
}

Rule not_empty() {
  return {"non-empty", [](const Value& value) {
            return std::visit(
                []<class T>(const T& v) {
                  if constexpr (std::is_same_v<T, Structure>)
                    return !v.json.empty() && v.json != "[]" && v.json != "{}";
                  else if constexpr (requires { v.empty(); })
                    return !v.empty();
                  else
                    return true;
                },
                value);
          }};
}

Rule both(Rule first, Rule second) {
  std::string text = fmt::format("{} and {}", first.text, second.text);
  return {std::move(text), [first = std::move(first), second = std::move(second)](const Value& value) {
            return (!first.allows || first.allows(value)) && (!second.allows || second.allows(value));
          }};
}

Rule or_auto(Rule numbers) { return {fmt::format("auto or {}", numbers.text), std::move(numbers.allows), true}; }

}  // namespace troupe::core
