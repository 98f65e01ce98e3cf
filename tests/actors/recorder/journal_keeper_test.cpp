// Segments on disk: which are kept, which are removed, and how a session begins its own after a session that could not finish one.
#include "actors/recorder/journal_keeper.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;

class JournalKeeperTest : public ::testing::Test {
 protected:
  JournalKeeperTest() {
    config_ = core::Config::parse(experiment::schema(),
                                  "[model]\nname = \"mlp\"\nwidths = [3]\n[data]\nname = \"glyphs\"\n", "a.toml", {})
                  .value();
    spec_ = experiment::build_run_spec(experiment::resolve(config_).value(), false).value();
    directory_ = std::make_shared<const RunDirectory>(RunDirectory::create(folder_.file("runs"), "a", 0).value());
    start_->graph = spec_.graph;
    start_->vectors[""] =
        std::make_shared<std::vector<float>>(static_cast<std::size_t>(spec_.graph->parameter_count()));
  }

  JournalKeeper keeper(experiment::JournalPolicy policy = {}) const { return {directory_, policy, config_, "{}"}; }
  static core::Result<void> open(JournalKeeper& journal, const std::string& start) {
    const auto beginning = journal.open(start, files());
    if (!beginning) return tl::unexpected(beginning.error());
    return journal.begin((*beginning)());
  }
  core::Result<void> rotate(JournalKeeper& journal) const {
    const auto beginning = journal.hold(start_, files());
    if (!beginning) return tl::unexpected(beginning.error());
    return journal.begin((*beginning)());
  }
  static std::shared_ptr<nn::FileSystem> files() { return {std::shared_ptr<void>(), &nn::system_files()}; }
  static JournalRecords record(std::uint16_t kind) { return {.kinds = {kind}, .sizes = {0}, .bytes = {}}; }
  /// Kinds of the records of a segment.
  std::vector<std::uint16_t> segment(int number) const {
    std::vector<std::uint16_t> kinds;
    const auto contents = core::read_journal(directory_->segment(number).path).value();
    for (const auto& each : contents.records) kinds.push_back(each.kind);
    return kinds;
  }
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
  RunSpec spec_;
  std::shared_ptr<const RunDirectory> directory_;
  std::shared_ptr<Checkpoint> start_ = std::make_shared<Checkpoint>();
  static constexpr auto kEnd = static_cast<std::uint16_t>(experiment::RunRecordKind::end);
};

