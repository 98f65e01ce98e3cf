/// Lists of thousands of runs, held against the same question answered run by run in this file.
#include "store/query/list.hpp"

#include <algorithm>
#include <optional>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/schema.hpp"
#include "store/writer.hpp"

namespace troupe::store {
namespace {

/// What the test knows of a run.
struct Known {
  std::int64_t id = 0;
  std::string name, started, strategy;
  std::optional<double> accuracy{}, loss{};
  Cell option, result;  // of keys that some runs do not have
  bool tagged = false;
};

class ManyRunsTest : public testing::Test {
 protected:
  static constexpr int kRuns = 12'000;  // more than are looked up one by one

  ManyRunsTest() {
    EXPECT_TRUE(make_schema(database_, Make::anew));
    Writer writer(database_);
    Transaction all(database_);
    writer.begin();
    for (int k = 0; k < kRuns; ++k) {
      const auto path = fmt::format("20260102-{:06}-r", k);
      Known known{.id = writer.put(DirectoryRow{path, "run", 1, {}}),
                  .name = fmt::format("run {}", k),
                  .started = fmt::format("2026-01-{:02} 00:00:00", 1 + up_to(27)),
                  .strategy = up_to(2) == 0 ? "bsp" : "easgd",
                  .option = any_value(),
                  .result = any_value(),
                  .tagged = up_to(9) == 0};
      if (up_to(9) != 0) known.accuracy = up_to(100) / 100.0;
      if (up_to(9) != 0) known.loss = up_to(1000) / 1000.0;
      RunRow run;
      run.id = known.id;
      run.name = known.name;
      run.started = known.started;
      run.status = "done";
      run.config = {{"strategy.name", known.strategy}, {"train.shared", std::int64_t{up_to(3)}}};
      run.results = {{"strategy", known.strategy}};
      if (known.option.index() != 0) run.config.emplace_back("section.option", known.option);
      if (known.result.index() != 0) run.results.emplace_back("time.result", known.result);
      if (known.accuracy) run.results.emplace_back("test.accuracy", *known.accuracy);
      if (known.loss) run.results.emplace_back("test.loss", *known.loss);
      run.summary = "{}";
      writer.put(run);
      if (known.tagged) writer.put_notes(known.id, {{"paper"}, ""});
      known_.push_back(std::move(known));
    }
    EXPECT_TRUE(all.commit());
  }

  int up_to(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }
  /// Nothing, whole numbers, others, and texts: all kinds that a key may mix.
  Cell any_value() {
    switch (up_to(4)) {
      case 0: return {};
      case 1: return std::int64_t{up_to(40)};
      case 2: return up_to(80) / 2.0;
      case 3: return fmt::format("text {}", up_to(30));
      default: return std::int64_t{7};
    }
  }

  /// Whole numbers and others are compared as numbers, which come before texts.
  static int order_of(const Cell& a, const Cell& b) {
    const auto number = [](const Cell& cell) -> std::optional<double> {
      if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
      if (const auto* other = std::get_if<double>(&cell)) return *other;
      return std::nullopt;
    };
    const auto x = number(a), y = number(b);
    if (x && y) return *x < *y ? -1 : *x > *y ? 1 : 0;
    if (x || y) return x ? -1 : 1;
    return std::get<std::string>(a).compare(std::get<std::string>(b));
  }

