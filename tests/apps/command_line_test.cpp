#include "apps/command_line.hpp"

#include <sstream>

#include <gtest/gtest.h>

#include "core/text/layout.hpp"
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

TEST(CommandLineTest, HelpCommandEqualsHelpFlag) {
  for (const auto& [asked, same] : std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>{
           {{"help"}, {"--help"}},
           {{"help", "train"}, {"train", "--help"}},
           {{"--help", "train"}, {"train", "--help"}},
           {{"help", "bench", "step"}, {"bench", "step", "-h"}},
           {{"help", "train", "data"}, {"train", "--help", "data"}},
           {{"train", "a.toml", "--help"}, {"train", "--help"}}}) {
    const auto outcome = troupe(asked);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_FALSE(outcome.out.empty());
    EXPECT_EQ(outcome.out, troupe(same).out);
  }
}

TEST(CommandLineTest, HelpOfASectionListsItsKeysOnly) {
  const auto overview = troupe({"train", "--help"}).out;
  EXPECT_NE(overview.find("\n  [data]      name, path, classes"), std::string::npos) << overview;
  EXPECT_EQ(overview.find("samples per worker and step"), std::string::npos);
  const auto data = troupe({"train", "--help", "data"}).out;
  EXPECT_TRUE(data.starts_with("[data]\n")) << data;
  EXPECT_NE(data.find("  batch = [64]"), std::string::npos) << data;
  EXPECT_EQ(data.find("[train]"), std::string::npos) << data;
  const auto key = troupe({"train", "--help", "train.lr"}).out;
  EXPECT_TRUE(key.starts_with("[train]\n  lr = ")) << key;
  EXPECT_EQ(key.find("weight_decay"), std::string::npos) << key;
  const auto all = troupe({"train", "--help", "all"}).out;
  for (const char* section : {"[run]", "[model]", "[data]", "[train]", "[strategy]", "[cluster]", "[exchange]"})
    EXPECT_NE(all.find("\n" + std::string(section) + "\n"), all.starts_with(section) ? 0 : std::string::npos)
        << section;
  EXPECT_TRUE(troupe({"simulate", "--help", "hosts"}).out.starts_with("[hosts.NAME]\n  count = 1"));
}

