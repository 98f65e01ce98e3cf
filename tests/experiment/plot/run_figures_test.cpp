#include "experiment/plot/run_figures.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::plot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunRecord run_of(const std::string& label) {
  RunRecord run;
  run.label = label;
  run.epochs = {{1, 2.5, 2.0, 1.0, 0.5, 0.6}, {2, 5, 0.2, 0.1, 0.9, 0.95}};
  return run;
}

TEST(CurvesTest, ShowEveryRunOverEpochsAndSeconds) {
  const auto figures = curves({run_of("one"), run_of("two")}, "");
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "loss");
  // Training of both runs, then their evaluations: epochs, seconds, value, deviation.
  const std::string train = "1 2.5 2 0\n2 5 0.2 0\n\n\n", test = "1 2.5 1 0\n2 5 0.1 0\n\n\n";
  EXPECT_EQ(figures[0].data.at("loss.dat"), train + train + test + test);
  EXPECT_THAT(figures[0].script, HasSubstr("logscale y"));  // from 2 to 0.1
  EXPECT_EQ(figures[1].data.at("accuracy.dat").substr(0, 11), "1 2.5 50 0\n");
  EXPECT_THAT(figures[0].script, HasSubstr("set ylabel 'loss'"));
  EXPECT_THAT(figures[0].script, HasSubstr("2 runs"));
  EXPECT_THAT(figures[1].script, Not(HasSubstr("set logscale y")));
  for (const char* part : {"title 'one'", "title 'two'", "epochs", "training time [s]", "accuracy [%]"})
    EXPECT_THAT(figures[1].script, HasSubstr(part));
}

TEST(CurvesTest, ValidationIsADashedLineAndTestsWithinEpochsArePoints) {
  auto run = run_of("one");
  run.validation = {{0.5, 1, 1.5, 0.25}, {1.5, 4, 0.75, 0.5}};
  run.test = {{1.5, 4, 0.5, 0.75}};
  const auto figures = curves({run}, "one");
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].data.at("loss.dat"),
            "1 2.5 2 0\n2 5 0.2 0\n\n\n0.5 1 1.5 0\n1.5 4 0.75 0\n\n\n1 2.5 1 0\n1.5 4 0.5 0\n2 5 0.1 0\n\n\n");
  EXPECT_THAT(figures[1].data.at("accuracy.dat"), HasSubstr("0.5 1 25 0\n1.5 4 50 0\n"));
  EXPECT_THAT(figures[0].script, HasSubstr("dashed: on the validation split"));
  EXPECT_THAT(figures[0].script, HasSubstr("index 1 using 1:3 with lines lw 2.5 lc rgb '"));
  EXPECT_THAT(curves({run_of("one")}, "one")[0].script, Not(HasSubstr("validation")));
}

TEST(CurvesTest, RunsWithoutAnEvaluationOrAStepHaveNone) {
  EXPECT_THAT(curves({RunRecord{}}, ""), IsEmpty());
  EXPECT_FALSE(has_curves(RunRecord{}));
  const auto figures = curves({RunRecord{}, run_of("one"), run_of("two")}, "");
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_THAT(figures[0].script, HasSubstr("2 runs")) << "as many as there are curves";
}

TEST(CurvesTest, LossesWithinTheFirstEpochAreDrawnBeforeAnyEvaluation) {
  RunRecord run;
  run.label = "one";
  run.training = {{0.25, 1, 100, 2.0, 0.2}, {0.5, 2, 100, 1.0, 0.6}};
  EXPECT_TRUE(has_curves(run));
  const auto figures = curves({run}, "one");
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].data.at("loss.dat"), "0.25 1 2 0\n0.5 2 1 0\n\n\n");
  EXPECT_EQ(figures[1].data.at("accuracy.dat"), "0.25 1 20 0\n0.5 2 60 0\n\n\n");
}

TEST(CurvesTest, OneEpochIsDrawnAsAPoint) {
  RunRecord run;
  run.label = "one";
  run.epochs = {{1, 4, 1.5, 0.5, 0.5, 0.9}};
  const auto loss = curves({run}, "one")[0];
  EXPECT_EQ(loss.data.at("loss.dat"), "1 4 1.5 0\n\n\n1 4 0.5 0\n\n\n");
  EXPECT_THAT(loss.script, Not(HasSubstr("with lines "))) << "a line of one point cannot be seen";
  EXPECT_THAT(loss.script, HasSubstr("set xrange [0:*]"));
}

