// Segments on disk: which stay, which go, and how a session begins its own after one that never got so far.
#include "actors/journal_keeper.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

class JournalKeeperTest : public testing::Test {
 protected:
  JournalKeeperTest() {
    config_ = core::Config::parse(experiment::schema(),
                                  "[model]\nname = \"mlp\"\nwidths = [3]\n[data]\nname = \"glyphs\"\n", "a.toml", {})
                  .value();
    plan_ = experiment::draw(experiment::resolve(config_).value(), false).value();
    directory_ = std::make_shared<const RunDirectory>(RunDirectory::create(folder_.file("runs"), "a", 0).value());
    start_.graph = plan_.graph;
    start_.vectors[""] = std::vector<float>(static_cast<std::size_t>(plan_.graph->parameter_count()));
  }

  JournalKeeper keeper(experiment::JournalPolicy policy = {}) const { return {directory_, policy, config_, "{}"}; }
  std::vector<int> numbers() const {
    std::vector<int> all;
    const auto segments = directory_->journals();
    EXPECT_TRUE(segments);
    for (const auto& segment : *segments) all.push_back(segment.number);
    return all;
  }
  std::vector<std::string> temporaries() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(directory_->path()))
      if (entry.path().extension() == ".tmp") all.push_back(entry.path().string());
    return all;
  }

  tests::Folder folder_;
  core::Config config_;
  Blueprint plan_;
  std::shared_ptr<const RunDirectory> directory_;
  Checkpoint start_;
};

TEST_F(JournalKeeperTest, OfAJournalWithoutALimitEverySegmentStays) {
  auto journal = keeper(experiment::parse_journal("all").value());
  ASSERT_TRUE(journal.open(""));
  for (int rejoin = 0; rejoin < 4; ++rejoin) ASSERT_TRUE(journal.rotate(start_));
  EXPECT_EQ(numbers(), (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_FALSE(journal.full());
}

TEST_F(JournalKeeperTest, OfOneWithALimitTheOldestGoAndTheTwoNewestStay) {
  auto journal = keeper(experiment::parse_journal("1 KB").value());  // less than one start state
  ASSERT_TRUE(journal.open(""));
  for (int more = 0; more < 4; ++more) ASSERT_TRUE(journal.rotate(start_));
  EXPECT_EQ(numbers(), (std::vector<int>{4, 5}));
  for (const auto& entry : fs::directory_iterator(directory_->path()))
    EXPECT_EQ(entry.path().filename().string().rfind("journal-0003", 0), std::string::npos) << entry.path();
}

TEST_F(JournalKeeperTest, ASessionTakesThePlaceOfOneThatDiedBeforeItsJournalBegan) {
  const auto checkpoint = folder_.write("step-7.safetensors", "the whole checkpoint");
  {
    auto first = keeper();
    ASSERT_TRUE(first.open(""));
  }
  // Killed when the start state was being copied: the second segment has some files, and no journal.
  const auto begun = directory_->next_journal().value();
  std::ofstream(begun.start) << "the wh";
  std::ofstream(begun.config) << "half";
  auto second = keeper();
  const auto opened = second.open(checkpoint);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(numbers(), (std::vector<int>{1, 2}));
  EXPECT_EQ(folder_.read(fs::relative(begun.start, folder_.path()).string()), "the whole checkpoint");
  EXPECT_EQ(core::Config::load(experiment::schema(), begun.config, {}).value(), config_);
  EXPECT_EQ(temporaries(), std::vector<std::string>{});
}

TEST_F(JournalKeeperTest, ASessionThatCannotBeginItsJournalLeavesNothingInTheNextOnesWay) {
  {
    auto first = keeper();
    ASSERT_TRUE(first.open(""));
  }
  auto second = keeper();
  EXPECT_FALSE(second.open(folder_.file("none.safetensors")));
  EXPECT_EQ(temporaries(), std::vector<std::string>{});
  EXPECT_EQ(numbers(), std::vector<int>{1});
  auto third = keeper();
  ASSERT_TRUE(third.open(folder_.write("step-7.safetensors", "whole")));
  EXPECT_EQ(numbers(), (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace troupe::actors
