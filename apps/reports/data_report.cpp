#include "apps/reports/data_report.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/plural.hpp"

namespace troupe::apps {
namespace {

constexpr std::size_t kMostListed = 40;  // that are listed
constexpr std::size_t kEnds = 5;         // classes with fewest, and with most samples, of more

std::string row_of(const DataFacts& facts, std::size_t label, std::size_t width) {
  auto line = fmt::format("  {:<{}}", facts.class_names[label], width);
  for (const auto& split : facts.splits) line += fmt::format(" {:>10}", split.by_class[label]);
  return line + "\n";
}

}  // namespace

std::string data_text(const DataFacts& facts) {
  auto text = fmt::format("{}: images of {} x {} x {}, {}\n", facts.name, facts.shape.channels, facts.shape.height,
                          facts.shape.width, core::counted(facts.class_names.size(), "class", "classes"));
  std::size_t width = 5;
  for (const auto& name : facts.class_names) width = std::max(width, name.size());
  text += fmt::format("  {:<{}}", "class", width);
  for (const auto& split : facts.splits) text += fmt::format(" {:>10}", split.name);
  text += "\n";
  const auto classes = facts.class_names.size();
  std::vector<std::size_t> order(classes);
  std::iota(order.begin(), order.end(), 0U);
  if (classes > kMostListed) {
    const auto& counts = facts.splits.front().by_class;
    std::ranges::stable_sort(order, {}, [&](std::size_t label) { return counts[label]; });
    for (std::size_t i = 0; i < kEnds; ++i) text += row_of(facts, order[i], width);
    text += fmt::format("  … {} more classes (--json has all)\n", classes - 2 * kEnds);
    order.erase(order.begin(), order.end() - static_cast<std::ptrdiff_t>(kEnds));
  }
  for (const auto label : order) text += row_of(facts, label, width);
  text += fmt::format("  {:<{}}", "all", width);
  for (const auto& split : facts.splits) text += fmt::format(" {:>10}", split.samples);
  text += "\n";
  for (const auto& split : facts.splits) {
    if (!facts.decoded) break;
    text += fmt::format("{}: {} unreadable{}\n", split.name, core::counted(split.unreadable, "sample"),
                        split.errors.empty() ? "" : ":");
    for (const auto& error : split.errors) text += fmt::format("  {}\n", error);
  }
  return text;
}

nlohmann::ordered_json data_json(const DataFacts& facts) {
  nlohmann::ordered_json json{{"name", facts.name},
                              {"shape", {facts.shape.channels, facts.shape.height, facts.shape.width}},
                              {"classes", facts.class_names}};
  for (const auto& split : facts.splits) {
    auto& one = json["splits"][split.name];
    one = {{"samples", split.samples}, {"by_class", split.by_class}};
    if (facts.decoded) one["unreadable"] = split.unreadable, one["errors"] = split.errors;
  }
  return json;
}

}  // namespace troupe::apps
