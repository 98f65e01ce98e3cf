#include "experiment/plot/run_labels.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiment/plot/figure.hpp"
#include "experiment/plot/grid_record.hpp"

namespace troupe::plot {
namespace {

using Options = std::map<std::string, std::string>;  // key → value, as the run's config.toml writes it

/// The value of a line, without the reason that may stand behind it.
std::string_view without_reason(std::string_view value) {
  auto end = std::size_t{0};
  if (value.starts_with('"'))
    for (end = 1; end < value.size() && value[end] != '"'; ++end) end += value[end] == '\\' ? 1 : 0;
  return value.substr(0, value.find("  # ", end));
}

/// The program writes a line per option. Not through core::Config: a label needs no rule of an option.
Options options_of(const std::string& directory) {
  Options options;
  std::ifstream file(directory + "/config.toml");
  std::string section;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('[') && line.ends_with(']')) section = line.substr(1, line.size() - 2);
    const auto equals = line.find(" = ");
    if (equals == std::string::npos || line.starts_with('[')) continue;
    const auto key = section + "." + line.substr(0, equals);
    if (key != "run.name" && key != "run.dir") options[key] = without_reason(std::string_view(line).substr(equals + 3));
  }
  return options;
}

/// What tells the runs of one label apart, a text for each; empty: nothing does.
using Marks = std::vector<std::string>;

Marks strategies_of(const std::vector<RunRecord>& runs, const std::vector<std::size_t>& group) {
  Marks marks;
  for (const auto i : group) marks.push_back(runs[i].strategy);
  return std::ranges::count(marks, marks.front()) < std::ssize(marks) ? marks : Marks{};
}

Marks only_option_of(const std::vector<std::string>& directories, const std::vector<std::size_t>& group) {
  constexpr std::size_t kLongest = 40;  // columns of a value in a legend
  std::vector<Options> all;
  std::set<std::string> keys;
  for (const auto i : group)
    for (const auto& [key, value] : all.emplace_back(options_of(directories[i]))) keys.insert(key);
  const auto value_at = [](const Options& options, const std::string& key) {
    const auto found = options.find(key);
    return found == options.end() ? std::string("-") : short_value(found->second);
  };
  Marks only;
  for (const auto& key : keys) {
    Marks marks;
    for (const auto& options : all) marks.push_back(fmt::format("{}={}", short_key(key), value_at(options, key)));
    if (std::ranges::count(marks, marks.front()) == std::ssize(marks)) continue;
    const bool too_long = std::ranges::any_of(marks, [](const auto& mark) { return columns_of(mark) > kLongest; });
    if (!only.empty() || too_long) return {};
    only = std::move(marks);
  }
  return only;
}

std::string directory_name(const std::string& directory) {
  return (std::filesystem::path(directory) / ".").lexically_normal().parent_path().filename().string();
}

/// A label in parts.
struct Label {
  std::string name;
  std::vector<std::string> marks;
  [[nodiscard]] std::string text() const {
    return marks.empty() ? name : fmt::format("{} ({})", name, fmt::join(marks, ", "));
  }
};

/// The runs of each label that several have.
std::vector<std::vector<std::size_t>> equal_ones(const std::vector<Label>& labels) {
  std::map<std::string, std::vector<std::size_t>> by_text;
  for (std::size_t i = 0; i < labels.size(); ++i) by_text[labels[i].text()].push_back(i);
  std::vector<std::vector<std::size_t>> groups;
  for (auto& [text, group] : by_text)
    if (group.size() > 1) groups.push_back(std::move(group));
  return groups;
}

void mark(std::vector<Label>& labels, const std::vector<std::size_t>& group, const Marks& marks) {
  for (std::size_t k = 0; k < marks.size(); ++k) labels[group[k]].marks.push_back(marks[k]);
}

}  // namespace

std::string label_of(const std::string& directory) {
  std::filesystem::path path(directory);
  if (!path.has_filename()) path = path.parent_path();
  auto name = path.filename().string();
  constexpr std::string_view kTime = "dddddddd-dddddd-";
  if (name.size() <= kTime.size()) return name;
  for (std::size_t i = 0; i < kTime.size(); ++i)
    if (kTime[i] == 'd' ? std::isdigit(static_cast<unsigned char>(name[i])) == 0 : name[i] != kTime[i]) return name;
  return name.substr(kTime.size());
}

void tell_apart(std::vector<RunRecord>& runs, const std::vector<std::string>& directories) {
  std::vector<Label> labels;
  labels.reserve(runs.size());
  for (const auto& run : runs) labels.push_back({run.label, {}});
  for (const auto& group : equal_ones(labels)) mark(labels, group, strategies_of(runs, group));
  for (const auto& group : equal_ones(labels)) mark(labels, group, only_option_of(directories, group));
  for (const auto& group : equal_ones(labels))
    for (const auto i : group) labels[i].name = directory_name(directories[i]);
  FileNames taken;  // equal name and time, in different places
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].label = taken.take(labels[i].text());
}

std::string file_part(const std::string& label) {
  std::string part;
  for (const char c : label)
    if (c == ' ' || c == '/')
      part += part.ends_with('-') ? "" : "-";
    else if (c != '(' && c != ')' && c != ',')
      part += c;
  return part;
}

}  // namespace troupe::plot
