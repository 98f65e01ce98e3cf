#include "store/metrics_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/run_folders.hpp"

namespace troupe::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string worker_line(int rank, int samples, double busy_s, double loss) {
  return fmt::format(
      R"({{"kind":"worker","t":1,"worker":{},"samples":{},"compute_s":{},"exchange_s":0.5,"wait_s":0,"load_s":0,"recent":{{"samples":10,"loss":{},"accuracy":null}}}})"
      "\n",
      rank, samples, busy_s, loss);
}

std::vector<std::string> texts_of(const NewPoints& found, std::string_view series) {
  std::vector<std::string> texts;
  for (const auto& point : found.points)
    if (point.series == series) texts.push_back(fmt::format("{} {} {}", point.epoch, point.seconds, point.value));
  return texts;
}

TEST(MetricsReaderTest, EpochsBecomePoints) {
  MetricsReader reader;
  const auto found = reader.read(started_line() + epoch_line(1, 0.5) + epoch_line(2, 0.75));
  EXPECT_THAT(texts_of(found, "test.accuracy"), ElementsAre("1 2 0.5", "2 4 0.75"));
  EXPECT_THAT(texts_of(found, "lr"), ElementsAre("1 2 0.05", "2 4 0.05"));
  EXPECT_THAT(texts_of(found, "test.top5"), IsEmpty()) << "it is null";
  EXPECT_EQ(reader.so_far()["test"]["accuracy"], 0.75);
  EXPECT_EQ(reader.so_far()["steps"], 20);
  EXPECT_EQ(reader.outcome(), "");
}

std::string evaluation_line(std::string_view split, double epoch, double loss, double accuracy) {
  return fmt::format(
      R"({{"kind":"evaluation","t":1,"split":"{}","epoch":{},"steps":{},"loss":{},"accuracy":{},"top5":null,"lr":0.05,"train_s":{}}})"
      "\n",
      split, epoch, 10 * epoch, loss, accuracy, 2 * epoch);
}

TEST(MetricsReaderTest, ARunWithoutEpochLinesHasTheResultsOfItsLastEvaluation) {
  MetricsReader reader;
  const auto found =
      reader.read(started_line() + evaluation_line("test", 0.5, 0.9, 0.25) + evaluation_line("test", 1.5, 0.7, 0.5));
  EXPECT_THAT(texts_of(found, "test.accuracy"), ElementsAre("0.5 1 0.25", "1.5 3 0.5"));
  EXPECT_EQ(reader.so_far()["epochs"], 1) << "those that are finished";
  EXPECT_EQ(reader.so_far()["steps"], 15);
  EXPECT_EQ(reader.so_far()["test"]["accuracy"], 0.5);
  EXPECT_EQ(reader.so_far()["test"]["loss"], 0.7);
  EXPECT_TRUE(reader.so_far()["test"]["top5"].is_null());
  EXPECT_FALSE(reader.so_far().contains("validation"));
}

TEST(MetricsReaderTest, TheBestEvaluationOnTheValidationSplitIsKept) {
  const auto lines = started_line() + evaluation_line("validation", 1, 0.9, 0.5) +
                     evaluation_line("validation", 2, 0.5, 0.75) + evaluation_line("validation", 3, 0.4, 0.6);
  MetricsReader reader;
  (void)reader.read(lines);
  EXPECT_EQ(reader.so_far()["validation"]["accuracy"], 0.6);
  EXPECT_EQ(reader.so_far()["validation"]["best"]["accuracy"], 0.75);
  EXPECT_EQ(reader.so_far()["validation"]["best"]["loss"], 0.5);
  EXPECT_EQ(reader.so_far()["validation"]["best"]["epoch"], 2);
  MetricsReader by_loss;
  (void)by_loss.read(lines, "loss");
  EXPECT_EQ(by_loss.so_far()["validation"]["best"]["epoch"], 3);
  (void)by_loss.read(started_line(2), "loss");
  EXPECT_FALSE(by_loss.so_far()["validation"].contains("best")) << "the run trains that epoch again";
  MetricsReader damaged(R"({"so_far":{"validation":7,"test":"x"}})");
  (void)damaged.read(evaluation_line("test", 1, 0.5, 0.5) + lines);
  EXPECT_EQ(damaged.so_far()["validation"]["best"]["accuracy"], 0.75);
}