TEST(CurvesTest, ManyReportsBecomeMeansWeightedBySamples) {
  RunRecord run;
  for (int k = 0; k < 1000; ++k)
    run.training.push_back({k / 999.0, 1.0 * k, k % 2 == 0 ? 30.0 : 10.0, 1.0 + k % 2, 0.5});
  const auto loss = curves({run}, "many")[0];
  const auto& data = loss.data.at("loss.dat");
  EXPECT_EQ(std::ranges::count(data, '\n'), 100 + 2);
  EXPECT_THAT(data, HasSubstr(" 1.25 0\n")) << "(30 · 1 + 10 · 2) / 40";
}

TEST(CurvesTest, DeviationsOverSeedsAreErrorBars) {
  auto one = run_of("a"), two = run_of("b");
  two.epochs[1].test_loss = 0.3;
  const auto loss = curves({average({one, two}, "easgd")}, "a grid")[0];
  EXPECT_THAT(loss.data.at("loss.dat"), HasSubstr("2 5 0.2 0.141421356\n"));  // of 0.1 and 0.3
  EXPECT_THAT(loss.script, HasSubstr("with yerrorbars"));
}

TEST(CurvesTest, CurvesTogetherAreOneFigure) {
  const auto figures = curves_together({run_of("one"), run_of("two")}, "compare", "");
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].name, "compare");
  EXPECT_THAT(figures[0].script, HasSubstr("set ylabel 'loss'"));
  EXPECT_THAT(figures[0].script, HasSubstr("set ylabel 'accuracy [%]'"));
  EXPECT_EQ(figures[0].data.size(), 2u);
}

TEST(ClusterFiguresTest, ShowsWaitsBetweenMembers) {
  RunRecord run = run_of("r");
  run.waits = Waits{2, 1, {{0, 1.5, 2}, {3, 0, 4}}};
  const auto figures = cluster_figures(run, "-x");
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].name, "waits-x");
  EXPECT_EQ(figures[0].data.at("waits-x.dat"), "0 0 NaN\n1 0 1.5\n2 0 2\n\n0 1 3\n1 1 NaN\n2 1 4\n\n");
  EXPECT_THAT(figures[0].script, HasSubstr("'worker 1' 1, 'server 0' 2"));
  EXPECT_THAT(figures[0].script, HasSubstr("set cbrange [0:4]"));
}

TEST(ClusterFiguresTest, ShortWaitsAreInMilliseconds) {
  RunRecord run = run_of("r");
  run.waits = Waits{2, 0, {{0, 0.0125}, {0.003, 0}}};
  const auto figures = cluster_figures(run, "");
  EXPECT_EQ(figures.at(0).data.at("waits.dat"), "0 0 NaN\n1 0 12.5\n\n0 1 3\n1 1 NaN\n\n");
  EXPECT_THAT(figures[0].script, HasSubstr("set cblabel 'milliseconds'"));
}

TEST(ClusterFiguresTest, ShowsSharesOfUpdatesByStaleness) {
  RunRecord run = run_of("r");
  run.staleness = Staleness{{0, 1, 2, 4, 8}, {{3, 0, 1, 0, 0}, {0, 0, 0, 0, 0}}};
  const auto figures = cluster_figures(run, "");
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].data.at("staleness.dat"), "\"0\" 75 0\n\"1\" 0 0\n\"2–3\" 25 0\n");
  run.staleness->workers.assign(20, {1, 0, 0, 0, 1});
  EXPECT_EQ(cluster_figures(run, "")[0].data.at("staleness.dat"),
            "\"0\" 50\n\"1\" 0\n\"2–3\" 0\n\"4–7\" 0\n\"≥ 8\" 50\n");
}

TEST(BinLabelTest, NamesItsRange) {
  const std::vector<double> edges{0, 1, 4, 16};
  std::vector<std::string> labels;
  for (std::size_t bin = 0; bin < 4; ++bin) labels.push_back(bin_label(edges, bin));
  EXPECT_THAT(labels, ElementsAre("0", "1–3", "4–15", "≥ 16"));
}

}  // namespace
}  // namespace troupe::plot
