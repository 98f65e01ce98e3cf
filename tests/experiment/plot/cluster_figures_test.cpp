#include "experiment/plot/cluster_figures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::plot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ClusterFiguresTest, ShowsWaitsBetweenMembers) {
  RunRecord run;
  run.waits = Waits{2, 1, {{0, 1.5, 2}, {3, 0, 4}}};
  const auto figures = cluster_figures(run, "-x");
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].name, "waits-x");
  EXPECT_EQ(figures[0].data.at("waits-x.dat"), "0 0 NaN\n1 0 1.5\n2 0 2\n\n0 1 3\n1 1 NaN\n2 1 4\n\n");
  EXPECT_THAT(figures[0].script, HasSubstr("'worker 1' 1, 'server 0' 2"));
  EXPECT_THAT(figures[0].script, HasSubstr("set cbrange [0:4]"));
}

TEST(ClusterFiguresTest, ShortWaitsAreInMilliseconds) {
  RunRecord run;
  run.waits = Waits{2, 0, {{0, 0.0125}, {0.003, 0}}};
  const auto figures = cluster_figures(run, "");
  EXPECT_EQ(figures.at(0).data.at("waits.dat"), "0 0 NaN\n1 0 12.5\n\n0 1 3\n1 1 NaN\n\n");
  EXPECT_THAT(figures[0].script, HasSubstr("set cblabel 'milliseconds'"));
}

TEST(ClusterFiguresTest, ShowsSharesOfUpdatesByStaleness) {
  RunRecord run;
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
