#include "store/query/filter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::store {
namespace {

using testing::HasSubstr;

TEST(FilterTest, ConditionsAreJoinedByBlanksOrAnd) {
  const auto conditions = parse_filter("strategy=easgd and accuracy >= 0.99  note~\"two words \\\" and a quote\"");
  ASSERT_TRUE(conditions.has_value()) << conditions.error().message;
  const std::vector<Condition> expected{{"strategy", Comparison::equal, "easgd", 1},
                                        {"accuracy", Comparison::greater_or_equal, "0.99", 20},
                                        {"note", Comparison::contains, "two words \" and a quote", 38}};
  EXPECT_EQ(*conditions, expected);
}

TEST(FilterTest, EveryOperatorHasItsMeaning) {
  const std::vector<std::pair<std::string, Comparison>> all{
      {"=", Comparison::equal},          {"!=", Comparison::unequal}, {"<", Comparison::less},
      {"<=", Comparison::less_or_equal}, {">", Comparison::greater},  {">=", Comparison::greater_or_equal},
      {"~", Comparison::contains}};
  for (const auto& [text, meaning] : all) {
    const auto parsed = parse_filter("a.b-c_1" + text + "x");
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(parsed->front(), (Condition{"a.b-c_1", meaning, "x", 1})) << text;
  }
}

TEST(FilterTest, AnEmptyFilterSelectsAll) {
  EXPECT_TRUE(parse_filter("")->empty());
  EXPECT_TRUE(parse_filter("  \t ")->empty());
}

TEST(FilterTest, AKeyMayBeCalledAnd) {
  const auto parsed = parse_filter("a=1 and=2");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(parsed->at(1).key, "and");
}

TEST(FilterTest, WhatIsWrongIsNamedWithItsColumn) {
  const auto error_of = [](std::string_view text) {
    const auto parsed = parse_filter(text);
    EXPECT_FALSE(parsed.has_value()) << text;
    if (parsed) return std::string();
    EXPECT_EQ(parsed.error().code, core::Errc::usage);
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
    return parsed.error().message;
  };
  EXPECT_THAT(error_of("accuracy"), HasSubstr("column 9: = != < <= > >= or ~ is expected after \"accuracy\""));
  EXPECT_THAT(error_of("a=1 =2"), HasSubstr("column 5: a key is expected"));
  EXPECT_THAT(error_of("a="), HasSubstr("column 3: a value is expected"));
  EXPECT_THAT(error_of("a=1 b=\"x"), HasSubstr("column 7: this quote has no end"));
  EXPECT_THAT(error_of("a=\"x\"y"), HasSubstr("column 6: a blank is expected"));
  EXPECT_THAT(error_of("a=1 and"), HasSubstr("column 8: = != <"));
  EXPECT_THAT(error_of("a=1 or b=2"), HasSubstr("column 8: = != <"));
  EXPECT_THAT(error_of("größe=1"), HasSubstr("column 3"));
}

}  // namespace
}  // namespace troupe::store
