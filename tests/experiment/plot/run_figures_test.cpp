#include "experiment/plot/run_figures.hpp"

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
  const auto figures = curves({run_of("one"), run_of("two")}, "both");
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "loss");
  EXPECT_EQ(figures[0].data.at("loss.dat"), "1 2.5 2 1\n2 5 0.2 0.1\n\n\n1 2.5 2 1\n2 5 0.2 0.1\n\n\n");
  EXPECT_THAT(figures[0].script, HasSubstr("logscale y"));  // from 2 to 0.1
  EXPECT_EQ(figures[1].data.at("accuracy.dat").substr(0, 12), "1 2.5 50 60\n");
  EXPECT_THAT(figures[1].script, Not(HasSubstr("logscale")));
  for (const char* part : {"title 'one'", "title 'two'", "epochs", "training time [s]", "accuracy [%]"})
    EXPECT_THAT(figures[1].script, HasSubstr(part));
}

TEST(CurvesTest, RunsWithoutAnEvaluationHaveNone) {
  EXPECT_THAT(curves({RunRecord{}}, ""), IsEmpty());
  EXPECT_EQ(curves({RunRecord{}, run_of("one")}, "").size(), 2u);
}

TEST(ClusterFiguresTest, ShowsWaitsBetweenMembers) {
  RunRecord run = run_of("r");
  run.waits = Waits{2, 1, {{0, 1.5, 2}, {3, 0, 4}}};
  const auto figures = cluster_figures(run, "-x");
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].name, "waits-x");
  EXPECT_EQ(figures[0].data.at("waits-x.dat"), "0 0 NaN\n1 0 1.5\n2 0 2\n\n0 1 3\n1 1 NaN\n2 1 4\n\n");
  EXPECT_THAT(figures[0].script, HasSubstr("'worker 1' 1, 'server 0' 2"));
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
