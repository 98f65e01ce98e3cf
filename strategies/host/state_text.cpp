#include "strategies/host/state_text.hpp"

#include <charconv>
#include <type_traits>

#include <fmt/format.h>

namespace troupe::strategies {
namespace {

// ---- writing

void write(std::string& to, bool value) { to += value ? '1' : '0'; }
void write(std::string& to, std::uint64_t value) { to += std::to_string(value); }
void write(std::string& to, double value) {
  char text[32];
  to.append(text, std::to_chars(text, text + sizeof text, value, std::chars_format::hex).ptr);
}
/// The length comes first, because the text may contain any character.
void write(std::string& to, const std::string& value) { to += std::to_string(value.size()) + ':' + value; }
void write(std::string& to, const std::vector<WorkerId>& value) {
  for (const auto worker : value) to += std::to_string(worker) + ',';
}
void write(std::string& to, const std::map<std::uint32_t, Step>& value) {
  for (const auto& [key, step] : value) to += fmt::format("{}:{},", key, step);
}

// ---- reading: each function takes its value from the front of `from` and returns whether it was there

template <class Number, class... Format>
bool take_number(std::string_view& from, Number& value, Format... format) {
  const auto end = from.data() + from.size();
  const auto [next, error] = std::from_chars(from.data(), end, value, format...);
  if (error != std::errc{}) return false;
  from.remove_prefix(static_cast<std::size_t>(next - from.data()));
  return true;
}

bool take_character(std::string_view& from, char wanted) {
  if (from.empty() || from.front() != wanted) return false;
  from.remove_prefix(1);
  return true;
}

bool take(std::string_view& from, bool& value) {
  value = !from.empty() && from.front() == '1';
  return take_character(from, '0') || take_character(from, '1');
}
bool take(std::string_view& from, std::uint64_t& value) { return take_number(from, value); }
bool take(std::string_view& from, double& value) { return take_number(from, value, std::chars_format::hex); }
bool take(std::string_view& from, std::string& value) {
  std::size_t length = 0;
  if (!take_number(from, length) || !take_character(from, ':') || length > from.size()) return false;
  value = from.substr(0, length);
  from.remove_prefix(length);
  return true;
}
bool take(std::string_view& from, std::vector<WorkerId>& value) {
  while (!from.empty() && from.front() != ';') {
    if (!take_number(from, value.emplace_back()) || !take_character(from, ',')) return false;
  }
  return true;
}
bool take(std::string_view& from, std::map<std::uint32_t, Step>& value) {
  while (!from.empty() && from.front() != ';') {
    std::uint32_t key = 0;
    if (!take_number(from, key) || !take_character(from, ':') || !take_number(from, value[key]) ||
        !take_character(from, ','))
      return false;
  }
  return true;
}

bool take_name(std::string_view& from, std::string_view name) {
  if (!from.starts_with(name)) return false;
  from.remove_prefix(name.size());
  return take_character(from, '=');
}

}  // namespace

std::string write_state(std::initializer_list<StateField> fields) {
  std::string text;
  for (const auto& field : fields) {
    (text += field.name) += '=';
    std::visit([&](const auto& value) { write(text, value); }, field.value);
    text += ';';
  }
  return text;
}

core::Result<void> read_state(std::string_view text, std::initializer_list<StateTarget> fields) {
  const auto corrupt = [&](const std::string& wanted, std::string_view rest) {
    return core::fail(core::Errc::corrupt,
                      fmt::format("a rule's state \"{}\": {} is missing at character {}: written by another version or "
                                  "for another strategy, or damaged",
                                  text, wanted, text.size() - rest.size() + 1));
  };
  auto rest = text;
  std::vector<StateValue> values;  // all values are read before any is written
  for (const auto& field : fields) {
    const auto at = rest;
    const bool taken = take_name(rest, field.name) && std::visit(
                                                          [&](auto* to) {
                                                            std::remove_pointer_t<decltype(to)> value{};
                                                            const bool there = take(rest, value);
                                                            values.emplace_back(std::move(value));
                                                            return there;
                                                          },
                                                          field.to);
    if (!taken || !take_character(rest, ';')) return corrupt("\"" + std::string(field.name) + "=…;\"", at);
  }
  if (!rest.empty()) return corrupt("its end", rest);
  auto value = values.begin();
  for (const auto& field : fields) {
    std::visit([&](auto* to) { *to = std::get<std::remove_pointer_t<decltype(to)>>(std::move(*value)); }, field.to);
    ++value;
  }
  return {};
}

}  // namespace troupe::strategies
