#include <gtest/gtest.h>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

constexpr auto kEasgd =
    "[model]\n"
    "name = \"mlp\"\n"
    "[data]\n"
    "name = \"glyphs\"\n"
    "[strategy]\n"
    "name = \"easgd\"\n"
    "tau = 4\n";

TEST(CheckTest, EveryShippedConfigurationPasses) {
  int checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TROUPE_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".toml") continue;
    const auto outcome = troupe({"check", entry.path()});
    EXPECT_EQ(outcome.code, 0) << entry.path() << ": " << outcome.err;
    EXPECT_EQ(outcome.out.find("is not used"), std::string::npos) << outcome.out;
    ++checked;
  }
  EXPECT_GE(checked, 4);
}

TEST(CheckTest, DescribesTheRun) {
  const TemporaryDirectory folder;
  const auto outcome = troupe({"check", folder.write("a.toml", kEasgd)});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("89610 parameters"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("train.lr = 0.05 (auto: 0.05 for momentum)\n"), std::string::npos) << outcome.out;
}

// As many samples as the published data set: no file is opened.
TEST(CheckTest, WarnsOfAPeriodLongerThanTheRun) {
  const TemporaryDirectory folder;
  const auto config = folder.write("a.toml", kEasgd);
  const auto outcome = troupe({"check", config, "--set", "strategy.tau=100000"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: --set: strategy.tau = 100000 is longer than the run"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.out.find("longer than the run"), std::string::npos);  // standard output has only the result
  EXPECT_EQ(troupe({"check", config}).err, "");
}

TEST(CheckTest, WarnsOfABatchLargerThanTheDataSet) {
  const TemporaryDirectory folder;
  const auto config = folder.write("a.toml", kEasgd);
  const auto outcome = troupe({"check", config, "--data", "--set", "data.train_samples=200", "--set",
                               "data.test_samples=10", "--set", "data.batch=500", "--set", "cluster.workers=1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: --set: data.batch = 500 is more than the 200 training samples: a step has each "
                             "of them 2.5 times; set data.batch to their number or less\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.out.find("200 training and 10 test samples, 1 step per epoch"), std::string::npos) << outcome.out;
}

TEST(CheckTest, WarnsOfAMixedRunWithOneGroup) {
  const TemporaryDirectory folder;
  const auto config = folder.write("a.toml", kEasgd);
  const auto outcome = troupe({"check", config, "--set", "strategy.name=mixed", "--set", "cluster.workers=2", "--set",
                               "strategy.group_size=3"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("warning: --set: strategy.group_size = 3 makes one group of all 2 workers"),
            std::string::npos)
      << outcome.err;
}

TEST(CheckTest, ValidationSplitThatTakesAllSamplesIsNamed) {
  const TemporaryDirectory folder;
  const auto outcome = troupe({"check", folder.write("a.toml", kEasgd), "--set", "data.validation=60000"});
  EXPECT_EQ(outcome.code, 78);
  EXPECT_EQ(outcome.err, "troupe: --set: data.validation = \"60000\" leaves no sample to train with: hold fewer out\n");
}

TEST(CheckTest, MpiConfigurationsAreValidForRanks) {
  const TemporaryDirectory folder;
  const auto config = folder.write("a.toml", kEasgd);
  const std::vector<std::string> mpi{"check", config, "--set", "exchange.endpoint=mpi"};
  const auto with = [&](std::initializer_list<std::string> settings) {
    auto all = mpi;
    for (const auto& setting : settings) all.insert(all.end(), {"--set", setting});
    return troupe(all);
  };
  const auto good = with({"cluster.workers=4", "strategy.name=bsp", "exchange.algorithm=ar"});
  ASSERT_EQ(good.code, 0) << good.err;
  EXPECT_NE(good.err.find("`mpirun -n 4 troupe train " + config + "`\n"), std::string::npos) << good.err;
  const auto uneven = with({"cluster.workers=5", "cluster.workers_per_rank=2"});
  EXPECT_NE(uneven.err.find("mpirun -n 2"), std::string::npos) << uneven.err;
  EXPECT_NE(uneven.err.find("makes 4 workers"), std::string::npos) << uneven.err;
  for (const auto& bad : {with({"exchange.algorithm=shm"}), with({"strategy.name=pairs", "exchange.algorithm=ar"}),
                          with({"cluster.workers_per_rank=2", "exchange.algorithm=ar"})}) {
    EXPECT_EQ(bad.code, 78);
    EXPECT_TRUE(is_one_line(bad)) << bad.err;
  }
}

TEST(CheckTest, ConfigurationsForProcessesAreValidForNodes) {
  const TemporaryDirectory folder;
  const auto config = folder.write("a.toml", kEasgd);
  const auto outcome = troupe({"check", config, "--set", "exchange.wire=bf16"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("--nodes"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.out.find("good"), std::string::npos) << outcome.out;
}

TEST(CheckTest, AMisspeltKeyNamesFileLineAndNearest) {
  const TemporaryDirectory folder;
  const auto path = folder.write("a.toml", std::string(kEasgd) + "alhpa = 0.5\n");
  const auto outcome = troupe({"check", path});
  EXPECT_EQ(outcome.code, 78);
  EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
  EXPECT_NE(outcome.err.find(path + ":8: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("strategy.alpha"), std::string::npos) << outcome.err;
}

struct Wrong {
  std::string override_text;
  std::string message;
  friend std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.message; }
};
class OverrideTest : public testing::TestWithParam<Wrong> {};

TEST_P(OverrideTest, IsExit78WithOneLine) {
  const TemporaryDirectory folder;
  const auto outcome = troupe({"check", folder.write("a.toml", kEasgd), "--set", GetParam().override_text});
  EXPECT_EQ(outcome.code, 78);
  EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
  EXPECT_NE(outcome.err.find("--set: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(GetParam().message), std::string::npos) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, OverrideTest,
    testing::Values(Wrong{"strategy.tau=0", "strategy.tau = 0: must be between 1 and 1,000,000,000"},
                    Wrong{"cluster.workers=0", "cluster.workers = 0"}, Wrong{"strategy.name=esgd", "strategy.name"},
                    Wrong{"cluster.wrokers=2", "cluster.workers"}, Wrong{"cluster.workers", "is not key=value"},
                    Wrong{"data.batch=[1,2,3]", "3 values for 2 workers"},
                    Wrong{"run.checkpoint_every=daily", "N epochs"}));

// With a GPU the configuration is good.
TEST(CheckTest, ADeviceThatIsNotThereIsRefusedWithTheReason) {
  const TemporaryDirectory folder;
  const auto config = folder.write("a.toml", kEasgd);
  const auto outcome = troupe({"check", config, "--set", "cluster.device=cuda"});
  if (outcome.code == 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(outcome.code, 78);
  EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
  EXPECT_NE(outcome.err.find("device \"cuda\": "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("; without it use \"cpu\""), std::string::npos) << outcome.err;
}

// The data set is not opened: its published form is enough.
TEST(CheckTest, RefusesDataOptionsThatTrainingRefuses) {
  const TemporaryDirectory folder;
  const auto config = folder.write("a.toml", kEasgd);
  const auto with = [&](const std::string& command, std::initializer_list<std::string> settings) {
    std::vector<std::string> all{command, config, "--set", "run.dir=" + folder.file("runs")};
    for (const auto& setting : settings) all.insert(all.end(), {"--set", setting});
    return troupe(all);
  };
  const auto crop = with("check", {"data.name=mnist", "data.crop=64"});
  EXPECT_EQ(crop.code, 78);
  EXPECT_TRUE(is_one_line(crop)) << crop.err;
  EXPECT_NE(crop.err.find("data.crop is 64 and images are 28 x 28"), std::string::npos) << crop.err;
  for (const auto& settings : {std::initializer_list<std::string>{"data.crop=29"},
                               {"data.crop=32", "data.pad=1"},
                               {"data.drop_tail=true", "data.batch=70000"}}) {
    const auto checked = with("check", settings), trained = with("train", settings);
    EXPECT_EQ(checked.code, 78) << checked.out;
    EXPECT_EQ(trained.code, 78);
    EXPECT_EQ(checked.err, trained.err);
  }
  EXPECT_EQ(with("check", {"data.crop=32", "data.pad=2"}).code, 0);
}

/// `check`, also with the data set, and `--dry-run` refuse with the words of `train`, which makes no run directory then.
void expect_refused_everywhere(const std::string& text, const std::string& says) {
  const TemporaryDirectory folder;
  const auto config = folder.write("a.toml", "[run]\ndir = \"" + folder.file("runs") + "\"\n" + text);
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"train"}, {"check"}, {"check", "--data"}, {"train", "--dry-run"}}) {
    auto words = command;
    words.insert(words.begin() + 1, config);
    const auto outcome = troupe(words);
    EXPECT_EQ(outcome.code, 78) << command.back() << outcome.out;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
    EXPECT_NE(outcome.err.find(config + ":" + says), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("runs")));
}

TEST(CheckTest, RefusesMoreServersThanShards) {
  // 784 x 16 + 16, in units of 16 floats: 784 + 1; 16 x 10 + 10: 10 + 1.
  const std::string easgd =
      "[model]\nname = \"mlp\"\nwidths = [16]\n[data]\nname = \"glyphs\"\ntrain_samples = 64\ntest_samples = 10\n"
      "[strategy]\nname = \"easgd\"\n[cluster]\nworkers = 1\n";
  expect_refused_everywhere(easgd + "servers = 20000\n",
                            "14: cluster.servers = 20000: the model's 12730 parameters are too few for so many shards: "
                            "at most 796 servers");
  const TemporaryDirectory folder;
  EXPECT_EQ(troupe({"check", folder.write("a.toml", easgd + "servers = 796\n")}).code, 0);
}

TEST(CheckTest, RefusesNamesThatACheckpointHasTwice) {
  const auto layers = [](const std::string& first, const std::string& second) {
    return "[model]\nlayers = [{type = \"linear\", outputs = 10, name = \"" + first +
           "\"}, {type = \"linear\", outputs = 10, name = \"" + second +
           "\"}]\n[data]\nname = \"glyphs\"\ntrain_samples = 64\ntest_samples = 10\n";
  };
  for (const std::string name : {"optimizer.velocity.a", "center.a", "server.state.0.a", "worker.0.optimizer.square.a"})
    expect_refused_everywhere(layers("a", name), "4: in a checkpoint the parameter \"" + name +
                                                     ".bias\" has the name of a state of \"a.bias\": give its layer "
                                                     "a name that does not begin with \"" +
                                                     name.substr(0, name.find('.') + 1) + "\"");
  const TemporaryDirectory folder;
  EXPECT_EQ(troupe({"check", folder.write("a.toml", layers("a", "worker.b"))}).code, 0) << "no state has this name";
}

TEST(CheckTest, SaysThatItHasNotOpenedTheData) {
  const TemporaryDirectory folder;
  const auto config = folder.write("a.toml", kEasgd);
  const auto closed = troupe({"check", config, "--set", "data.name=mnist", "--set", "data.path=none"});
  EXPECT_EQ(closed.code, 0) << closed.err;
  EXPECT_NE(closed.out.find("a.toml: good; the data set was not opened: --data does that\n"), std::string::npos)
      << closed.out;
  const auto missing = troupe({"check", config, "--data", "--set", "data.name=mnist", "--set", "data.path=none"});
  EXPECT_EQ(missing.code, 65) << missing.out;
  const auto opened =
      troupe({"check", config, "--data", "--set", "data.train_samples=600", "--set", "data.test_samples=60"});
  EXPECT_NE(opened.out.find("a.toml: good\n"), std::string::npos) << opened.out << opened.err;
}

TEST(CheckTest, LayerErrorsNameFileLineAndLayer) {
  const TemporaryDirectory folder;
  const auto with = [&](const std::string& layers) {
    return troupe(
        {"check", folder.write("a.toml", "[model]\nlayers = [\n" + layers + "]\n[data]\nname = \"glyphs\"\n")});
  };
  const auto place = folder.file("a.toml") + ":4: model.layers[1] (";
  for (const auto& wrong :
       {with("{type = \"relu\"},\n{type = \"linear\", output = 10}"),
        with("{type = \"relu\"},\n{type = \"conv2d\", outputs = 3, kernel = 99},\n{type = \"flatten\"}"),
        with("{type = \"relu\"},\n{type = \"linear\", outputs = 3}")}) {
    EXPECT_EQ(wrong.code, 78) << wrong.out;
    EXPECT_TRUE(wrong.err.starts_with("troupe: " + place)) << wrong.err;
  }
}

TEST(CheckTest, ModelsWhoseNeuronsCannotBeSpreadAreNamedWithTheLine) {
  const TemporaryDirectory folder;
  const auto check = [&](const std::string& model, const std::string& after) {
    return troupe({"check", folder.write("a.toml", "[model]\n" + model +
                                                       "\nparallel = \"neurons\"\n[data]\nname = "
                                                       "\"glyphs\"\n" +
                                                       after)});
  };
  EXPECT_EQ(check("name = \"mlp\"", "[cluster]\nthreads_per_worker = 2\n").code, 0);
  const auto place = "troupe: " + folder.file("a.toml");
  for (const auto& [outcome, error] :
       {std::pair{check("name = \"lenet\"", ""),
                  ":3: model.parallel = \"neurons\" needs a chain of linear layers, each with one activation or none: "
                  "layer conv1 of lenet is of type conv2d\n"},
        {check("name = \"mlp\"", "[cluster]\nprecision = \"bf16\"\n"),
         ":7: cluster.precision: model.parallel = \"neurons\" computes in float32 only: use \"fp32\"\n"},
        {check("name = \"mlp\"", "[train]\nrecompute = true\n"),
         ":7: train.recompute: model.parallel = \"neurons\" cannot compute activations again: use false\n"}}) {
    EXPECT_EQ(outcome.code, 78);
    EXPECT_EQ(outcome.err, place + error);
  }
}

TEST(CheckTest, AnUnreadableConfigurationSaysWhy) {
  const TemporaryDirectory folder;
  std::filesystem::create_symlink("loop.toml", folder.file("loop.toml"));  // cannot be read by root either
  const auto outcome = troupe({"check", folder.file("loop.toml")});
  EXPECT_EQ(outcome.code, 78);
  EXPECT_NE(outcome.err.find("Too many levels of symbolic links"), std::string::npos) << outcome.err;
}

TEST(CheckTest, AMissingConfigurationIsExit78) {
  const auto outcome = troupe({"check", "none/at/all.toml"});
  EXPECT_EQ(outcome.code, 78);
  EXPECT_EQ(outcome.err, "troupe: cannot read config none/at/all.toml: No such file or directory\n");
}

}  // namespace
}  // namespace troupe::apps
