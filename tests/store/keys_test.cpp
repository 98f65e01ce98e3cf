#include "store/query/keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/query/list.hpp"
#include "store/schema.hpp"
#include "store/writer.hpp"

namespace troupe::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Three runs in memory: seeds 1 to 3, tau 2, 10 and none, accuracies 0.5, 0.75 and none.
class KeysTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Database::open(":memory:", false);
    ASSERT_TRUE(opened.has_value());
    database_ = std::make_unique<Database>(std::move(*opened));
    ASSERT_TRUE(make_schema(*database_, Make::anew).has_value());
    Writer writer(*database_);
    for (std::int64_t k = 1; k <= 3; ++k) {
      RunRow run;
      run.id = writer.put(DirectoryRow{fmt::format("r{}", k), "run", 1, {}});
      run.name = fmt::format("100%_{}", k);
      run.started = fmt::format("2026-01-0{} 00:00:00", k);
      run.status = "done";
      run.config = {
          {"run.seed", k}, {"train.lr", 0.25}, {"data.path", std::string("a b")}, {"strategy.lr", std::string("auto")}};
      if (k < 3) run.config.emplace_back("strategy.tau", k == 1 ? std::int64_t{2} : std::int64_t{10});
      if (k < 3)
        run.results = {{"test.accuracy", 0.25 + 0.25 * static_cast<double>(k)},
                       {"time.wait_s", 2.0},
                       {"stopped_by", std::string("patience")}};
      writer.put(run);
    }
    ASSERT_TRUE(database_->check().has_value());
  }

  std::vector<std::string> runs(const std::string& filter, const std::string& sort = "seed", bool ascending = true) {
    const auto conditions = parse_filter(filter);
    EXPECT_TRUE(conditions.has_value());
    const auto listing = list(*database_, {*conditions, {"run"}, sort, ascending});
    EXPECT_TRUE(listing.has_value()) << listing.error().message;
    std::vector<std::string> names;
    if (listing)
      for (const auto& row : listing->rows) names.push_back(text_of(row[0]));
    return names;
  }
  std::string error(const std::string& filter) {
    const auto listing = list(*database_, {*parse_filter(filter)});
    EXPECT_FALSE(listing.has_value()) << filter;
    if (listing) return {};
    EXPECT_EQ(listing.error().code, core::Errc::usage);
    return listing.error().message;
  }

  std::unique_ptr<Database> database_;
};

TEST_F(KeysTest, NumbersCompareAsNumbers) {
  EXPECT_THAT(runs("tau<10"), ElementsAre("r1")) << "2 < 10, though \"2\" > \"10\"";
  EXPECT_THAT(runs("tau=10.0"), ElementsAre("r2"));
  EXPECT_THAT(runs("tau!=2"), ElementsAre("r2")) << "a run without the key fulfils no condition on it";
  EXPECT_THAT(runs("accuracy>=0.5 wait_s>1"), ElementsAre("r1", "r2"));
  EXPECT_THAT(runs("accuracy>0.5"), ElementsAre("r2"));
  EXPECT_THAT(runs("strategy.lr>0"), IsEmpty()) << "a text is no great number";
  EXPECT_THAT(runs("strategy.lr=auto seed<=2"), ElementsAre("r1", "r2"));
}

TEST_F(KeysTest, TextsMayHaveAnyCharacters) {
  EXPECT_THAT(runs("path=\"a b\" seed=3"), ElementsAre("r3"));
  EXPECT_THAT(runs("name~%_2"), ElementsAre("r2")) << "no wildcards";
  EXPECT_THAT(runs("name~x%"), IsEmpty());
  EXPECT_THAT(runs("name=\"'; DROP TABLE runs; --\""), IsEmpty());
  EXPECT_THAT(runs("stopped_by=patience"), ElementsAre("r1", "r2"));
}

TEST_F(KeysTest, RunsWithoutTheSortingKeyComeLast) {
  EXPECT_THAT(runs("", "accuracy", false), ElementsAre("r2", "r1", "r3"));
  EXPECT_THAT(runs("", "accuracy", true), ElementsAre("r1", "r2", "r3"));
  EXPECT_THAT(runs("", "strategy.tau", false), ElementsAre("r2", "r1", "r3"));
}

TEST_F(KeysTest, ALimitKeepsTheCount) {
  const auto listing = list(*database_, {{}, {"run"}, "started", false, 2});
  ASSERT_TRUE(listing.has_value());
  EXPECT_EQ(listing->rows.size(), 2u);
  EXPECT_EQ(listing->total, 3);
}

TEST_F(KeysTest, WrongKeysAndValuesAreNamed) {
  EXPECT_THAT(error("seed=1 lr>0"),
              HasSubstr("filter, column 8: \"lr\" may be strategy.lr or train.lr: write it whole"));
  EXPECT_THAT(error("acuracy>0"), HasSubstr("no run has the key \"acuracy\" (nearest: accuracy)"));
  EXPECT_THAT(error("accuracy>high"), HasSubstr("accuracy is a number, and \"high\" is none"));
  EXPECT_THAT(error("accuracy<inf"), HasSubstr("accuracy is a number, and \"inf\" is none"));
  EXPECT_THAT(error("accuracy=nan"), HasSubstr("accuracy is a number, and \"nan\" is none"));
  EXPECT_THAT(error("accuracy~9"), HasSubstr("~ is for texts"));
  EXPECT_THAT(error("tag>x"), HasSubstr("a tag has = != and ~ only"));
}

}  // namespace
}  // namespace troupe::store
