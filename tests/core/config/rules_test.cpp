#include <gtest/gtest.h>

#include "core/config/config.hpp"

namespace troupe::core {
namespace {

using Integers = std::vector<std::int64_t>;
using Doubles = std::vector<double>;
using Texts = std::vector<std::string>;

bool allows(const Rule& rule, const Value& value) { return rule.allows(value); }

TEST(Rules, AnythingAcceptsEveryValue) {
  EXPECT_FALSE(anything().allows);
  EXPECT_EQ(anything().text, "");
}

TEST(Rules, AtLeastIncludesItsBound) {
  const Rule rule = at_least(1);
  EXPECT_EQ(rule.text, "≥ 1");
  EXPECT_TRUE(allows(rule, std::int64_t{1}));
  EXPECT_FALSE(allows(rule, std::int64_t{0}));
  EXPECT_TRUE(allows(rule, 1.0));
  EXPECT_FALSE(allows(rule, 0.999));
  EXPECT_TRUE(allows(rule, Integers{1, 5}));
  EXPECT_FALSE(allows(rule, Integers{1, 0}));
  EXPECT_TRUE(allows(rule, Doubles{}));
  EXPECT_FALSE(allows(rule, std::string("2")));
}

TEST(Rules, AboveExcludesItsBound) {
  const Rule rule = above(0.5);
  EXPECT_EQ(rule.text, "> 0.5");
  EXPECT_FALSE(allows(rule, 0.5));
  EXPECT_TRUE(allows(rule, 0.50001));
  EXPECT_FALSE(allows(rule, Doubles{1, 0.5}));
}

TEST(Rules, BetweenIncludesBothEnds) {
  const Rule rule = between(-1, 1);
  EXPECT_EQ(rule.text, "between -1 and 1");
  EXPECT_TRUE(allows(rule, -1.0));
  EXPECT_TRUE(allows(rule, std::int64_t{1}));
  EXPECT_FALSE(allows(rule, 1.1));
  EXPECT_FALSE(allows(rule, std::int64_t{-2}));
}

TEST(Rules, OneOfTakesTextAndLists) {
  const Rule rule = one_of({"tcp", "ucx"});
  EXPECT_EQ(rule.text, "one of tcp | ucx");
  EXPECT_TRUE(allows(rule, std::string("ucx")));
  EXPECT_FALSE(allows(rule, std::string("UCX")));
  EXPECT_FALSE(allows(rule, std::string()));
  EXPECT_TRUE(allows(rule, Texts{"tcp", "tcp"}));
  EXPECT_FALSE(allows(rule, Texts{"tcp", "mpi"}));
  EXPECT_FALSE(allows(rule, std::int64_t{1}));
}

TEST(Rules, NotEmptyTakesTextListsAndStructures) {
  const Rule rule = not_empty();
  EXPECT_EQ(rule.text, "non-empty");
  EXPECT_TRUE(allows(rule, std::string("x")));
  EXPECT_FALSE(allows(rule, std::string()));
  EXPECT_FALSE(allows(rule, Integers{}));
  EXPECT_TRUE(allows(rule, Texts{""}));
  EXPECT_FALSE(allows(rule, Structure{}));
  EXPECT_FALSE(allows(rule, Structure{"[]"}));
  EXPECT_TRUE(allows(rule, Structure{"[1]"}));
}

TEST(Rules, BothRequiresBothRules) {
  const Rule rule = both(at_least(1), not_empty());
  EXPECT_EQ(rule.text, "≥ 1 and non-empty");
  EXPECT_TRUE(allows(rule, Integers{1}));
  EXPECT_FALSE(allows(rule, Integers{0}));
  EXPECT_FALSE(allows(rule, Integers{}));
  EXPECT_TRUE(allows(both(anything(), at_least(1)), Integers{1}));
}

}  // namespace
}  // namespace troupe::core
