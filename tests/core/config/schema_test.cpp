#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/core/config/example.hpp"

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

TEST(Schema, NearestSuggestsNothingThatIsFar) {
  const Schema& schema = example::schema();
  EXPECT_EQ(schema.nearest("train.learning_rate"), "train.lr");  // initials, and the words of its help
  EXPECT_EQ(schema.nearest("train.batch_size"), "train.batch");
  EXPECT_EQ(schema.nearest("trian.lr"), "train.lr");
  EXPECT_EQ(schema.nearest("train.frobnicate"), "");
  EXPECT_EQ(schema.nearest(""), "");
  EXPECT_EQ(schema.nearest_section("optimizer"), "");
}

TEST(Schema, UnknownKeysAreAnsweredWithWhatThereIs) {
  const Schema& schema = example::schema();
  EXPECT_EQ(schema.unknown("train.frobnicate"),
            "unknown key \"train.frobnicate\": [train] has lr, momenta, batch, hosts");
  EXPECT_EQ(schema.unknown("frobnicate"),
            "unknown key \"frobnicate\": a key is SECTION.KEY, in [run], [model], [train], [strategy]");
}

TEST(Schema, HelpShowsEveryRowInOrder) {
  EXPECT_EQ(example::schema().help(80),
            "[run]\n"
            "  name = \"run\"          name of the run's directory [non-empty]\n"
            "  seed = 1              of all randomness [≥ 0]\n"
            "  verbose = false       say more\n"
            "\n"
            "[model]\n"
            "  name = (required)     which model to train [non-empty]\n"
            "  layers = (none)       the graph, layer by layer\n"
            "\n"
            "[train]\n"
            "  lr = 0.01             learning rate [> 0]\n"
            "  momenta = [0.5, 0.9]  one per worker [between 0 and 1]\n"
            "  batch = [64]          per worker [≥ 1 and non-empty]\n"
            "  hosts = []            where to run\n"
            "\n"
            "[strategy]\n"
            "  name = \"bsp\"          how workers stay together [one of bsp | easgd | eamsgd]\n"
            "  with strategy.name = \"easgd\":\n"
            "  alpha = 0.5           moving rate [between 0 and 1]\n"
            "  tau = 10              local steps between exchanges [≥ 1]\n"
            "  with strategy.name = \"eamsgd\":\n"
            "  tau = 4               local steps between exchanges [≥ 2]\n");
}

TEST(Schema, HelpIsAboutASectionOrAKeyWithinTheWidth) {
  const Schema& schema = example::schema();
  EXPECT_EQ(schema.help(80, "model"),
            "[model]\n"
            "  name = (required)  which model to train [non-empty]\n"
            "  layers = (none)    the graph, layer by layer\n");
  EXPECT_EQ(schema.help(30, "strategy.tau"),
            "[strategy]\n"
            "  with strategy.name = \"easgd\":\n"
            "  tau = 10  local steps\n"
            "            between exchanges\n"
            "            [≥ 1]\n"
            "  with strategy.name = \"eamsgd\":\n"
            "  tau = 4   local steps\n"
            "            between exchanges\n"
            "            [≥ 2]\n");
  EXPECT_EQ(schema.help(80, "mod"), "");
}

}  // namespace
}  // namespace troupe::core