TEST(MetricsReaderTest, StepsAreBetweenEpochs) {
  MetricsReader reader;
  // 100 samples are an epoch: 10 of worker 0, then 10 + 30 of both. The longest worker's time counts: 1 + 0.5 s, then 2 + 0.5 s.
  const auto found = reader.read(started_line() + worker_line(0, 10, 1, 0.9) + worker_line(1, 30, 2, 0.8));
  EXPECT_THAT(texts_of(found, "step.loss"), ElementsAre("0.1 1.5 0.9", "0.4 2.5 0.8"));
  EXPECT_THAT(texts_of(found, "step.accuracy"), IsEmpty());
}

TEST(MetricsReaderTest, DistancesBecomePointsAndUnknownKindsDoNot) {
  MetricsReader reader;
  auto measured = worker_line(0, 10, 1, 0.9);
  measured.replace(measured.find("\"accuracy\""), 0, "\"distance\":2.5,");
  const auto found =
      reader.read(started_line() + measured + R"({"kind":"member","t":1,"event":"lost","worker":1,"epoch":0.1})" +
                  "\n" + R"({"kind":"ledger","t":1,"useful":10})" + "\n" + worker_line(1, 30, 2, 0.8));
  EXPECT_THAT(texts_of(found, "step.distance"), ElementsAre("0.1 1.5 2.5"));
  EXPECT_THAT(texts_of(found, "step.loss"), ElementsAre("0.1 1.5 0.9", "0.4 2.5 0.8"));
  EXPECT_EQ(reader.bad_lines(), 0);
}

TEST(MetricsReaderTest, AResumeTakesBackWhatItTrainsAgain) {
  MetricsReader reader;
  const auto first = reader.read(started_line() + epoch_line(1, 0.5) + worker_line(0, 150, 1, 0.9));
  EXPECT_NEAR(first.kept, 0, 1e-6) << "a run that begins has nothing before it";
  const auto second = reader.read(started_line(1) + worker_line(0, 20, 1, 0.7));
  EXPECT_NEAR(second.kept, 1, 1e-6);
  // One epoch was done after 2 s; this session has trained 20 of 100 samples in 1 + 0.5 s.
  EXPECT_THAT(texts_of(second, "step.loss"), ElementsAre("1.2 3.5 0.7"));
  EXPECT_EQ(reader.sessions(), 2);
  // The same in one piece: the point at 1.5 epochs is gone.
  MetricsReader at_once;
  const auto all = at_once.read(started_line() + epoch_line(1, 0.5) + worker_line(0, 150, 1, 0.9) + started_line(1));
  EXPECT_THAT(texts_of(all, "step.loss"), IsEmpty());
  EXPECT_THAT(texts_of(all, "test.accuracy"), ElementsAre("1 2 0.5"));
}

std::string resumed_line(double position, std::string_view more) {
  auto line = started_line(position);
  return line.replace(line.find("\"epoch_samples\""), 0, more);
}

// The first session trained half an epoch, and no epoch was evaluated.
TEST(MetricsReaderTest, AResumeBeginsAtItsTrainingTime) {
  const auto first = started_line() + worker_line(0, 25, 1, 0.9) + worker_line(0, 50, 3, 0.8);
  MetricsReader reader;
  (void)reader.read(first);
  const auto found =
      reader.read(resumed_line(0.5, R"("steps":5,"samples":50,"train_s":3.25,)") + worker_line(0, 10, 1, 0.7));
  EXPECT_THAT(texts_of(found, "step.loss"), ElementsAre("0.6 4.75 0.7"));
  MetricsReader of_older;
  (void)of_older.read(first);
  EXPECT_THAT(texts_of(of_older.read(started_line(0.5) + worker_line(0, 10, 1, 0.7)), "step.loss"),
              ElementsAre("0.6 5 0.7"))
      << "the last point that is kept is at 3.5 s";
  EXPECT_THAT(texts_of(of_older.read(started_line(0.25) + worker_line(0, 10, 1, 0.7)), "step.loss"),
              ElementsAre("0.35 3 0.7"))
      << "the checkpoint is that at 1.5 s";
}

TEST(MetricsReaderTest, AResumeBeforeALaterEpochsEndDoesNotCountItsTime) {
  MetricsReader reader;
  (void)reader.read(started_line() + epoch_line(1, 0.5) + epoch_line(2, 0.6));
  EXPECT_THAT(texts_of(reader.read(started_line(1) + worker_line(0, 20, 1, 0.7)), "step.loss"),
              ElementsAre("1.2 3.5 0.7"))
      << "epoch 1 ended after 2 s";
}

std::string ledger_line(int epoch, int done, int given_up) {
  return fmt::format(
      R"({{"kind":"ledger","t":1,"epoch":{},"size":100,"done":{},"given_up":{},"leased":0,"free":0,"omitted":0}})"
      "\n",
      epoch, done, given_up);
}

