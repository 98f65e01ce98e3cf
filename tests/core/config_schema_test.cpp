#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/core/config_example.hpp"

namespace troupe::core {
namespace {

TEST(Schema, TakesDefaultsFromTheStruct) {
  const Option* tau = example::schema().find("strategy.tau", "easgd");
  ASSERT_NE(tau, nullptr);
  EXPECT_EQ(tau->default_value, Value{std::int64_t{10}});
  EXPECT_EQ(tau->rule.text, "≥ 1");
  EXPECT_EQ(tau->help, "local steps between exchanges");
}

TEST(Schema, FindsTheRowOfTheScope) {
  const Schema& schema = example::schema();
  EXPECT_EQ(schema.find("strategy.tau", "eamsgd")->default_value, Value{std::int64_t{4}});
  EXPECT_EQ(schema.find("strategy.tau", "bsp"), nullptr);
  EXPECT_NE(schema.find("train.lr", "bsp"), nullptr);  // rows without a scope apply to all
  EXPECT_EQ(schema.find("train.rate", ""), nullptr);
}

TEST(Schema, AScopesRowHidesTheGeneralOne) {
  Schema schema;
  schema.add_option({"a.b", Value{std::int64_t{1}}, anything(), "", ""});
  schema.add_option({"a.b", Value{std::int64_t{2}}, anything(), "", "special"});
  EXPECT_EQ(schema.find("a.b", "special")->default_value, Value{std::int64_t{2}});
  EXPECT_EQ(schema.find("a.b", "other")->default_value, Value{std::int64_t{1}});
}

TEST(Schema, RefusesTwoRowsForOneKey) {
  Schema schema;
  schema.add(example::easgd_table(), "easgd");
  EXPECT_THROW(schema.add(example::easgd_table(), "easgd"), std::logic_error);
  EXPECT_NO_THROW(schema.add(example::easgd_table(), "other"));
}

TEST(Schema, NearestForgivesSlipsSwapsAndWrongSections) {
  const Schema& schema = example::schema();
  EXPECT_EQ(schema.nearest("strategy.tua"), "strategy.tau");
  EXPECT_EQ(schema.nearest("strategy.alhpa"), "strategy.alpha");
  EXPECT_EQ(schema.nearest("train.learning"), "train.lr");
  EXPECT_EQ(schema.nearest("train.tau"), "strategy.tau");
  EXPECT_EQ(schema.nearest("batch"), "train.batch");
  EXPECT_EQ(schema.nearest_section("stratgy"), "strategy");
  EXPECT_EQ(Schema{}.nearest("x"), "");
  EXPECT_EQ(Schema{}.nearest_section("x"), "");
}

TEST(Schema, HelpShowsEveryRowInOrder) {
  EXPECT_EQ(example::schema().help(),
            "[run]\n"
            "  name = \"run\"          non-empty                 name of the run's directory\n"
            "  seed = 1              ≥ 0                       of all randomness\n"
            "  verbose = false                                 say more\n"
            "\n"
            "[model]\n"
            "  name = (required)     non-empty                 which model to train\n"
            "  layers = (none)                                 the graph, layer by layer\n"
            "\n"
            "[train]\n"
            "  lr = 0.01             > 0                       learning rate\n"
            "  momenta = [0.5, 0.9]  between 0 and 1           one per worker\n"
            "  batch = [64]          ≥ 1 and non-empty         per worker\n"
            "  hosts = []                                      where to run\n"
            "\n"
            "[strategy]\n"
            "  name = \"bsp\"          one of bsp | easgd | eamsgd  how workers stay together\n"
            "  with strategy.name = \"easgd\":\n"
            "  alpha = 0.5           between 0 and 1           moving rate\n"
            "  tau = 10              ≥ 1                       local steps between exchanges\n"
            "  with strategy.name = \"eamsgd\":\n"
            "  tau = 4               ≥ 2                       local steps between exchanges\n");
}

}  // namespace
}  // namespace troupe::core
