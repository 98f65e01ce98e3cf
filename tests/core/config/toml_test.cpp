#include <bit>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/text/layout.hpp"
#include "tests/core/config/example.hpp"

namespace troupe::core {
namespace {

TEST(ToToml, WritesScalars) {
  EXPECT_EQ(to_toml(Value{true}), "true");
  EXPECT_EQ(to_toml(Value{std::int64_t{-7}}), "-7");
  EXPECT_EQ(to_toml(Value{0.1}), "0.1");
  EXPECT_EQ(to_toml(Value{1.0}), "1.0");
  EXPECT_EQ(to_toml(Value{1e300}), "1e+300");
  EXPECT_EQ(to_toml(Value{std::string("plain")}), "\"plain\"");
  EXPECT_EQ(to_toml(Value{std::string("a\"b\\c\n\t\r\b\f\x01\x7f ü")}),
            "\"a\\\"b\\\\c\\n\\t\\r\\b\\f\\u0001\\u007F ü\"");
}

TEST(ToToml, WritesListsAndStructures) {
  EXPECT_EQ(to_toml(Value{std::vector<std::int64_t>{}}), "[]");
  EXPECT_EQ(to_toml(Value{std::vector<double>{1, 2.5}}), "[1.0, 2.5]");
  EXPECT_EQ(to_toml(Value{std::vector<std::string>{"a", "b"}}), "[\"a\", \"b\"]");
  EXPECT_EQ(to_toml(Value{Structure{}}), "[]");
  EXPECT_EQ(to_toml(Value{Structure{R"({"a":1,"b c":[true,2.0]})"}}), "{a = 1, \"b c\" = [true, 2.0]}");
  EXPECT_EQ(to_toml(Value{Structure{R"([{"type":"conv","out":20},{"type":"relu"}])"}}),
            "[\n  {out = 20, type = \"conv\"},\n  {type = \"relu\"},\n]");
}

TEST(ToToml, WritesTheWholeConfigBySection) {
  const auto config = example::parse(example::kMinimal, {"strategy.name=easgd", "train.lr=1"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->to_toml(),
            "[run]\nname = \"run\"\nseed = 1\nverbose = false\n"
            "\n[model]\nname = \"lenet\"\n"
            "\n[train]\nlr = 1.0\nmomenta = [0.5, 0.9]\nbatch = [64]\nhosts = []\n"
            "\n[strategy]\nname = \"easgd\"\nalpha = 0.5\ntau = 10\n");
}

TEST(ToToml, ReadsBackEqual) {
  const auto config = example::parse(R"(
      [run]
      name = "quotes \" and \\ and ü and \u0007"
      verbose = true
      [train]
      lr = 0.1
      momenta = [1e-3, 0.30000000000000004]
      hosts = ["a", ""]
      [strategy]
      name = "eamsgd"
      [model]
      name = "x"
      [[model.layers]]
      type = "conv"
      kernel = [5, 5]
      scale = 1.0
      [[model.layers]]
      type = "pool"
      "odd key" = {deep = [{er = 1}, {er = 2}]}
      )");
  ASSERT_TRUE(config) << config.error().message;
  const auto again = example::parse(config->to_toml());
  ASSERT_TRUE(again) << again.error().message << "\n" << config->to_toml();
  EXPECT_EQ(*config, *again);
  EXPECT_EQ(config->to_toml(), again->to_toml());
}

TEST(ToToml, EveryDoubleReadsBackToItsBits) {
  EXPECT_TRUE(rc::check([](std::uint64_t bits) {
    const auto value = std::bit_cast<double>(bits);
    RC_PRE(std::isfinite(value));
    Schema schema;
    schema.add_option({"x", Value{0.0}, anything(), "", ""});
    const auto config = Config::parse(schema, "x = " + to_toml(Value{value}), "t", {});
    RC_ASSERT(config.has_value());
    RC_ASSERT(std::bit_cast<std::uint64_t>(std::get<double>(config->value("x"))) == bits);
  }));
}

TEST(ToToml, EveryTextReadsBack) {
  EXPECT_TRUE(rc::check([] {
    // All ASCII characters with the controls; bytes above must be UTF-8, and are refused otherwise.
    const auto text = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
    Schema schema;
    schema.add_option({"x", Value{std::string()}, anything(), "", ""});
    const auto config = Config::parse(schema, "x = " + to_toml(Value{text}), "t", {});
    RC_ASSERT(config.has_value());
    RC_ASSERT(std::get<std::string>(config->value("x")) == text);
  }));
}

TEST(ToToml, AnUntidyDefaultStructureReadsBackEqual) {
  Schema schema;
  schema.add_option({"a.b", Value{Structure{R"( [ {"z": 1, "a": 2.0} ] )"}}, anything(), "", ""});
  const auto config = Config::parse(schema, "", "t", {});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->value("a.b"), Value{Structure{R"([{"a":2.0,"z":1}])"}});
  EXPECT_EQ(*Config::parse(schema, config->to_toml(), "t", {}), *config);
}

TEST(ToToml, KeysWithoutSectionComeFirst) {
  Schema schema;
  schema.add_option({"a.b", Value{true}, anything(), "", ""});
  schema.add_option({"base", Value{std::string("x")}, anything(), "", ""});
  schema.add_option({"a.c", Value{false}, anything(), "", ""});
  const auto config = Config::parse(schema, "", "t", {});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->to_toml(), "base = \"x\"\n\n[a]\nb = true\nc = false\n");
}

/// An option that may be "auto": ten times the seed then.
const Schema& automatic() {
  struct Rate {
    double lr = kAutomatic;
  };
  static const Table<Rate> table{"train", {{"lr", &Rate::lr, or_auto(between(0, 1000)), "learning rate"}}};
  static const Schema schema = [] {
    Schema s;
    s.add(example::run_table());
    s.add(table);
    s.derive("train.lr", [](const Config& config) -> std::optional<Derived> {
      if (config.value("train.lr") != Value{kAutomatic}) return std::nullopt;
      return Derived{10.0 * static_cast<double>(std::get<std::int64_t>(config.value("run.seed"))), "ten times seed"};
    });
    return s;
  }();
  return schema;
}

// A derived value is written as what it came to, with its reason, and is not derived again when it is read back.
TEST(ToToml, DerivedValueIsWrittenWithItsReason) {
  for (const std::string text : {"", "[train]\nlr = \"auto\"\n"}) {
    const auto config = Config::parse(automatic(), text, "a.toml", {"run.seed=3"});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->value("train.lr"), Value{30.0});
    ASSERT_EQ(config->reasons().size(), 1U);
    const auto written = config->to_toml_with_reasons();
    EXPECT_NE(written.find("lr = 30.0  # ten times seed\n"), std::string::npos) << written;
    const auto again = Config::parse(automatic(), written, "b.toml", {"run.seed=4"});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->value("train.lr"), Value{30.0});
    EXPECT_TRUE(again->reasons().empty());
    EXPECT_NE(config->to_toml().find("lr = 30.0\n"), std::string::npos);
  }
}

TEST(ToToml, NumberInPlaceOfAutoStaysAsItIs) {
  const auto config = Config::parse(automatic(), "", "a.toml", {"train.lr=0.5"});
  EXPECT_EQ(config->value("train.lr"), Value{0.5});
  for (const char* wrong : {"train.lr=-1", "train.lr=none"}) {
    const auto refused = Config::parse(automatic(), "", "a.toml", {wrong});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("auto"), std::string::npos) << refused.error().message;
  }
  EXPECT_NE(automatic().help(kUsualColumns).find("lr = \"auto\""), std::string::npos)
      << automatic().help(kUsualColumns);
}

}  // namespace
}  // namespace troupe::core
