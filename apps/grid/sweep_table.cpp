#include "apps/grid/sweep_table.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/nearest.hpp"

namespace troupe::grid {
namespace {

constexpr double kMostRuns = 100'000;
constexpr double kMostEpochs = 1e9;
constexpr double kMostHours = 1e6;
constexpr double kMostEta = 100;

tl::unexpected<core::Error> refuse_at(const std::string& where, std::string_view message) {
  return core::fail(core::Errc::config, fmt::format("{}: {}", where, message));
}

/// Reads the keys of one table; the first error counts.
class TableReader {
 public:
  TableReader(const toml::table& table, const std::string& path) : table_(table), path_(path) {}

  void text(const char* key, std::string& value, const std::vector<std::string>& names) {
    const auto* node = find(key);
    if (node == nullptr) return;
    const auto* string = node->as_string();
    if (string == nullptr || (!names.empty() && std::ranges::find(names, string->get()) == names.end()))
      return refuse(*node, names.empty() ? fmt::format("{} must be a text", key)
                                         : fmt::format("{} must be one of \"{}\"", key, fmt::join(names, "\", \"")));
    value = string->get();
  }
  void whole(const char* key, std::int64_t& value, double low, double high) {
    const auto* node = find(key);
    if (node == nullptr) return;
    const auto* integer = node->as_integer();
    if (integer == nullptr || static_cast<double>(integer->get()) < low || static_cast<double>(integer->get()) > high)
      return refuse(*node, fmt::format("{} must be a whole number from {:.0f} to {:.0f}", key, low, high));
    value = integer->get();
  }
  void number(const char* key, double& value, double above, double high) {
    const auto* node = find(key);
    if (node == nullptr) return;
    const auto given = node->value<double>();
    if (!given || !(*given > above && *given <= high))
      return refuse(*node, fmt::format("{} must be a number above {:g}, at most {:g}", key, above, high));
    value = *given;
  }
  void ascending(const char* key, std::vector<std::int64_t>& values) {
    const auto* node = find(key);
    if (node == nullptr) return;
    std::vector<std::int64_t> read;
    const auto* list = node->as_array();
    if (list != nullptr)
      for (const auto& element : *list)
        if (const auto* integer = element.as_integer();
            integer != nullptr && integer->get() > (read.empty() ? 0 : read.back()))
          read.push_back(integer->get());
    if (list == nullptr || list->empty() || read.size() != list->size())
      return refuse(*node, fmt::format("{} must be a list of epochs, each more than the one before: [1, 3]", key));
    values = std::move(read);
  }
  [[nodiscard]] bool has(const char* key) const { return table_.contains(key); }
  void refuse(const toml::node& node, const std::string& message) {
    if (!error_)
      error_ =
          core::Error{core::Errc::config, fmt::format("{}:{}: [sweep] {}", path_, node.source().begin.line, message)};
  }
  void refuse_key(const char* key, const std::string& message) {
    if (const auto* node = table_.get(key)) refuse(*node, message);
  }
  /// The first error, or that of a key that was not asked for.
  core::Result<void> done() {
    for (const auto& [name, node] : table_)
      if (std::ranges::find(known_, name.str()) == known_.end())
        refuse(node, fmt::format("has no key \"{}\"{}", name.str(),
                                 core::nearest_hint(std::string(name.str()), known_, core::Quotes::yes)));
    if (error_) return tl::unexpected(std::move(*error_));
    return {};
  }

 private:
  const toml::node* find(const char* key) {
    known_.emplace_back(key);
    return table_.get(key);
  }

  const toml::table& table_;
  const std::string& path_;
  std::vector<std::string> known_;
  std::optional<core::Error> error_;
};

}  // namespace

core::Result<SweepTable> read_sweep_table(const toml::node& node, const std::string& path) {
  SweepTable sweep;
  sweep.where = fmt::format("{}:{}", path, node.source().begin.line);
  const auto* table = node.as_table();
  if (table == nullptr) return refuse_at(sweep.where, "write [sweep]: how settings are searched");
  TableReader reader(*table, path);
  reader.text("method", sweep.method, {"tpe", "random"});
  reader.text("schedule", sweep.schedule, {"asha", "none"});
  reader.text("metric", sweep.metric, {});
  reader.text("goal", sweep.goal, {"max", "min"});
  reader.whole("runs", sweep.runs, 1, kMostRuns);
  reader.whole("epochs", sweep.epochs, 1, kMostEpochs);
  reader.number("hours", sweep.hours, 0, kMostHours);
  reader.whole("seed", sweep.seed, 0, 9e15);
  reader.whole("start", sweep.start, 1, kMostRuns);
  reader.whole("least", sweep.least, 1, kMostEpochs);
  reader.number("eta", sweep.eta, 1, kMostEta);
  reader.ascending("rungs", sweep.rungs);
  if (sweep.schedule == "none")
    for (const char* key : {"rungs", "least", "eta"})
      reader.refuse_key(key, fmt::format("{} is for schedule = \"asha\"", key));
  if (reader.has("rungs")) reader.refuse_key("least", "has rungs, which take the place of least: take one of them out");
  if (sweep.method == "random") reader.refuse_key("start", "start is for method = \"tpe\"");
  if (auto read = reader.done(); !read) return tl::unexpected(std::move(read.error()));
  if (sweep.runs == 0 && sweep.epochs == 0 && sweep.hours == 0)
    return refuse_at(sweep.where,
                     "[sweep] must say when it ends: runs = 40, epochs = 200, hours = 1.5, or several of these");
  return sweep;
}

core::Result<Range> read_range(const toml::table& table, const std::string& key, const std::string& where) {
  Range range;
  const auto* linear = table.get("linear");
  const auto* log = table.get("log");
  const auto* bounds = linear != nullptr ? linear->as_array() : log != nullptr ? log->as_array() : nullptr;
  if (table.size() != 1 || bounds == nullptr || bounds->size() != 2)
    return refuse_at(where, fmt::format("{}: a range is {{ linear = [low, high] }} or {{ log = [low, high] }}", key));
  const auto low = (*bounds)[0].value<double>(), high = (*bounds)[1].value<double>();
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high) || !(*low < *high))
    return refuse_at(where, fmt::format("{}: a range has two numbers, the lower one first", key));
  if (log != nullptr && !(*low > 0))
    return refuse_at(where, fmt::format("{}: a range over logarithms begins above 0", key));
  return Range{*low, *high, log != nullptr};
}

}  // namespace troupe::grid