  template <class Holds, class Value>
  void expect(const std::string& filter, const std::string& sort, Holds holds, Value value) {
    for (const bool ascending : {false, true})
      for (const auto& [limit, offset] : {std::pair{50, 0}, {50, 37}, {7, 100'000}, {0, 0}}) {
        auto wanted = known_;
        std::erase_if(wanted, [&](const Known& run) { return !holds(run); });
        std::ranges::stable_sort(wanted, [&](const Known& a, const Known& b) {
          const Cell x = value(a), y = value(b);
          if ((x.index() == 0) != (y.index() == 0)) return y.index() == 0;
          const int difference = x.index() == 0 ? 0 : order_of(x, y);
          if (difference != 0) return ascending ? difference < 0 : difference > 0;
          return ascending ? a.id < b.id : a.id > b.id;
        });
        const auto listing = list(
            database_, {parse_filter(filter).value(), {"run", "name"}, sort, ascending, limit, limit > 0 ? offset : 0});
        ASSERT_TRUE(listing.has_value()) << listing.error().message;
        std::vector<std::int64_t> ids;
        for (std::size_t i = limit > 0 ? static_cast<std::size_t>(offset) : 0; i < wanted.size(); ++i)
          if (limit == 0 || ids.size() < static_cast<std::size_t>(limit)) ids.push_back(wanted[i].id);
        const auto what = fmt::format("{} by {} {}, {} from {}", filter, sort, ascending, limit, offset);
        EXPECT_EQ(listing->total, static_cast<std::int64_t>(wanted.size())) << what;
        EXPECT_EQ(listing->runs, ids) << what;
        ASSERT_EQ(listing->rows.size(), ids.size());
        for (std::size_t i = 0; i < std::min<std::size_t>(ids.size(), 5); ++i) {
          const auto run = std::ranges::find(known_, ids[i], &Known::id);
          EXPECT_EQ(std::get<std::string>(listing->rows[i][1]), run->name) << what;
        }
      }
  }

  std::mt19937 random_{19};  // NOLINT: the same runs in every test run
  Database database_ = std::move(*Database::open(":memory:", false));
  std::vector<Known> known_;
};

Cell cell(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

TEST_F(ManyRunsTest, AreListedAsIfEachWasAskedAlone) {
  const auto accuracy = [](const Known& run) { return cell(run.accuracy); };
  const auto loss = [](const Known& run) { return cell(run.loss); };
  const auto started = [](const Known& run) { return Cell(run.started); };
  const auto option = [](const Known& run) { return run.option; };
  const auto result = [](const Known& run) { return run.result; };
  const auto name = [](const Known& run) { return Cell(run.name); };
  const auto is_number = [](const Cell& value) { return value.index() == 1 || value.index() == 2; };
  const auto all = [](const Known&) { return true; };
  expect("", "started", all, started);
  expect("", "loss", all, loss);
  expect("", "section.option", all, option);
  expect("", "time.result", all, result);
  expect("", "name", all, name);
  expect(
      "strategy=easgd accuracy>0.5", "accuracy",
      [](const Known& run) { return run.strategy == "easgd" && run.accuracy > 0.5; }, accuracy);
  const auto below = [&](const Known& run) { return is_number(run.option) && order_of(run.option, Cell(20.0)) < 0; };
  expect("option<20", "started", below, started);
  expect("option<20", "option", below, option);
  expect("option<20", "time.result", below, result);
  expect(
      "option<20 time.result>=3 strategy!=bsp", "loss",
      [&](const Known& run) {
        return below(run) && is_number(run.result) && order_of(run.result, Cell(3.0)) >= 0 && run.strategy != "bsp";
      },
      loss);
  expect(
      "option~\"text 1\" tag!=paper", "run",
      [&](const Known& run) {
        const auto* text = std::get_if<std::string>(&run.option);
        return text != nullptr && text->starts_with("text 1") && !run.tagged;
      },
      [](const Known& run) { return Cell(fmt::format("{:06}", run.id)); });  // paths are in the order of ids
  expect(
      "tag=paper name~99", "accuracy",
      [](const Known& run) { return run.tagged && run.name.find("99") != std::string::npos; }, accuracy);
  expect(
      "option!=7", "started",
      [&](const Known& run) {
        return run.option.index() != 0 && (!is_number(run.option) || order_of(run.option, Cell(7.0)) != 0);
      },
      started);
  expect(
      "accuracy>2", "started", [](const Known&) { return false; }, started);
}

}  // namespace
}  // namespace troupe::store