TEST_F(JournalKeeperTest, AnUnlimitedJournalKeepsEverySegment) {
  auto journal = keeper(experiment::parse_journal("all").value());
  ASSERT_TRUE(open(journal, ""));
  for (int rejoin = 0; rejoin < 4; ++rejoin) ASSERT_TRUE(rotate(journal));
  EXPECT_EQ(numbers(), (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_FALSE(journal.full());
}

TEST_F(JournalKeeperTest, ALimitedJournalKeepsItsTwoNewestSegments) {
  auto journal = keeper(experiment::parse_journal("1 KB").value());  // less than one start state
  ASSERT_TRUE(open(journal, ""));
  for (int more = 0; more < 4; ++more) ASSERT_TRUE(rotate(journal));
  EXPECT_EQ(numbers(), (std::vector<int>{4, 5}));
  for (const auto& entry : fs::directory_iterator(directory_->path()))
    EXPECT_EQ(entry.path().filename().string().rfind("journal-0003", 0), std::string::npos) << entry.path();
}

TEST_F(JournalKeeperTest, SessionReplacesOneThatDiedBeforeItsJournalBegan) {
  const auto checkpoint = folder_.write("step-7.safetensors", "the whole checkpoint");
  {
    auto first = keeper();
    ASSERT_TRUE(open(first, ""));
  }
  // As if killed while the start state was being copied: the second segment has some files and no journal.
  const auto begun = directory_->next_journal().value();
  std::ofstream(begun.start) << "the wh";
  std::ofstream(begun.config) << "half";
  auto second = keeper();
  const auto opened = open(second, checkpoint);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(numbers(), (std::vector<int>{1, 2}));
  EXPECT_EQ(folder_.read(fs::relative(begun.start, folder_.path()).string()), "the whole checkpoint");
  EXPECT_EQ(core::Config::load(experiment::schema(), begun.config, {}).value(), config_);
  EXPECT_EQ(temporaries(), std::vector<std::string>{});
}

TEST_F(JournalKeeperTest, AFailedJournalLeavesNoFilesForTheNextSession) {
  {
    auto first = keeper();
    ASSERT_TRUE(open(first, ""));
  }
  auto second = keeper();
  EXPECT_FALSE(open(second, folder_.file("none.safetensors")));
  EXPECT_EQ(temporaries(), std::vector<std::string>{});
  EXPECT_EQ(numbers(), std::vector<int>{1});
  auto third = keeper();
  ASSERT_TRUE(open(third, folder_.write("step-7.safetensors", "whole")));
  EXPECT_EQ(numbers(), (std::vector<int>{1, 2}));
}

/// Members come back one after the other while the first one's start state waits for the disk.
TEST_F(JournalKeeperTest, SegmentsBeginInOrderAfterTheirStartStatesAreWritten) {
  auto journal = keeper();
  ASSERT_TRUE(open(journal, ""));
  ASSERT_TRUE(journal.append(record(1)));
  const auto second = journal.hold(start_, files());
  ASSERT_TRUE(journal.append(record(2)));
  const auto third = journal.hold(start_, files());
  ASSERT_TRUE(journal.append(record(3)));
  ASSERT_TRUE(journal.begin((*second)()));
  EXPECT_TRUE(journal.holds());
  ASSERT_TRUE(journal.append(record(4)));
  ASSERT_TRUE(journal.begin((*third)()));
  EXPECT_FALSE(journal.holds());
  EXPECT_EQ(segment(1), (std::vector<std::uint16_t>{1, kEnd}));
  EXPECT_EQ(segment(2), (std::vector<std::uint16_t>{2, kEnd}));
  EXPECT_EQ(segment(3), (std::vector<std::uint16_t>{3, 4}))
      << "what was kept is out of the process when begin() returns";
}

TEST_F(JournalKeeperTest, AFailedStartStateKeepsTheOldSegmentAndRetriesLater) {
  auto journal = keeper(experiment::parse_journal("1 KB").value());
  ASSERT_TRUE(open(journal, ""));
  const JournalRecords large{.kinds = {1}, .sizes = {400}, .bytes = std::vector<char>(400)};
  ASSERT_TRUE(journal.append(large));
  EXPECT_TRUE(journal.full());
  ASSERT_TRUE(journal.hold(start_, files()));
  ASSERT_TRUE(journal.append(record(2)));
  EXPECT_FALSE(journal.begin(core::fail(core::Errc::no_space, "full")));
  EXPECT_TRUE(journal.is_on());
  EXPECT_FALSE(journal.full()) << "not at every record";
  ASSERT_TRUE(journal.append(large));
  EXPECT_TRUE(journal.full());
  ASSERT_TRUE(journal.close());
  EXPECT_EQ(segment(1), (std::vector<std::uint16_t>{1, 2, 1, kEnd}));
}

TEST_F(JournalKeeperTest, WithoutAFirstSegmentThereIsNoJournal) {
  auto journal = keeper();
  ASSERT_TRUE(journal.open("", files()));
  ASSERT_TRUE(journal.append(record(1)));
  EXPECT_FALSE(journal.begin(core::fail(core::Errc::no_space, "full")));
  EXPECT_FALSE(journal.is_on());
  EXPECT_TRUE(journal.append(record(2)));
  EXPECT_TRUE(journal.close());
  EXPECT_EQ(numbers(), std::vector<int>{});
}

}  // namespace
}  // namespace troupe::actors