/// Where standard output is no terminal.
TEST(CommandLineTest, HelpFitsIn80Columns) {
  for (const auto& command : std::vector<std::vector<std::string>>{{},
                                                                   {"train"},
                                                                   {"train", "all"},
                                                                   {"simulate"},
                                                                   {"simulate", "all"},
                                                                   {"replay"},
                                                                   {"grid"},
                                                                   {"plot"},
                                                                   {"check"},
                                                                   {"eval"},
                                                                   {"strategies"},
                                                                   {"models"},
                                                                   {"bench"},
                                                                   {"bench", "step"},
                                                                   {"bench", "exchange"},
                                                                   {"node"},
                                                                   {"nodes"},
                                                                   {"certs"},
                                                                   {"certs", "init"},
                                                                   {"certs", "node"},
                                                                   {"doctor"}}) {
    auto arguments = command;
    arguments.insert(arguments.begin(), "help");
    std::istringstream lines(troupe(arguments).out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(core::text_width(line), 80U) << line;
  }
  for (const auto& list : {troupe({"models"}), troupe({"strategies"}), troupe({"strategies", "mixed"})}) {
    std::istringstream lines(list.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(core::text_width(line), 80U) << line;
  }
}

/// A comment must not become a part of the command when the line is too long for the screen.
TEST(CommandLineTest, CommentsOfLongExamplesHaveALineOfTheirOwn) {
  const auto help = troupe({"train", "--help"}).out;
  EXPECT_EQ(help.find("glyphs-easgd.toml needs"), std::string::npos) << help;
  std::istringstream lines(help.substr(0, help.find("Usage: ")));
  bool goes_on = false;
  for (std::string line; std::getline(lines, line); goes_on = line.ends_with(" \\"))
    EXPECT_TRUE(!goes_on || (line.starts_with("      ") && !line.starts_with("      #"))) << help;
}

/// The type of a value has a greatest number: a greater one is refused, not lowered.
TEST(CommandLineTest, NumbersAboveTheGreatestAreRefused) {
  for (const char* number : {"9223372036854775808", "18446744073709551615", "99999999999999999999"})
    for (const auto& command : std::vector<std::vector<std::string>>{{"simulate", "--seed", number},
                                                                     {"simulate", "--explore", "1", "--seed", number},
                                                                     {"train", "a.toml", "--min-nodes", number},
                                                                     {"launch", "--workers", number, "--", "true"},
                                                                     {"launch", "--epochs", number, "--", "true"},
                                                                     {"predict", "run", "a.png", "--top", number},
                                                                     {"watch", "--patience", number},
                                                                     {"runs", "list", "--limit", number}}) {
      const auto outcome = troupe(command);
      EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
      EXPECT_NE(outcome.err.find("\"" + std::string(number) + "\" must be "), std::string::npos) << outcome.err;
    }
  EXPECT_NE(troupe({"simulate", "--seed", "9223372036854775808"}).err.find("must be at most 9223372036854775807"),
            std::string::npos);
}

/// "$UNSET" of a shell is an empty value. The command must not run as if the flag were not there: `train --nodes ""` would train here.
TEST(CommandLineTest, EmptyValuesOfFlagsAreRefused) {
  for (const auto& command : std::vector<std::vector<std::string>>{{"replay", "run", "--until", ""},
                                                                   {"train", "a.toml", "--nodes", ""},
                                                                   {"train", "a.toml", "--init", ""},
                                                                   {"train", "a.toml", "--set", ""},
                                                                   {"simulate", "a.toml", "--from", ""},
                                                                   {"simulate", "--explore", "1", "--strategy", ""},
                                                                   {"launch", "--config", "", "--", "true"},
                                                                   {"serve", "--dir", ""}}) {
    const auto outcome = troupe(command);
    EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
    EXPECT_NE(outcome.err.find(": its value is empty; see `troupe " + command.front() + " --help`"), std::string::npos)
        << outcome.err;
  }
  EXPECT_EQ(troupe({"replay", "run", "--until="}).code, 2);
}

TEST(CommandLineTest, RanksAboveZeroSayNothingThatRankZeroSays) {
  const auto at_rank = [](const std::string& rank, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {"env", "OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_RANK=" + rank, TROUPE_BINARY});
    return run_program(arguments);
  };
  const std::string config = TROUPE_SOURCE_DIR "/configs/glyphs-easgd.toml";
  for (const auto& command : std::vector<std::vector<std::string>>{
           {"check", config}, {"models"}, {"train", "--help"}, {"help"}, {"--version"}, {"eval", "none"}, {"chekc"}}) {
    const auto first = at_rank("0", command), other = at_rank("2", command);
    EXPECT_FALSE(first.out.empty() && first.err.empty());
    EXPECT_EQ(other.out + other.err, "") << command.front();
  }
  EXPECT_NE(at_rank("2", {"doctor"}).out, "");  // about its own host
  const auto grid = at_rank("0", {"grid", "any.toml"});
  EXPECT_EQ(grid.code, 2);
  EXPECT_NE(grid.err.find("start it without mpirun"), std::string::npos) << grid.err;
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
        Wrong{{"nosuch", "--help"}, "unknown subcommand \"nosuch\"; see `troupe --help`"},
        Wrong{{"help", "nosuch"}, "unknown subcommand \"nosuch\"; see `troupe --help`"},
        Wrong{{"help", "trian"}, "unknown subcommand \"trian\" (nearest: train); see `troupe --help`"},
        Wrong{{"bench", "nosuch", "--help"}, "unknown subcommand \"nosuch\"; see `troupe bench --help`"},
        Wrong{{"train", "--help", "dta"}, "--help dta: no such section (nearest: data): one of run | model"},
        Wrong{{"train", "--help", "train.learning_rate"},
              "unknown key \"train.learning_rate\" (nearest: \"train.lr\")"},
        Wrong{{"eval", "--help", "data"}, "the help of `troupe eval` has no part \"data\""},
        Wrong{{"frobnicate"}, "unknown subcommand \"frobnicate\"; see `troupe --help`"},
        Wrong{{"grid", "a.toml", "--jobs", "0"}, "--jobs: \"0\" must be a whole number between 1 and 1024; see"},
        Wrong{{"grid", "a.toml", "--jobs", "many"}, "--jobs: \"many\" must be a whole number between 1 and 1024"},
        Wrong{{"train", "a.toml", "--min-nodes", "0"}, "--min-nodes: \"0\" must be a whole number ≥ 1; see"},
        Wrong{{"simulate", "a.toml", "--seed=-1"}, "--seed: \"-1\" must be a whole number ≥ 0; see"},
        Wrong{{"bench", "step", "--seconds", "0"}, "--seconds: \"0\" must be a number between 0.01 and 3600; see"},
        Wrong{{"bench", "step", "--batch", "1.5"}, "--batch: \"1.5\" must be a whole number between 1 and 1,000,000"},
        Wrong{{"bench", "step", "--model", "lenett"},
              "| lenet | mlp | resnet18 | resnet50 | vgg16 | vgg19 | wrn_28_4 (nearest: lenet)"},
        Wrong{{"--verison"}, "unknown flag --verison (nearest: --version)"},
        Wrong{{"train", "a.toml", "--quite"}, "unknown flag --quite (nearest: --quiet); see `troupe train --help`"},
        Wrong{{"train", "--jason=1"}, "unknown flag --jason (nearest: --json)"},
        Wrong{{"train", "a.toml", "b.toml"}, "unexpected argument \"b.toml\""},
        Wrong{{"train"}, "either a CONFIG or --resume RUN_DIR"},
        Wrong{{"train", "a.toml", "--resume", "runs/x"}, "either a CONFIG or --resume RUN_DIR"},
        Wrong{{"train", "/"}, "/ is a directory: give a configuration file (TOML)"},
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

/// As after a closed terminal, or where `| tee` has ended with it.
TEST(CommandLineTest, TheExitCodeHoldsWhereTheErrorCannotBeWritten) {
  const std::string program = TROUPE_BINARY;
  EXPECT_EQ(run_program({"bash", "-c", program + " nosuch 2> /dev/full"}).code, 2);
  const auto piped = "exec 3> >(exit); wait $!; " + program + " nosuch 2>&3";  // nobody reads
  EXPECT_EQ(run_program({"bash", "-c", piped}).code, 2);
}

}  // namespace
}  // namespace troupe::apps
