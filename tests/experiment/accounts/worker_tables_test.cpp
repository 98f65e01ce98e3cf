#include "experiment/accounts/worker_tables.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "experiment/summary.hpp"

namespace troupe::experiment {
namespace {

TEST(WorkerTablesTest, OfFewMembersEachLineHasThem) {
  WorkerTables tables(5);
  for (const double at : {0.0, 0.0, 0.125, 0.126}) EXPECT_TRUE(tables.due(0, at)) << at;
}

TEST(WorkerTablesTest, OfManyMembersFewLinesHaveThem) {
  WorkerTables tables(505);  // every 10 s
  int with = 0;
  for (int tick = 0; tick < 600; ++tick) with += tables.due(3, tick / 10.0) ? 1 : 0;
  EXPECT_EQ(with, 6) << "in a minute, of 600 lines";
}

TEST(WorkerTablesTest, WorkersHaveTurnsOfTheirOwn) {
  WorkerTables tables(55);  // every second
  EXPECT_TRUE(tables.due(0, 0));
  EXPECT_TRUE(tables.due(1, 0.5)) << "its first";
  EXPECT_TRUE(tables.due(0, 1));
  EXPECT_FALSE(tables.due(1, 1));
  EXPECT_TRUE(tables.due(1, 1.5));
}

TEST(WorkerTablesTest, ALineWithoutThemHasAllElse) {
  WorkerProgress progress{.worker = 1, .steps = 2, .samples = 8, .recent_samples = 1};
  progress.waits = {0, 0.5};
  progress.traffic = {{Purpose::push, 0, 8}};
  auto with = nlohmann::json::parse(to_json(progress, 1));
  EXPECT_EQ(with["waits"], nlohmann::json({0, 0.5}));
  const auto without = nlohmann::json::parse(to_json(progress, 1, false));
  with.erase("waits");
  with.erase("traffic");
  EXPECT_EQ(without, with);
}

}  // namespace
}  // namespace troupe::experiment
