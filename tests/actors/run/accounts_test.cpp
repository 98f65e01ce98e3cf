// What whole runs of real actors account for: bytes by purpose, the distance from the centre, the ledger of samples.
#include <cmath>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "strategies/registry/registry.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::tests {
namespace {

using Json = nlohmann::json;
using Options = std::vector<std::string>;

std::vector<Json> lines(const SmallRun& run, const std::string& kind) {
  std::ifstream metrics(run.run_directory() / "metrics.jsonl");
  std::vector<Json> found;
  for (std::string line; std::getline(metrics, line);)
    if (auto json = Json::parse(line); json["kind"] == kind) found.push_back(std::move(json));
  return found;
}

/// Distances that workers reported, in order, with their ranks.
std::vector<std::pair<std::size_t, double>> distances_by_rank(const SmallRun& run) {
  std::vector<std::pair<std::size_t, double>> found;
  for (const auto& line : lines(run, "worker"))
    if (line["recent"].contains("distance")) found.emplace_back(line["worker"], line["recent"]["distance"]);
  return found;
}
std::vector<double> distances(const SmallRun& run) {
  std::vector<double> found;
  for (const auto& [rank, distance] : distances_by_rank(run)) found.push_back(distance);
  return found;
}

std::int64_t sum_of(const Json& ledger, std::initializer_list<const char*> keys) {
  std::int64_t sum = 0;
  for (const auto* key : keys) sum += ledger[key].get<std::int64_t>();
  return sum;
}

Options with(Options options, const Options& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

/// In one process, and over sites.
const std::vector<Options> kPlaces{{}, {"exchange.endpoint=inproc", "cluster.server_placement=dedicated"}};

TEST(Accounts, EveryStrategysBytesAreThoseOfItsLinksAndEverySampleIsInTheLedger) {
  std::set<std::string> measured, collective;
  for (const auto& row : strategies::registry()) {
    SCOPED_TRACE(row.name);
    SmallRun run({"strategy.name=" + row.name, "cluster.workers=3", "cluster.servers=2", "train.lr=0.03"});
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    EXPECT_GT(end.summary.exchange_bytes, 0U);
    for (const auto& worker : end.summary.per_worker) {
      EXPECT_EQ(experiment::total_bytes(worker.traffic), worker.bytes);
      for (const auto& row_of_bytes : worker.traffic)
        if (row_of_bytes.purpose == experiment::Purpose::collective) collective.insert(row.name);
    }
    const auto ledgers = lines(run, "ledger");
    ASSERT_FALSE(ledgers.empty());
    const auto& last = ledgers.back();
    EXPECT_EQ(last["size"], 1200);
    EXPECT_EQ(sum_of(last, {"done", "given_up", "leased", "free", "omitted"}), 1200);
    EXPECT_EQ(sum_of(last, {"leased", "free"}), 0);
    EXPECT_EQ(last["useful"], last["done"]);
    EXPECT_GE(last["computed"], last["useful"]);
    EXPECT_EQ(end.summary.ledger.useful, last["useful"]);
    EXPECT_GT(experiment::goodput(end.summary.ledger), 0);
    if (!distances(run).empty()) measured.insert(row.name);
  }
  EXPECT_EQ(measured, (std::set<std::string>{"diloco", "downpour", "eamsgd", "easgd", "local_sgd", "mixed", "ssp",
                                             "sync_easgd"}));
  EXPECT_TRUE(collective.contains("bsp") && collective.contains("mixed"));
}

/// One worker, one step, so that c is x before the step, and x − c the step itself: lr · ‖g‖ with the first step of momentum.
TEST(Accounts, TheDistanceOfTheFirstStepIsTheStep) {
  const std::vector<Options> ways{
      {"strategy.name=easgd", "strategy.tau=1"},
      {"strategy.name=easgd", "strategy.tau=1", "strategy.overlap=skip"},
      {"strategy.name=eamsgd", "strategy.tau=1", "train.optimizer=nesterov"},
      {"strategy.name=sync_easgd", "strategy.tau=1"},
      {"strategy.name=local_sgd", "strategy.tau=1"},
      {"strategy.name=diloco", "strategy.tau=1"},
      {"strategy.name=downpour", "strategy.n_push=2"},  // it pulls before it pushes
      {"strategy.name=downpour", "strategy.n_push=2", "strategy.overlap=skip"},
      {"strategy.name=mixed", "strategy.inner=downpour", "strategy.n_push=2", "strategy.group_size=1"}};
  for (const auto& way : ways)
    for (const auto& place : kPlaces) {
      SCOPED_TRACE(testing::PrintToString(with(way, place)));
      SmallRun run(
          with(with(way, place), {"cluster.workers=1", "cluster.servers=2", "data.train_samples=20", "train.lr=0.1"}));
      const auto end = run.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      const auto& worker = end.summary.per_worker[0];
      ASSERT_EQ(worker.steps, 1U);
      const auto found = distances(run);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_GT(found[0], 0);
      EXPECT_NEAR(found[0], 0.1 * worker.norm_max, 1e-3 * found[0]);
    }
}

/// The fragments of one round are sent at different steps; together they are a distance.
TEST(Accounts, FragmentsMakeOneDistance) {
  SmallRun run({"strategy.name=local_sgd", "strategy.tau=4", "strategy.fragments=2", "cluster.workers=1",
                "cluster.servers=2", "train.lr=0.03"});
  ASSERT_FALSE(run.train().failed);
  EXPECT_FALSE(distances(run).empty());
}

/// Two workers, one step each. With s = 0 both pull when both steps are in the centre: a worker is away from it by the other one's step,
/// lr · ‖g‖ of that worker.
TEST(Accounts, APullMeasuresTheStepOfTheOtherWorker) {
  for (const Options& way : {Options{}, {"strategy.overlap=wait"}})
    for (const auto& place : kPlaces) {
      SCOPED_TRACE(testing::PrintToString(with(way, place)));
      SmallRun run(with(with(way, place), {"strategy.name=ssp", "strategy.s=0", "cluster.workers=2",
                                           "cluster.servers=2", "data.train_samples=40", "train.lr=0.1"}));
      const auto end = run.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      const auto found = distances_by_rank(run);
      ASSERT_EQ(found.size(), 2U);
      for (const auto& [rank, distance] : found) {
        const auto& other = end.summary.per_worker[1 - rank];
        ASSERT_EQ(other.steps, 1U);
        EXPECT_NEAR(distance, 0.1 * other.norm_max, 1e-3 * distance);
      }
    }
}

/// A lone worker's pull finds what it has pushed before: it moves nothing.
TEST(Accounts, APullThatMovesNothingMeasuresZero) {
  for (const Options& way :
       {Options{"strategy.name=downpour"}, {"strategy.name=downpour", "strategy.overlap=skip"}, {"strategy.name=ssp"}})
    for (const auto& place : kPlaces) {
      SCOPED_TRACE(testing::PrintToString(with(way, place)));
      SmallRun run(
          with(with(way, place), {"cluster.workers=1", "cluster.servers=2", "data.train_samples=20", "train.lr=0.03"}));
      ASSERT_FALSE(run.train().failed);
      for (const double distance : distances(run)) EXPECT_NEAR(distance, 0, 1e-5);
    }
}

TEST(Accounts, EveryStrategyWithACentreMeasuresOverSitesToo) {
  std::set<std::string> measured;
  for (const auto& row : strategies::registry()) {
    SCOPED_TRACE(row.name);
    SmallRun run(
        with(kPlaces[1], {"strategy.name=" + row.name, "cluster.workers=3", "cluster.servers=2", "train.lr=0.03"}));
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    if (!distances(run).empty()) measured.insert(row.name);
  }
  EXPECT_EQ(measured, (std::set<std::string>{"diloco", "downpour", "eamsgd", "easgd", "local_sgd", "mixed", "ssp",
                                             "sync_easgd"}));
}

TEST(Accounts, AResumedRunsLedgerIsOfAllItsSessions) {
  SmallRun run({"strategy.name=easgd"});
  const auto first = run.train();
  ASSERT_FALSE(first.failed) << first.error.message;
  const auto second = run.resume({"run.epochs=3"});
  ASSERT_FALSE(second.failed) << second.error.message;
  const auto& before = first.summary.ledger;
  const auto& after = second.summary.ledger;
  EXPECT_EQ(before.useful, 1200U);
  EXPECT_EQ(after.useful, 3600U);
  EXPECT_EQ(after.computed, 3600U);
  EXPECT_EQ(after.rolled_back, 0U);
  EXPECT_GT(after.possible, before.possible);
  EXPECT_EQ(before.wall_s, first.summary.wall_s);
  EXPECT_EQ(after.wall_s, second.summary.wall_s);
  EXPECT_GT(after.wall_s, before.wall_s) << "with the last checkpoint of the first session";
}

/// The last session has no batch left to compute.
TEST(Accounts, TablesHaveTheMembersOfTheLastSessionAndSumsAreOfTheWholeRun) {
  SmallRun run({"strategy.name=sync_easgd", "strategy.tau=2", "cluster.workers=3", "cluster.servers=3"});
  auto before = run.train();
  ASSERT_FALSE(before.failed) << before.error.message;
  for (const Options& changes : {Options{"run.epochs=2", "cluster.workers=2", "cluster.servers=1"},
                                 {"run.epochs=3", "run.max_epochs=2", "cluster.workers=3", "cluster.servers=2"}}) {
    SCOPED_TRACE(testing::PrintToString(changes));
    const auto end = run.resume(changes);
    ASSERT_FALSE(end.failed) << end.error.message;
    const auto& summary = end.summary;
    ASSERT_EQ(summary.per_worker.size(), summary.workers);
    for (const auto& worker : summary.per_worker) {
      EXPECT_EQ(worker.waits.size(), summary.workers + summary.servers);
      EXPECT_EQ(worker.staleness.size(), before.summary.per_worker[0].staleness.size());
    }
    EXPECT_GE(summary.exchange_count, before.summary.exchange_count);
    EXPECT_GE(summary.exchange_bytes, before.summary.exchange_bytes);
    before = end;
  }
}

}  // namespace
}  // namespace troupe::tests
