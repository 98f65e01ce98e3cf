#include "apps/shell/candidates.hpp"

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/shell/completion_scripts.hpp"
#include "tests/folder.hpp"

namespace troupe::apps {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

class CandidatesTest : public testing::Test {
 protected:
  [[nodiscard]] ValueCandidates found(const std::vector<std::string>& words) const {
    return candidates_for(all_, words);
  }
  [[nodiscard]] std::vector<std::string> texts(const std::vector<std::string>& words) const {
    std::vector<std::string> texts;
    for (const auto& word : found(words).words) texts.push_back(word.text);
    return texts;
  }

  CLI::App app_{program().summary, program().name};
  std::list<Parsed> all_ = declare_all(app_);
};

TEST_F(CandidatesTest, CommandsAndTheirSubcommands) {
  EXPECT_THAT(texts({""}), IsSupersetOf({"train", "runs", "completion", "help"}));
  const auto hidden = std::ranges::count_if(program().subcommands, &Command::hidden);
  EXPECT_EQ(texts({""}).size(), program().subcommands.size() - static_cast<std::size_t>(hidden) + 1);  // and help
  EXPECT_THAT(texts({"tra"}), ElementsAre("train"));
  EXPECT_THAT(texts({"runs", "re"}), ElementsAre("rebuild"));
  EXPECT_THAT(texts({"help", "ru"}), ElementsAre("runs"));
  EXPECT_THAT(texts({"help", "runs", "sho"}), ElementsAre("show"));
  EXPECT_THAT(texts({"runs", "nonsense", ""}), IsEmpty()) << "the parser refuses it";
  EXPECT_THAT(texts({"nonsense", "--"}), IsEmpty());
  EXPECT_THAT(texts({"runs", "list", "--nonsense", ""}), IsEmpty());
  EXPECT_THAT(texts({"train", "--nonsense=1", "--"}), IsEmpty());
}

TEST_F(CandidatesTest, FlagsOfTheCommandThatAreNotYetGiven) {
  EXPECT_THAT(texts({"train", "--"}), IsSupersetOf({"--set", "--resume", "--json", "--help"}));
  EXPECT_THAT(texts({"train", "--json", "--"}), Not(Contains("--json")));
  EXPECT_THAT(texts({"train", "--set", "train.lr=1", "--s"}), ElementsAre("--set")) << "it may be repeated";
  EXPECT_THAT(texts({"bench", "step", "--prec"}), ElementsAre("--precision"));
  EXPECT_THAT(texts({"--ver"}), ElementsAre("--version"));
}

TEST_F(CandidatesTest, ChoicesOfAFlag) {
  EXPECT_THAT(texts({"runs", "export", "--format", ""}), ElementsAre("json", "csv", "mlflow", "wandb"));
  EXPECT_THAT(texts({"runs", "export", "--format=m"}), ElementsAre("--format=mlflow"));
  EXPECT_THAT(texts({"export", "--to", "on"}), ElementsAre("onnx"));
  EXPECT_THAT(texts({"plot", "--format", "png,s"}), ElementsAre("png,svg"));
  EXPECT_THAT(texts({"bench", "step", "--model", "lene"}), ElementsAre("lenet"));
  EXPECT_THAT(texts({"completion", ""}), ElementsAre("bash", "fish", "zsh"));
}

TEST_F(CandidatesTest, KeysOfAConfigurationAndTheirValues) {
  EXPECT_THAT(texts({"train", "--set", "train.lr"}), Contains("train.lr="));
  const auto keys = texts({"train", "--set", ""});
  EXPECT_EQ(std::ranges::count(keys, "strategy.tau="), 1) << "two strategies have it";
  EXPECT_THAT(texts({"train", "--set", "strategy.name=eas"}), ElementsAre("strategy.name=easgd"));
  EXPECT_THAT(texts({"train", "--set", "cluster.deterministic="}),
              ElementsAre("cluster.deterministic=true", "cluster.deterministic=false"));
  EXPECT_THAT(texts({"train", "--set=exchange.wire=fp1"}), ElementsAre("--set=exchange.wire=fp16"));
  EXPECT_THAT(texts({"train", "--set", "train.lr="}), ElementsAre("train.lr=auto"));
  EXPECT_THAT(texts({"train", "--set", "run.seed="}), IsEmpty()) << "a number";
  EXPECT_THAT(texts({"simulate", "--cluster-set", "hosts.NAME.cou"}), ElementsAre("hosts.NAME.count="));
}

TEST_F(CandidatesTest, StrategiesModelsAndDataSets) {
  EXPECT_THAT(texts({"strategies", "easg"}), ElementsAre("easgd"));
  EXPECT_THAT(texts({"launch", "--strategy", "bs"}), ElementsAre("bsp"));
  EXPECT_THAT(texts({"data", "fetch", "cifar10"}), Contains("cifar10"));
}

TEST_F(CandidatesTest, RunsByTheirNamesOrTheirPaths) {
  const tests::Folder folder;
  for (const char* run : {"20260102-030405-a", "20260102-030406-b", "grid/20260102-030407-c"})
    folder.write(std::string(run) + "/config.toml", "");
  folder.write("photos/cat.jpg", "");
  folder.write(".removing-0/x/config.toml", "");
  EXPECT_THAT(texts({"runs", "show", "--dir", folder.path(), ""}),
              ElementsAre("20260102-030405-a", "20260102-030406-b", "grid/20260102-030407-c"));
  EXPECT_THAT(texts({"runs", "rm", "20260102-030405-a", "--dir=" + folder.path(), "gr"}),
              ElementsAre("grid/20260102-030407-c"));
  EXPECT_THAT(texts({"runs", "tag", "--dir", folder.path(), "20260102-030405-a", ""}),
              Not(Contains("20260102-030406-b")))
      << "tags follow";
  EXPECT_EQ(found({"runs", "show", ""}).paths, Paths::none);
  const auto before = std::filesystem::current_path();
  folder.write("runs/20260102-030408-d/config.toml", "");
  std::filesystem::current_path(folder.path());
  EXPECT_THAT(texts({"train", "--resume", ""}), ElementsAre("runs/20260102-030408-d"));
  EXPECT_THAT(texts({"compare", "ru"}), ElementsAre("runs/20260102-030408-d"));
  EXPECT_THAT(texts({"replay", "elsewhere/"}), IsEmpty());
  std::filesystem::current_path(before);
  EXPECT_EQ(found({"train", "--resume", ""}).paths, Paths::directories);
}

TEST_F(CandidatesTest, ConditionsAndColumnsOfRuns) {
  EXPECT_THAT(texts({"runs", "list", "stra"}), IsSupersetOf({"strategy=", "strategy.name=", "strategy.tau="}));
  EXPECT_THAT(texts({"runs", "list", "strategy=easgd", "status=d"}), ElementsAre("status=done", "status=diverged"));
  EXPECT_THAT(texts({"runs", "list", "--columns", "run,accu"}), ElementsAre("run,accuracy"));
  EXPECT_THAT(texts({"runs", "list", "--sort", "images"}), ElementsAre("images_per_s"));
}

TEST_F(CandidatesTest, FilesWhereTheParserTakesThem) {
  EXPECT_EQ(found({"train", ""}).paths, Paths::files);
  EXPECT_EQ(found({"predict", "runs/a", "x.png", ""}).paths, Paths::files);
  EXPECT_EQ(found({"launch", "--workers", "2", "--", "pyth"}).paths, Paths::files);
  EXPECT_EQ(found({"plot", "--output", ""}).paths, Paths::directories);
  EXPECT_EQ(found({"train", "--set", "train.lr=1"}).paths, Paths::none);
}

TEST_F(CandidatesTest, TopicsOfTheHelp) {
  EXPECT_THAT(texts({"train", "--help", ""}), IsSupersetOf({"run", "model", "data", "all"}));
  EXPECT_THAT(texts({"help", "train", "train.lr_pol"}), ElementsAre("train.lr_policy"));
  EXPECT_THAT(texts({"help", "train", "data", ""}), IsEmpty()) << "one topic";
  EXPECT_THAT(texts({"help", "doctor", ""}), IsEmpty());
}

TEST_F(CandidatesTest, LinesForTheShells) {
  EXPECT_EQ(candidate_lines({{{"a=", "one"}, {"b", ""}, {"c\nd", "never"}}, Paths::files}), "a=\tone\nb\n:files\n");
}

}  // namespace
}  // namespace troupe::apps
