#include "store/query/run_set.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace troupe::store {
namespace {

constexpr std::int64_t kWordBits = 64;
constexpr std::int64_t kFew = 5000;  // runs whose values are looked up one by one: more are read with those of all runs

struct Keyed {
  Cell value;
  std::int64_t run = 0;
};

/// SQLite's order: numbers before texts, texts by their bytes. REQUIRES values.
int compared(const Cell& a, const Cell& b) {
  const auto* text = std::get_if<std::string>(&a);
  const auto* other = std::get_if<std::string>(&b);
  if (text != nullptr && other != nullptr) return text->compare(*other);
  if (text != nullptr || other != nullptr) return text != nullptr ? 1 : -1;
  const auto number = [](const Cell& cell) {  // has the bits of both kinds
    const auto* whole = std::get_if<std::int64_t>(&cell);
    return whole != nullptr ? static_cast<long double>(*whole) : static_cast<long double>(std::get<double>(cell));
  };
  return number(a) < number(b) ? -1 : number(a) > number(b) ? 1 : 0;
}

bool comes_before(const Keyed& a, const Keyed& b, bool ascending) {
  const bool a_has = a.value.index() != 0, b_has = b.value.index() != 0;
  if (a_has != b_has) return a_has;
  const int difference = a_has ? compared(a.value, b.value) : 0;
  if (difference != 0) return ascending ? difference < 0 : difference > 0;
  return ascending ? a.run < b.run : a.run > b.run;
}

/// Of all runs: an index of the table has them in order.
std::vector<std::int64_t> by_index(Database& database, const RunSet& set, const Order& order) {
  const auto* direction = order.ascending ? "ASC" : "DESC";
  Statement runs(database, fmt::format("SELECT r.id FROM runs r ORDER BY {} {} NULLS LAST, r.id {}",
                                       expression_of(order.key), direction, direction));
  std::vector<std::int64_t> ids;
  auto skipped = order.offset;
  while (static_cast<std::int64_t>(ids.size()) < order.limit && runs.next())
    if (set.contains(runs.integer(0)) && --skipped < 0) ids.push_back(runs.integer(0));
  return ids;
}

/// Those of `few` that the selection has, asked one by one.
RunSet those_of(Database& database, const RunSet& few, const Selection& selection) {
  RunSet kept;
  Statement asked(database, selection.statement + " AND r.id = ?");
  auto parameters = selection.parameters;
  parameters.emplace_back();
  for (const auto run : few.ids()) {
    parameters.back() = run;
    if (asked.with_list(parameters).next()) kept.insert(run);
  }
  return kept;
}

std::vector<Keyed> looked_up(Database& database, const RunSet& set, const KnownKey& key) {
  std::vector<Keyed> all;
  Statement value(database, fmt::format("SELECT {} FROM runs r WHERE r.id = ?", expression_of(key)));
  for (const auto run : set.ids()) all.push_back({value.with(run).next() ? value.cell(0) : Cell(), run});
  return all;
}

std::vector<Keyed> read_with_all(Database& database, const RunSet& set, const KnownKey& key) {
  std::vector<Keyed> all;
  RunSet found;
  for (Statement values(database, values_of(key)); values.next();) {
    const auto run = values.integer(0);
    if (!set.contains(run)) continue;
    found.insert(run);
    all.push_back({values.cell(1), run});
  }
  for (const auto run : set.ids())
    if (!found.contains(run)) all.push_back({{}, run});
  return all;
}

}  // namespace

void RunSet::insert(std::int64_t id) {
  const auto word = static_cast<std::size_t>(id / kWordBits);
  if (word >= words_.size()) words_.resize(std::max(word + 1, 2 * words_.size()));
  words_[word] |= std::uint64_t{1} << (id % kWordBits);
}

bool RunSet::contains(std::int64_t id) const noexcept {
  const auto word = static_cast<std::size_t>(id / kWordBits);
  return word < words_.size() && (words_[word] >> (id % kWordBits) & 1U) != 0;
}

void RunSet::intersect(const RunSet& other) {
  words_.resize(std::min(words_.size(), other.words_.size()));
  for (std::size_t word = 0; word < words_.size(); ++word) words_[word] &= other.words_[word];
}

std::int64_t RunSet::count() const noexcept {
  std::int64_t count = 0;
  for (const auto word : words_) count += std::popcount(word);
  return count;
}

std::vector<std::int64_t> RunSet::ids() const {
  std::vector<std::int64_t> ids;
  for (std::size_t word = 0; word < words_.size(); ++word)
    for (auto rest = words_[word]; rest != 0; rest &= rest - 1)
      ids.push_back(static_cast<std::int64_t>(word) * kWordBits + std::countr_zero(rest));
  return ids;
}

core::Result<RunSet> runs_that(Database& database, const std::vector<Condition>& conditions) {
  std::vector<Selection> selections;
  for (const auto& condition : conditions) {
    auto selection = selection_of(database, condition);
    if (!selection) return tl::unexpected(std::move(selection.error()));
    selections.push_back(std::move(*selection));
  }
  if (selections.empty()) selections.push_back({"SELECT id FROM runs", {}});
  // What has an index leaves fewer for what has none.
  std::ranges::stable_sort(selections, {}, &Selection::scans);
  std::optional<RunSet> all;
  for (const auto& selection : selections) {
    if (all && selection.scans && all->count() <= kFew) {
      all = those_of(database, *all, selection);
      continue;
    }
    RunSet one;
    Statement runs(database, selection.statement);
    for (runs.with_list(selection.parameters); runs.next();) one.insert(runs.integer(0));
    if (all) one.intersect(*all);
    all = std::move(one);
  }
  return std::move(*all);
}

std::vector<std::int64_t> ordered(Database& database, const RunSet& set, const Order& order) {
  const auto& key = order.key;
  const bool is_indexed = key.where == KnownKey::Where::column && (key.name == "started" || key.name == "accuracy");
  const auto count = set.count();
  if (is_indexed && order.limit > 0 && count > kFew) return by_index(database, set, order);
  auto all = count <= kFew ? looked_up(database, set, key) : read_with_all(database, set, key);
  const auto size = static_cast<std::int64_t>(all.size());
  const auto first = order.limit > 0 ? std::min(order.offset, size) : 0;
  const auto last = order.limit > 0 ? first + std::min(order.limit, size - first) : size;
  std::ranges::partial_sort(all, all.begin() + last,
                            [&](const Keyed& a, const Keyed& b) { return comes_before(a, b, order.ascending); });
  std::vector<std::int64_t> ids;
  for (auto place = first; place < last; ++place) ids.push_back(all[static_cast<std::size_t>(place)].run);
  return ids;
}

}  // namespace troupe::store
