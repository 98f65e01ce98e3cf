#include <gtest/gtest.h>

#include "experiment/settings.hpp"
#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

constexpr auto kMnist = "[model]\nname = \"mlp\"\n[data]\nname = \"mnist\"\n";

TEST(TrainTest, HelpListsEveryKey) {
  const auto outcome = troupe({"train", "--help", "all"});
  ASSERT_EQ(outcome.code, 0);
  for (const auto& option : experiment::schema().options()) {
    const auto name = option.key.substr(option.key.find('.') + 1);
    EXPECT_NE(outcome.out.find("  " + name + " = "), std::string::npos) << option.key;
  }
}

TEST(TrainTest, AMissingConfigurationIsExit78) { EXPECT_EQ(troupe({"train", "none.toml"}).code, 78); }

TEST(TrainTest, MissingDataIsExit65AndLeavesNoRunBehind) {
  const TemporaryDirectory folder;
  const auto outcome = troupe({"train", folder.write("a.toml", kMnist), "--set", "run.dir=" + folder.file("runs"),
                               "--set", "data.path=" + folder.file("none"), "--json"});
  EXPECT_EQ(outcome.code, 65);
  EXPECT_TRUE(is_one_line(outcome)) << outcome.out << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder.file("runs")));
}

TEST(TrainTest, ResumeNeedsARunDirectory) {
  const TemporaryDirectory folder;
  const auto none = troupe({"train", "--resume", folder.file("none")});
  EXPECT_EQ(none.code, 78);
  EXPECT_EQ(none.err, "troupe: " + folder.file("none") + " does not exist: give a run's directory\n");
  const auto outcome = troupe({"train", "--resume", folder.file("")});
  EXPECT_EQ(outcome.code, 78);
  EXPECT_NE(outcome.err.find("no config.toml"), std::string::npos) << outcome.err;
}

TEST(TrainTest, ADirectoryInPlaceOfAConfigurationIsPerhapsARunToResume) {
  const TemporaryDirectory folder;
  const auto no_run = troupe({"train", folder.path()});
  EXPECT_EQ(no_run.code, 2);
  EXPECT_NE(no_run.err.find("is a directory: give a configuration file"), std::string::npos) << no_run.err;
  folder.write("config.toml", "");
  const auto outcome = troupe({"train", folder.path()});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("`troupe train --resume " + folder.path() + "`"), std::string::npos) << outcome.err;
}

TEST(EvalTest, NeedsACheckpointOrARunDirectory) {
  const TemporaryDirectory folder;
  const auto none = troupe({"eval", folder.file("none")});
  EXPECT_EQ(none.code, 78);
  EXPECT_EQ(none.err, "troupe: " + folder.file("none") + " does not exist: give a run's directory\n");
  EXPECT_EQ(troupe({"eval", folder.write("stray.safetensors", "")}).code, 65);
}

}  // namespace
}  // namespace troupe::apps
