#include "apps/command_line.hpp"

#include <gtest/gtest.h>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

const std::vector<std::vector<std::string>> kCommands{
    {}, {"train"}, {"check"}, {"eval"}, {"strategies"}, {"models"}, {"bench"}, {"bench", "step"}, {"doctor"}};

TEST(CommandLineTest, HelpHasExamplesFirstEverywhere) {
  for (auto command : kCommands) {
    command.emplace_back("--help");
    const auto outcome = troupe(command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_TRUE(outcome.out.starts_with("Examples:\n  troupe ")) << outcome.out;
    EXPECT_NE(outcome.out.find("Usage: troupe"), std::string::npos) << outcome.out;
  }
}

TEST(CommandLineTest, VersionIsOneLine) {
  const auto outcome = troupe({"--version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.out.starts_with("troupe 0.")) << outcome.out;
}

struct Wrong {
  std::vector<std::string> arguments;
  std::string message;
  friend std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.message; }
};
class UsageTest : public testing::TestWithParam<Wrong> {};

TEST_P(UsageTest, WrongUsageIsExit2WithOneLineAndAHint) {
  const auto outcome = troupe(GetParam().arguments);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(is_one_line(outcome)) << outcome.out << outcome.err;
  EXPECT_NE(outcome.err.find(GetParam().message), std::string::npos) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, UsageTest,
    testing::Values(
        Wrong{{}, "which subcommand? see `troupe --help`"},
        Wrong{{"trian", "a.toml"}, "unknown subcommand \"trian\" (nearest: train); see `troupe --help`"},
        Wrong{{"--verison"}, "unknown flag --verison (nearest: --version)"},
        Wrong{{"train", "a.toml", "--quite"}, "unknown flag --quite (nearest: --quiet); see `troupe train --help`"},
        Wrong{{"train", "--jason=1"}, "unknown flag --jason (nearest: --json)"},
        Wrong{{"train", "a.toml", "b.toml"}, "unexpected argument \"b.toml\""},
        Wrong{{"train"}, "either a CONFIG or --resume RUN_DIR"},
        Wrong{{"train", "a.toml", "--resume", "runs/x"}, "either a CONFIG or --resume RUN_DIR"},
        Wrong{{"train", "a.toml", "--set"}, "--set"}, Wrong{{"train", "a.toml", "--quiet", "--plain"}, "excludes"},
        Wrong{{"check"}, "CONFIG is required"}, Wrong{{"eval"}, "is required"},
        Wrong{{"bench"}, "which subcommand? see `troupe bench --help`"},
        Wrong{{"bench", "setp"}, "unknown subcommand \"setp\" (nearest: step)"},
        Wrong{{"bench", "step", "--batch", "none"}, "--batch"}, Wrong{{"bench", "step", "--batch", "0"}, "--batch"},
        Wrong{{"bench", "step", "--model", "lenett"}, "--model"},
        Wrong{{"strategies", "esgd"}, "no strategy is called \"esgd\" (nearest: easgd)"}));

TEST(CommandLineTest, ArgumentMayHaveTheNameOfACommand) {
  const auto outcome = troupe({"check", "models"});
  EXPECT_EQ(outcome.code, 78);
  EXPECT_NE(outcome.err.find("cannot read config models"), std::string::npos) << outcome.err;
}

TEST(CommandLineTest, AFullStandardOutputIsAnIoError) {
  const auto outcome = troupe({"models"}, "/dev/full");
  EXPECT_EQ(outcome.code, 74);
  EXPECT_NE(outcome.err.find("standard output"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace troupe::apps