// Of each five steps one is passed over: 80 computed samples are an epoch of 100.
TEST(MetricsReaderTest, StepsAreWhereTheLedgerSays) {
  MetricsReader reader;
  auto found = reader.read(started_line() + worker_line(0, 20, 1, 0.9) + ledger_line(0, 20, 5) +
                           worker_line(0, 30, 2, 0.8) + worker_line(0, 400, 3, 0.7));
  EXPECT_THAT(texts_of(found, "step.loss"), ElementsAre("0.2 1.5 0.9", "0.375 2.5 0.8", "3 3.5 0.7"))
      << "a run has no more than its epochs";
  // 128 samples are computed for each epoch, of which the evaluation tells.
  auto evaluated = epoch_line(1, 0.5);
  evaluated.replace(evaluated.find("\"lr\""), 0, R"("samples":256,)");
  found = MetricsReader().read(resumed_line(0, R"("steps":1,"samples":128,"train_s":0,)") +
                               worker_line(0, 128, 1, 0.9) + evaluated + worker_line(0, 192, 2, 0.8));
  EXPECT_THAT(texts_of(found, "step.loss"), ElementsAre("1.28 1.5 0.9", "1.5 2.5 0.8"));
}

TEST(MetricsReaderTest, ContinuesFromItsStateAtAnyLine) {
  const std::vector<std::string> lines{started_line(),
                                       worker_line(0, 10, 1, 0.9),
                                       worker_line(1, 30, 2, 0.8),
                                       ledger_line(0, 20, 40),
                                       worker_line(1, 40, 2, 0.8),
                                       epoch_line(1, 0.5),
                                       ended_line("interrupted"),
                                       started_line(1),
                                       worker_line(0, 5, 1, 0.6),
                                       epoch_line(2, 0.75),
                                       ended_line()};
  std::string text;
  for (const auto& line : lines) text += line;
  MetricsReader whole;
  const auto expected = whole.read(text).points.size();
  for (std::size_t cut = 0; cut <= lines.size(); ++cut) {
    std::string before, after;
    for (std::size_t i = 0; i < lines.size(); ++i) (i < cut ? before : after) += lines[i];
    MetricsReader first;
    auto points = first.read(before).points.size();
    MetricsReader second(first.state());
    points += second.read(after).points.size();
    EXPECT_EQ(second.state(), whole.state()) << cut;
    EXPECT_EQ(points, expected) << cut;
  }
}

TEST(MetricsReaderTest, WhatIsNoStateOfItsIsABeginning) {
  const auto fresh = MetricsReader().state();
  for (const char* state : {"", "nonsense", "[1]", R"({"sessions":"x"})", R"({"outcome":7})", R"({"workers":[1]})",
                            R"({"workers":[[1,2]]})", R"({"sessions":3,"workers":{"a":1}})", R"({"so_far":[]})",
                            R"({"position":[]})", R"({"position":7})", R"({"marks":[1]})", R"({"error":{}})"}) {
    MetricsReader reader{std::string_view(state)};
    EXPECT_EQ(reader.state(), fresh) << state;
    (void)reader.read(started_line() + epoch_line(1, 0.5));
    EXPECT_EQ(reader.so_far()["steps"], 10) << state;
  }
}

TEST(MetricsReaderTest, EndsSayHow) {
  MetricsReader reader;
  (void)reader.read(started_line() + ended_line("diverged"));
  EXPECT_EQ(reader.outcome(), "diverged");
  EXPECT_EQ(reader.error(), "it broke");
  (void)reader.read(started_line(1));
  EXPECT_EQ(reader.outcome(), "") << "it goes on";
  (void)reader.read(ended_line());
  EXPECT_EQ(reader.outcome(), "done");
}

TEST(MetricsReaderTest, WhatIsNoLineOfItsIsCountedOrIgnored) {
  MetricsReader reader;
  const auto found = reader.read(
      "nonsense\n[1]\n\n{}\n{\"kind\":7}\n{\"kind\":\"epoch\",\"epoch\":\"x\",\"test\":[],\"train\":3}\n"
      "{\"kind\":\"worker\",\"worker\":-1,\"recent\":5}\n{\"kind\":\"ended\",\"error\":{\"code\":5}}\n"
      "{\"kind\":\"started\",\"workers\":{}}\n");
  EXPECT_EQ(reader.bad_lines(), 2);
  EXPECT_THAT(found.points, IsEmpty());
}

}  // namespace
}  // namespace troupe::store
