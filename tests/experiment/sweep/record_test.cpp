#include "experiment/sweep/record.hpp"

#include <gtest/gtest.h>

#include "tests/experiment/sweep/spaces.hpp"
#include "tests/folder.hpp"

namespace troupe::sweep {
namespace {

Record sample() {
  Record record;
  record.file = "g.toml";
  record.metric = "test.accuracy";
  record.method = "tpe";
  record.schedule = "asha";
  record.rungs = {1, 3, 9};
  record.most_trials = 40;
  record.elapsed_s = 12.5;
  record.state = "running";
  record.parameters = conditional_space().parameters();
  record.trials.push_back({.trial = 0,
                           .name = "0-bsp",
                           .settings = {{"train.lr", "0.05"}, {"strategy.name", "\"bsp\""}},
                           .scores = {0.5, std::nullopt},
                           .training_to = std::nullopt,
                           .status = "diverged",
                           .directory = "runs/g/1",
                           .scored_s = {1, 3}});
  record.trials.push_back({.trial = 1,
                           .name = "1-easgd",
                           .settings = {{"train.lr", "0.1"}, {"strategy.name", "\"easgd\""}, {"strategy.tau", "4"}},
                           .scores = {0.75},
                           .training_to = 3,
                           .status = "running",
                           .directory = "",
                           .scored_s = {2}});
  record.ranking = {0, 1};
  return record;
}

TEST(Record, IsReadBackAsItWasWritten) {
  for (const bool with_importance : {false, true}) {
    auto record = sample();
    if (with_importance) record.importance = {0.5, 0.25, 0.25};
    const auto text = to_json(record).dump();
    const auto read = parse_record(text, "sweep.json");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(to_json(*read).dump(), text);
    EXPECT_EQ(read->trials[1].settings, record.trials[1].settings);
  }
}

/// Trial 0 was trained to 3 epochs, trial 1 to 1; it trains to 3 now.
TEST(Record, CountsEpochsOnce) {
  EXPECT_EQ(epochs_trained(sample()), 4);
  EXPECT_FALSE(score_of(sample().trials[0])) << "diverged";
  EXPECT_EQ(score_of(sample().trials[1]), 0.75);
}

/// Trial 0 diverged in its second epoch.
TEST(Record, ADivergedTrialCountsWithWhatItHasTrained) {
  auto record = sample();
  record.trials[0].diverged_after = 1.25;
  EXPECT_EQ(epochs_trained(record), 2.25);
  EXPECT_EQ(history(record)[2].epochs, 2.25);
  auto json = to_json(record);
  EXPECT_EQ(parse_record(json.dump(), "x")->trials[0].diverged_after, 1.25);
  json["trials"][0].erase("diverged_after");
  EXPECT_FALSE(parse_record(json.dump(), "x").value().trials[0].diverged_after) << "records had no such key before";
}

/// Trial 0 reached 1 epoch after 1 s, trial 1 the same after 2 s, and trial 0 two more after 3 s, where it diverged.
TEST(Record, TheHistoryIsInTheOrderOfTimeWithTheBestSoFar) {
  const auto all = history(sample());
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].trial, 0U);
  EXPECT_EQ(all[1].trial, 1U);
  EXPECT_EQ(all[2].rung, 1U);
  EXPECT_EQ(all[0].epochs, 1);
  EXPECT_EQ(all[1].epochs, 2);
  EXPECT_EQ(all[2].epochs, 4);
  EXPECT_EQ(all[0].best, 0.5);
  EXPECT_EQ(all[1].best, 0.75);
  EXPECT_EQ(all[2].best, 0.75);
}

TEST(Record, ABudgetOfEpochsIsReadWhereThereIsOne) {
  auto record = sample();
  record.most_epochs = 200;
  auto json = to_json(record);
  EXPECT_EQ(json["most_epochs"], 200);
  EXPECT_EQ(parse_record(json.dump(), "x")->most_epochs, 200);
  EXPECT_TRUE(to_json(sample())["most_epochs"].is_null());
  json.erase("most_epochs");
  const auto older = parse_record(json.dump(), "x");
  ASSERT_TRUE(older) << "records had no such key before";
  EXPECT_EQ(older->most_epochs, 0);
}

TEST(Record, ADamagedOneIsRefused) {
  const auto text = to_json(sample()).dump();
  for (std::size_t length = 0; length < text.size(); length += 7)
    EXPECT_EQ(parse_record(text.substr(0, length), "x").error().code, core::Errc::corrupt) << length;
  auto json = to_json(sample());
  const auto refused = [](const nlohmann::ordered_json& changed) {
    return !parse_record(changed.dump(), "x").has_value();
  };
  auto changed = json;
  changed["ranking"] = {7};
  EXPECT_TRUE(refused(changed));
  changed = json;
  changed["parameters"][2]["depends_on"] = 2;
  EXPECT_TRUE(refused(changed));
  changed["parameters"][2]["depends_on"] = 0;  // a number, no choice
  EXPECT_TRUE(refused(changed));
  changed = json;
  changed["trials"][0]["scores"] = {1, 2, 3, 4};
  EXPECT_TRUE(refused(changed));
  changed = json;
  changed["importance"] = {1};
  EXPECT_TRUE(refused(changed));
  changed = json;
  changed["parameters"][0]["low"] = 0;  // of a logarithmic scale
  EXPECT_TRUE(refused(changed));
}

TEST(Record, ADirectoryWithoutOneIsNoSweep) {
  const tests::Folder folder;
  EXPECT_FALSE(read_record(folder.path()).value());
  folder.write(kRecordFile, to_json(sample()).dump());
  EXPECT_EQ(read_record(folder.path()).value()->trials.size(), 2U);
  folder.write(kRecordFile, "{");
  EXPECT_FALSE(read_record(folder.path()));
}

}  // namespace
}  // namespace troupe::sweep
