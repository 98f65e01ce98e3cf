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

TEST(CurvesTest, OverSamplesRunsOfOtherDataSetsMeetWhereTheyHaveSeenEquallyMany) {
  auto small = run_of("small"), large = run_of("large");
  small.epoch_samples = 300;
  large.epoch_samples = 600;
  const auto loss = curves({small, large}, "", {Axis::samples})[0];
  // Epochs 1 and 2 of 300 samples, then of 600; training, then evaluations.
  EXPECT_EQ(loss.data.at("loss.dat"),
            "300 2 0\n600 0.2 0\n\n\n600 2 0\n1200 0.2 0\n\n\n300 1 0\n600 0.1 0\n\n\n600 1 0\n1200 0.1 0\n\n\n");
  EXPECT_THAT(loss.script, HasSubstr("set xlabel 'samples seen'\n"));
  EXPECT_THAT(loss.script, HasSubstr("index 2 using 1:2 with linespoints"));
  EXPECT_THAT(loss.script, Not(HasSubstr("epochs")));
  EXPECT_LT(loss.width, curves({small, large}, "")[0].width) << "one panel";
}

TEST(CurvesTest, ManySamplesAreInThousandsOrMillions) {
  auto run = run_of("one");
  run.epoch_samples = 60000;
  const auto thousands = curves({run}, "one", {Axis::samples, Axis::epochs})[1];
  EXPECT_THAT(thousands.data.at("accuracy.dat"), HasSubstr("60 1 60 0\n120 2 95 0\n"));
  EXPECT_THAT(thousands.script, HasSubstr("samples seen [thousands]"));
  run.epoch_samples = 1.5e6;
  const auto millions = curves({run}, "one", {Axis::samples})[1];
  EXPECT_THAT(millions.data.at("accuracy.dat"), HasSubstr("1.5 60 0\n3 95 0\n"));
  EXPECT_THAT(millions.script, HasSubstr("samples seen [millions]"));
}

TEST(CurvesTest, ARunThatDoesNotSayHowManySamplesAnEpochHasIsNotDrawnOverThem) {
  EXPECT_THAT(curves({run_of("one")}, "one", {Axis::samples})[0].data.at("loss.dat"), HasSubstr("NaN 1 0\n"));
}

TEST(CurvesTest, AnAccuracyThatIsZeroThroughoutWasNotMeasured) {
  auto run = run_of("one");
  run.training = {{0.5, 1, 100, 2.0, 0}, {1, 2, 100, 1.0, 0}};
  const auto accuracy = curves({run}, "one")[1];
  EXPECT_EQ(accuracy.data.at("accuracy.dat"), "1 2.5 60 0\n2 5 95 0\n\n\n") << "no training";
  EXPECT_THAT(accuracy.script, Not(HasSubstr("training)")));
  EXPECT_THAT(curves({run}, "one")[0].script, HasSubstr("thin lines: training)"));
  for (auto& epoch : run.epochs) epoch.test_accuracy = 0;
  const auto figures = curves({run}, "one");
  ASSERT_EQ(figures.size(), 1U);
  EXPECT_EQ(figures[0].name, "loss");
  run.test = {{0.5, 1, 3, 0.25}};
  EXPECT_EQ(curves({run}, "one").size(), 2U) << "it begins at 0, or falls to it";
}

TEST(AxisTest, NamesAreThoseOfTheAxes) {
  EXPECT_THAT(axis_names(), ElementsAre("epochs", "seconds", "samples"));
  EXPECT_EQ(axis_of("epochs"), Axis::epochs);
  EXPECT_EQ(axis_of("seconds"), Axis::seconds);
  EXPECT_EQ(axis_of("samples"), Axis::samples);
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

}  // namespace
}  // namespace troupe::plot
