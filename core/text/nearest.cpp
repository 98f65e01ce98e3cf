#include "core/text/nearest.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace troupe::core {
namespace {

// Between one edit and two: a slip of a finger is more likely than another name for the same thing.
constexpr double kPrefix = 1.25;
constexpr double kInitials = 1.25;
constexpr double kWholeWord = 1.5;

/// Edit distance that counts a swap of neighbours as one edit (optimal string alignment).
std::size_t edits(std::string_view a, std::string_view b) {
  std::array<std::vector<std::size_t>, 3> rows;  // two rows back, previous, current
  for (auto& row : rows) row.resize(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) rows[1][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& [before, previous, current] = rows;
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::rotate(rows.begin(), rows.begin() + 1, rows.end());
  }
  return rows[1][b.size()];
}

std::string_view without_dashes(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('-'), text.size()));
}

bool begins(std::string_view whole, std::string_view part) {
  constexpr std::size_t kLeast = 3;
  return part.size() >= kLeast && whole.starts_with(part);
}

bool has_word(std::string_view name, std::string_view word) {
  const auto words = words_of(name);
  return word.size() > 1 && words.size() > 1 && std::ranges::find(words, word) != words.end();
}

bool has_initials(std::string_view name, std::string_view initials) {
  std::string first;
  for (const auto word : words_of(name)) first += word.front();
  return first.size() > 1 && first == initials;
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view name) {
  constexpr std::string_view kBetween = "_-. ";
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < name.size();) {
    const auto end = std::min(name.find_first_of(kBetween, begin), name.size());
    if (end > begin) words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::optional<double> distance_if_near(std::string_view wrong, std::string_view known) {
  wrong = without_dashes(wrong);
  known = without_dashes(known);
  if (wrong.empty() || known.empty()) return std::nullopt;
  std::optional<double> best;
  const auto consider = [&](bool near, double distance) {
    if (near && (!best || distance < *best)) best = distance;
  };
  const auto longer = std::max(wrong.size(), known.size());
  const auto count = edits(wrong, known);
  consider(count < longer && count <= std::max<std::size_t>(1, longer / 3), static_cast<double>(count));
  consider(begins(wrong, known) || begins(known, wrong), kPrefix);
  consider(has_initials(wrong, known) || has_initials(known, wrong), kInitials);
  consider(has_word(wrong, known) || has_word(known, wrong), kWholeWord);
  return best;
}

std::string nearest_word(std::string_view wrong, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  double least = 0;
  for (const auto& word : known) {
    const auto distance = distance_if_near(wrong, word);
    if (!distance || (best != nullptr && *distance >= least)) continue;
    best = &word;
    least = *distance;
  }
  return best == nullptr ? std::string{} : *best;
}

std::string nearest_hint(std::string_view wrong, const std::vector<std::string>& known, Quotes quotes) {
  const auto near = nearest_word(wrong, known);
  if (near.empty()) return {};
  return quotes == Quotes::yes ? fmt::format(" (nearest: \"{}\")", near) : fmt::format(" (nearest: {})", near);
}

}  // namespace troupe::core
