#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "tests/core/config/example.hpp"
#include "tests/forbidden.hpp"

namespace troupe::core {
namespace {

using example::error_of;
using example::kMinimal;
using example::parse;

/// kMinimal and `more`, which begins at line 3.
std::string with(std::string_view more) { return std::string(kMinimal) + std::string(more); }

TEST(Config, FillsStructsFromFileAndDefaults) {
  const auto config = parse(with("[train]\nlr = 0.5\n[run]\nverbose = true\n"));
  ASSERT_TRUE(config) << config.error().message;
  const auto train = config->get(example::train_table());
  EXPECT_EQ(train.lr, 0.5);
  EXPECT_EQ(train.momenta, (std::vector<double>{0.5, 0.9}));
  EXPECT_EQ(train.batch, (std::vector<std::int64_t>{64}));
  EXPECT_TRUE(config->get(example::run_table()).verbose);
  EXPECT_EQ(config->get(example::model_table()).name, "lenet");
}

TEST(Config, AKeyStandsOnceHoweverItIsWritten) {
  EXPECT_EQ(error_of("\"train.lr\" = 1\n[model]\nname = \"lenet\"\n[train]\nlr = 0.5\n"),
            "a.toml:1: train.lr is set twice: here and at a.toml:5");
  EXPECT_EQ(error_of("[train]\nlr = 0.5\n[model]\nname = \"lenet\"\n[\"train.lr\"]\n").substr(0, 9), "a.toml:5:");
  EXPECT_EQ(parse("\"train.lr\" = 1\n[model]\nname = \"lenet\"\n")->get(example::train_table()).lr, 1)
      << "once, it may be quoted";
  EXPECT_EQ(
      parse("train.lr = 1\n[model]\nname = \"lenet\"\n", {"train.lr=2", "train.lr=3"})->get(example::train_table()).lr,
      3)
      << "an override replaces the file's and those before it";
}

TEST(Config, TakesIntegersForDoublesAndScalarsForLists) {
  const auto config = parse(with("[train]\nlr = 2\nmomenta = 1\nbatch = 32\nhosts = \"a\"\n"));
  ASSERT_TRUE(config) << config.error().message;
  const auto train = config->get(example::train_table());
  EXPECT_EQ(train.lr, 2.0);
  EXPECT_EQ(train.momenta, std::vector<double>{1});
  EXPECT_EQ(train.batch, std::vector<std::int64_t>{32});
  EXPECT_EQ(train.hosts, std::vector<std::string>{"a"});
  EXPECT_EQ(parse(with("[train]\nmomenta = [0, 0.5]\n"))->get(example::train_table()).momenta,
            (std::vector<double>{0, 0.5}));
}

TEST(Config, KeepsStructuresAsCompactJson) {
  const auto tables = parse(with("[[model.layers]]\ntype = \"conv\"\nout = 20\n[[model.layers]]\ntype = \"relu\"\n"));
  ASSERT_TRUE(tables) << tables.error().message;
  EXPECT_EQ(tables->get(example::model_table()).layers.json, R"([{"out":20,"type":"conv"},{"type":"relu"}])");
  const auto inline_tables = parse(with("layers = [{type = \"fc\", scale = 1.0, deep = [true, [1]]}]\n"));
  EXPECT_EQ(inline_tables->get(example::model_table()).layers.json, R"([{"deep":[true,[1]],"scale":1.0,"type":"fc"}])");
  EXPECT_EQ(parse(kMinimal)->get(example::model_table()).layers.json, "");
}

// --- Errors of files ---

TEST(ConfigErrors, UnknownKeysNameLineAndNearest) {
  EXPECT_EQ(error_of(with("[strategy]\nname = \"easgd\"\ntua = 4\n")),
            "a.toml:5: unknown key \"strategy.tua\" (nearest: \"strategy.tau\")");
  EXPECT_EQ(error_of(with("[train]\ntau = 4\n")), "a.toml:4: unknown key \"train.tau\" (nearest: \"strategy.tau\")");
  EXPECT_EQ(error_of("seed = 4\n"), "a.toml:1: unknown key \"seed\" (nearest: \"run.seed\")");
  EXPECT_EQ(error_of(with("train.rl = 4\n")), "a.toml:3: unknown section [model.train] (nearest: [model])");
}

TEST(Config, KnowsTheLineOfEachTableOfAList) {
  const auto config = parse("[model]\nname = \"m\"\nlayers = [\n  {type = \"fc\"},\n  {type = \"relu\"}]\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->where("model.layers"), "a.toml:3");
  EXPECT_EQ(config->where("model.layers[0]"), "a.toml:4");
  EXPECT_EQ(config->where("model.layers[1]"), "a.toml:5");
  EXPECT_EQ(config->where("model.layers[7]"), "a.toml:3");  // no such table: the list
  const auto set = parse("[model]\nname = \"m\"\nlayers = [\n  {type = \"fc\"}]\n", {"model.layers=[{type=\"relu\"}]"});
  EXPECT_EQ(set->where("model.layers[0]"), "--set");
  const auto tables = parse(with("[[model.layers]]\ntype = \"conv\"\n[[model.layers]]\ntype = \"relu\"\n"));
  EXPECT_EQ(tables->where("model.layers[1]"), "a.toml:5");
}

TEST(ConfigErrors, WordsThatAreNoChoiceNameTheNearest) {
  EXPECT_EQ(error_of(with("[strategy]\nname = \"eagsd\"\n")),
            "a.toml:4: strategy.name = \"eagsd\": must be one of bsp | easgd | eamsgd (nearest: \"easgd\")");
  EXPECT_EQ(error_of(with("[strategy]\nname = \"frobnicate\"\n")),
            "a.toml:4: strategy.name = \"frobnicate\": must be one of bsp | easgd | eamsgd");
}

TEST(ConfigErrors, FarNamesGetNoSuggestion) {
  EXPECT_EQ(error_of(with("[train]\nfrobnicate = 4\n")),
            "a.toml:4: unknown key \"train.frobnicate\": [train] has lr, momenta, batch, hosts");
  EXPECT_EQ(error_of(with("[wobble]\n")),
            "a.toml:3: unknown section [wobble]: there are [run], [model], [train], [strategy]");
}

TEST(ConfigErrors, UnknownSectionsNameLineAndNearest) {
  EXPECT_EQ(error_of(with("\n[stratgy]\ntau = 1\n")), "a.toml:4: unknown section [stratgy] (nearest: [strategy])");
  EXPECT_EQ(error_of(with("[trian]\n")), "a.toml:3: unknown section [trian] (nearest: [train])");
  EXPECT_EQ(error_of(with("[strategy.inner]\ntau = 1\n")),
            "a.toml:3: unknown section [strategy.inner] (nearest: [strategy])");
  EXPECT_EQ(error_of("strategy = \"easgd\"\n"),
            "a.toml:1: \"strategy\" is a section: write [strategy] and its keys below");
  EXPECT_EQ(error_of(with("[[train]]\nlr = 1\n")),
            "a.toml:3: \"train\" is a section: write [train] and its keys below");
}

TEST(ConfigErrors, ValuesOutOfRangeNameLineValueAndRule) {
  EXPECT_EQ(error_of(with("[strategy]\nname = \"easgd\"\ntau = 0\n")), "a.toml:5: strategy.tau = 0: must be ≥ 1");
  EXPECT_EQ(error_of(with("[train]\nlr = 0.0\n")), "a.toml:4: train.lr = 0.0: must be > 0");
  EXPECT_EQ(error_of(with("[train]\nmomenta = [0.5, 1.5]\n")),
            "a.toml:4: train.momenta = [0.5, 1.5]: must be between 0 and 1");
  EXPECT_EQ(error_of(with("[train]\nbatch = []\n")), "a.toml:4: train.batch = []: must be ≥ 1 and non-empty");
  EXPECT_EQ(error_of(with("[strategy]\nname = \"bps\"\n")),
            "a.toml:4: strategy.name = \"bps\": must be one of bsp | easgd | eamsgd (nearest: \"bsp\")");
  EXPECT_EQ(error_of(with("[run]\nname = \"\"\n")), "a.toml:4: run.name = \"\": must be non-empty");
}

TEST(ConfigErrors, WrongTypesNameLineValueAndType) {
  EXPECT_EQ(error_of(with("[run]\nseed = 1.0\n")), "a.toml:4: run.seed = 1.0: must be an integer");
  EXPECT_EQ(error_of(with("[run]\nseed = \"1\"\n")), "a.toml:4: run.seed = \"1\": must be an integer");
  EXPECT_EQ(error_of(with("[run]\nverbose = 1\n")), "a.toml:4: run.verbose = 1: must be true or false");
  EXPECT_EQ(error_of(with("[run]\nname = 1\n")), "a.toml:4: run.name = 1: must be text in quotes: non-empty");
  EXPECT_EQ(error_of(with("[train]\nlr = true\n")), "a.toml:4: train.lr = true: must be a number");
  EXPECT_EQ(error_of(with("[train]\nlr = [0.1]\n")), "a.toml:4: train.lr = [0.1]: must be a number");
  EXPECT_EQ(error_of(with("[train]\nlr = 2026-01-01\n")), "a.toml:4: train.lr = 2026-01-01: must be a number");
  EXPECT_EQ(error_of(with("[train]\nbatch = [1, 2.5]\n")),
            "a.toml:4: train.batch = [1, 2.5]: must be an integer, or a list of such");
  EXPECT_EQ(error_of(with("[train]\nhosts = [[\"a\"]]\n")),
            "a.toml:4: train.hosts = [[\"a\"]]: must be text in quotes, or a list of such");
  EXPECT_EQ(error_of(with("layers = 3\n")), "a.toml:3: model.layers = 3: must be a list of tables");
  EXPECT_EQ(error_of(with("layers = [{at = 07:30:00}]\n")),
            "a.toml:3: model.layers = [{at = 07:30:00}]: must not contain dates, times, NaN or infinity");
}

TEST(ConfigErrors, NumbersMustBeFinite) {
  EXPECT_EQ(error_of(with("[train]\nlr = inf\n")), "a.toml:4: train.lr = inf: must be a finite number");
  EXPECT_EQ(error_of(with("[train]\nlr = nan\n")), "a.toml:4: train.lr = nan: must be a finite number");
  EXPECT_EQ(error_of(with("[train]\nmomenta = [0.1, -inf]\n")),
            "a.toml:4: train.momenta = [0.1, -inf]: must be a finite number, or a list of such");
  EXPECT_EQ(error_of(with("layers = [{x = nan}]\n")),
            "a.toml:3: model.layers = [{x = nan}]: must not contain dates, times, NaN or infinity");
}

TEST(ConfigErrors, LongValuesAreCut) {
  const std::string message = error_of(with("[run]\nseed = \"" + std::string(500, 'x') + "\"\n"));
  EXPECT_EQ(message, "a.toml:4: run.seed = \"" + std::string(79, 'x') + "…: must be an integer");
}

TEST(ConfigErrors, LongValuesAreCutBetweenCharacters) {
  const std::string message =
      error_of(with("[run]\nseed = \"xx" + std::string(40, 'x') + "üüüüüüüüüüüüüüüüüüüüüüü\"\n"));
  EXPECT_EQ(message, "a.toml:4: run.seed = \"xx" + std::string(40, 'x') + "üüüüüüüüüüüüüüüüüü…: must be an integer");
}

TEST(ConfigErrors, SyntaxAndDuplicatesNameTheLine) {
  EXPECT_EQ(error_of(with("[train]\nlr = \n")).rfind("a.toml:4: ", 0), 0u);
  EXPECT_EQ(error_of(with("[train]\nlr = 1\nlr = 2\n")).rfind("a.toml:5: ", 0), 0u);
  EXPECT_EQ(error_of(with("[model]\nlayers = []\n")).rfind("a.toml:3: ", 0), 0u);
  EXPECT_EQ(error_of("[model\n").rfind("a.toml:1: ", 0), 0u);
  EXPECT_EQ(error_of("[run]\nname = \"\xff\"\n").rfind("a.toml:2: ", 0), 0u);
}

TEST(ConfigErrors, ARequiredKeyThatIsMissingNamesItsSection) {
  EXPECT_EQ(error_of(""), "a.toml: missing key \"name\" in section [model] (which model to train)");
  EXPECT_EQ(error_of("[model]\nname = \"\"\n"), "a.toml:2: model.name = \"\": must be non-empty");
  EXPECT_TRUE(parse("", {"model.name=lenet"}));
}

// --- Overrides ---

TEST(Overrides, ReplaceTheFileAndEachOtherInOrder) {
  const auto config = parse(with("[train]\nlr = 0.5\n"), {"train.lr=0.25", "run.seed = 7", "train.lr=0.125"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->get(example::train_table()).lr, 0.125);
  EXPECT_EQ(config->get(example::run_table()).seed, 7);
}

TEST(Overrides, AreTomlOrElseBareText) {
  const auto name = [](const std::string& text) {
    const auto config = parse(kMinimal, {"run.name=" + text});
    return config ? config->get(example::run_table()).name : config.error().message;
  };
  EXPECT_EQ(name("\"quoted\""), "quoted");
  EXPECT_EQ(name("'literal\\'"), "literal\\");
  EXPECT_EQ(name("word"), "word");
  EXPECT_EQ(name("../data/mnist"), "../data/mnist");
  EXPECT_EQ(name("two words = 3"), "two words = 3");
  EXPECT_EQ(name("1 epoch"), "1 epoch");
  EXPECT_EQ(name("a\"b"), "a\"b");
  EXPECT_EQ(name("x # y"), "x # y");
  EXPECT_EQ(name("2024"), "2024");
  EXPECT_EQ(name("0.1"), "0.1");
  const auto train = parse(kMinimal, {"train.hosts=[\"a\", \"b\"]", "train.batch=8", "train.momenta=[0, 1]"})
                         ->get(example::train_table());
  EXPECT_EQ(train.hosts, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(train.batch, std::vector<std::int64_t>{8});
  EXPECT_EQ(train.momenta, (std::vector<double>{0, 1}));
  EXPECT_EQ(parse(kMinimal, {"train.hosts=a"})->get(example::train_table()).hosts, std::vector<std::string>{"a"});
  EXPECT_EQ(parse(kMinimal, {"model.layers=[{type=\"fc\"}]"})->get(example::model_table()).layers.json,
            R"([{"type":"fc"}])");
}

TEST(Overrides, CannotSmuggleFurtherKeysIn) {
  EXPECT_EQ(error_of(kMinimal, {"run.name=\"a\"\nseed = 9"}),
            "--set: run.name=\"a\"\nseed = 9: the value is not valid TOML");
  const auto config = parse(kMinimal, {"run.name=a\nseed = 9"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->get(example::run_table()).name, "a\nseed = 9");  // one odd name
  EXPECT_EQ(config->get(example::run_table()).seed, 1);
}

TEST(Overrides, ErrorsSayTheyAreOverrides) {
  EXPECT_EQ(error_of(kMinimal, {"run.seed"}), "--set: \"run.seed\" is not key=value");
  EXPECT_EQ(error_of(kMinimal, {"run.sed=1"}), "--set: unknown key \"run.sed\" (nearest: \"run.seed\")");
  EXPECT_EQ(error_of(kMinimal, {"=1"}),
            "--set: unknown key \"\": a key is SECTION.KEY, in [run], [model], [train], [strategy]");
  EXPECT_EQ(Config::parse(example::schema(), kMinimal, "a.toml", {"run.sed=1"}, "--other-set").error().message,
            "--other-set: unknown key \"run.sed\" (nearest: \"run.seed\")");
  EXPECT_EQ(error_of(kMinimal, {"train={lr=1}"}), "--set: \"train\" is a section: set one of its keys");
  EXPECT_EQ(error_of(kMinimal, {"strategy.name=easgd", "strategy.tau=0"}), "--set: strategy.tau = 0: must be ≥ 1");
  EXPECT_EQ(error_of(kMinimal, {"run.seed=4x"}), "--set: run.seed = \"4x\": must be an integer");
  EXPECT_EQ(error_of(kMinimal, {"run.seed="}), "--set: run.seed = \"\": must be an integer");
  EXPECT_EQ(error_of(kMinimal, {"train.lr=nan"}), "--set: train.lr = nan: must be a finite number");
  EXPECT_EQ(error_of(kMinimal, {"train.hosts=[a, b]"}), "--set: train.hosts=[a, b]: the value is not valid TOML");
  EXPECT_EQ(error_of(kMinimal, {"run.name=\"open"}), "--set: run.name=\"open: the value is not valid TOML");
  EXPECT_EQ(error_of(kMinimal, {"run.name=\xff"}), "--set: run.name=\xff: the value is not valid TOML");
}

TEST(Overrides, DoNotHideAWrongValueInTheFile) {
  EXPECT_EQ(error_of(with("[train]\nlr = -1\n"), {"train.lr=1"}), "a.toml:4: train.lr = -1: must be > 0");
}

// --- Scopes ---

TEST(Scopes, GiveTheChosenStrategyItsOwnDefaultsAndRules) {
  EXPECT_EQ(parse(kMinimal, {"strategy.name=easgd"})->get(example::easgd_table()).tau, 10);
  EXPECT_EQ(parse(kMinimal, {"strategy.name=eamsgd"})->get(example::eamsgd_table()).tau, 4);
  EXPECT_EQ(parse(kMinimal, {"strategy.tau=1", "strategy.name=easgd"})->get(example::easgd_table()).tau, 1);
  EXPECT_EQ(error_of(kMinimal, {"strategy.tau=1", "strategy.name=eamsgd"}), "--set: strategy.tau = 1: must be ≥ 2");
}

TEST(Scopes, KeepKeysOfOtherStrategiesButReportThem) {
  const auto config = parse(with("[strategy]\ntau = 3\nalpha = 0.25\n"), {"strategy.tau=5"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->unused(), (std::vector<std::string>{"strategy.alpha", "strategy.tau"}));
  EXPECT_THROW((void)config->value("strategy.tau"), std::out_of_range);
  EXPECT_EQ(config->to_toml().find("tau"), std::string::npos);
  EXPECT_TRUE(parse(with("[strategy]\nname = \"easgd\"\ntau = 3\n"))->unused().empty());
}

TEST(Scopes, CheckKeysOfOtherStrategiesToo) {
  EXPECT_EQ(error_of(with("[strategy]\nalpha = 1.5\n")), "a.toml:4: strategy.alpha = 1.5: must be between 0 and 1");
  EXPECT_EQ(error_of(with("[strategy]\ntau = \"x\"\n")), "a.toml:4: strategy.tau = \"x\": must be an integer");
  EXPECT_TRUE(parse(with("[strategy]\ntau = 1\n")));  // valid for easgd, not for eamsgd
  EXPECT_EQ(error_of(with("[strategy]\ntau = 0\n")), "a.toml:4: strategy.tau = 0: must be ≥ 1");
}

// --- Sources of values ---

TEST(Config, ReportsWhereAValueWasSet) {
  const auto config = parse(with("[train]\nlr = 1\n"), {"run.seed=2"});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->where("train.lr"), "a.toml:4");
  EXPECT_EQ(config->where("run.seed"), "--set");
  EXPECT_EQ(config->where("run.name"), "default");
  EXPECT_THROW((void)config->where("run.nmae"), std::out_of_range);
  EXPECT_THROW((void)config->value("run.nmae"), std::out_of_range);
}

TEST(Config, ComparesByValues) {
  EXPECT_EQ(*parse(with("[run]\nseed = 1\n")), *parse(kMinimal));  // the default, set or not
  EXPECT_NE(*parse(kMinimal, {"run.seed=2"}), *parse(kMinimal));
}

class ConfigFile : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(path_); }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("troupe-config-" + std::to_string(::getpid()) + ".toml")).string();
};

TEST_F(ConfigFile, IsReadAndNamedInMessages) {
  std::ofstream(path_) << "[model]\nname = \"lenet\"\n[train]\nlr = 0.5\n";
  const auto config = Config::load(example::schema(), path_, {"run.seed=3"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->get(example::train_table()).lr, 0.5);
  EXPECT_EQ(config->where("train.lr"), path_ + ":4");
  EXPECT_EQ(config->get(example::run_table()).seed, 3);
}

TEST_F(ConfigFile, MayBeEmpty) {
  std::ofstream(path_) << "";
  EXPECT_TRUE(Config::load(example::schema(), path_, {"model.name=x"}));
}

TEST_F(ConfigFile, MissingFileIsNamed) {
  const auto config = Config::load(example::schema(), path_, {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Errc::config);
  EXPECT_EQ(config.error().message, "cannot read config " + path_ + ": No such file or directory");
}

TEST_F(ConfigFile, DirectoryIsNamed) {
  std::filesystem::create_directory(path_);
  const auto config = Config::load(example::schema(), path_, {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Errc::config);
  EXPECT_EQ(config.error().message, "cannot read config " + path_ + ": Is a directory");
}

TEST_F(ConfigFile, AFileThatMayNotBeReadIsNoBadConfiguration) {
  std::ofstream(path_) << "";
  const tests::Forbidden forbidden(path_);
  const auto config = Config::load(example::schema(), path_, {});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Errc::io);
  EXPECT_EQ(config.error().message, "cannot read config " + path_ + ": Permission denied");
}

}  // namespace
}  // namespace troupe::core
