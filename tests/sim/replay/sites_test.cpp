// Runs whose members share no memory. The plan has the rounding on the wire and the order of the sums, so the replay reaches
// every hash.
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "strategies/registry/registry.hpp"
#include "tests/sim/replay/replayed.hpp"

namespace troupe::tests {
namespace {

using Options = std::vector<std::string>;

Options sites_options_of(const std::string& strategy, int workers, const Options& more) {
  Options options{"strategy.name=" + strategy,
                  "cluster.workers=" + std::to_string(workers),
                  "cluster.servers=2",
                  "exchange.endpoint=inproc",
                  "data.train_samples=480",
                  "data.test_samples=40",
                  "run.checkpoint_every=9 steps",
                  "train.lr=0.01"};
  if (strategy == "eamsgd") options.emplace_back("train.optimizer=nesterov");
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

void expect_same_of_sites(const SmallRun& run, const experiment::RunEnd& end) {
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto report = replayed(run);
  ASSERT_TRUE(report) << report.error().message;
  expect_whole(*report, end);
  EXPECT_EQ(report->summary.test_accuracy, end.summary.test_accuracy);
  const bool all_there = std::filesystem::exists(run.run_directory() / "journal-0001.bin");
  if (all_there) {
    EXPECT_EQ(report->summary.exchange_bytes, end.summary.exchange_bytes);
  }
}

void expect_same_of_sites(const Options& options) {
  SmallRun run(options);
  const auto end = run.train();
  expect_same_of_sites(run, end);
}

struct Way {
  std::string name;
  Options options;
};

class ReplayEveryWay : public testing::TestWithParam<Way> {};

TEST_P(ReplayEveryWay, ReachesEveryHashOfEveryStrategy) {
  for (const auto& row : strategies::registry()) {
    for (const int workers : {2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << row.name << " with " << workers);
      expect_same_of_sites(sites_options_of(row.name, workers, GetParam().options));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , ReplayEveryWay,
    testing::Values(Way{"asa", {}}, Way{"fp16", {"exchange.wire=fp16"}}, Way{"bf16", {"exchange.wire=bf16"}},
                    Way{"asa16", {"exchange.algorithm=asa16"}}, Way{"ring", {"exchange.algorithm=ring"}},
                    Way{"shm", {"exchange.algorithm=shm"}},
                    Way{"ring_bf16", {"exchange.algorithm=ring", "exchange.wire=bf16"}},
                    Way{"fp16_dedicated", {"exchange.wire=fp16", "cluster.server_placement=dedicated"}},
                    Way{"bf16_colocated", {"exchange.wire=bf16", "cluster.server_placement=colocated"}}),
    [](const auto& info) { return info.param.name; });

/// Sums within hosts, then between them: two hosts that alternate, and one host among single workers.
TEST(ReplayOverHosts, ReachesEveryHashOfEveryStrategy) {
  const std::vector<std::vector<std::uint32_t>> hosts{{0, 0, 1}, {0, 0, 1, 0}, {0, 0, 1, 0, 1}, {0, 7, 3, 3, 3}};
  for (const auto& row : strategies::registry()) {
    for (const auto& of_sites : hosts) {
      SCOPED_TRACE(testing::Message() << row.name << " on " << testing::PrintToString(of_sites));
      const auto workers = static_cast<int>(of_sites.size()) - 1;
      SmallRun run(sites_options_of(row.name, workers, {"exchange.algorithm=hierarchical"}));
      const auto end = run.train_on_hosts(of_sites);
      expect_same_of_sites(run, end);
    }
  }
}

/// The padding in the arenas of this run's workers.
std::size_t padding(const SmallRun& run) {
  const auto spec = experiment::build_run_spec(*run.settings(), true).value();
  core::HostAllocator memory;
  const auto replica = backend().compile(*spec.graph, {.batch = spec.settings->batch(0), .arenas = &memory}).value();
  return replica->layout()->arena_floats() - replica->layout()->canonical_floats();
}

/// Twelve channels take the room of sixteen in memory. The padding does not travel, so slices are cut at other places.
TEST(ReplayOverSites, ReachesEveryHashWithoutThePaddingOfArenas) {
  for (const std::string strategy : {"bsp", "easgd", "downpour", "gossip", "mixed", "diloco"}) {
    for (const std::string way : {"exchange.algorithm=ring", "exchange.algorithm=asa16", "exchange.wire=bf16"}) {
      SCOPED_TRACE(strategy + " " + way);
      SmallRun run(sites_options_of(
          strategy, 3,
          {way, "exchange.endpoint=tcp", "data.train_samples=240", "model.name=own",
           R"(model.layers=[{type="conv2d", outputs=12, kernel=5}, {type="pool", kernel=4},)"
           R"( {type="conv2d", outputs=20, kernel=3}, {type="flatten"}, {type="linear", outputs=10}])"}));
      ASSERT_GT(padding(run), 64U);
      const auto end = run.train();
      expect_same_of_sites(run, end);
      const auto plan = nlohmann::json::parse(std::ifstream(run.run_directory() / "plan.json"));
      EXPECT_TRUE(plan.at("exchange").at("packed").get<bool>());
    }
  }
}

TEST(ReplayOverSites, EachSessionHasItsOwnPlan) {
  SmallRun run(sites_options_of("easgd", 3, {"exchange.wire=fp16"}));
  ASSERT_FALSE(run.train().failed);
  experiment::RunEnd end;
  int epochs = 2;
  for (const Options& changes :
       {Options{"exchange.wire=bf16", "cluster.server_placement=dedicated"}, Options{"exchange.wire=fp32"},
        Options{"exchange.endpoint=auto"}, Options{"exchange.endpoint=inproc", "exchange.algorithm=ring"}}) {
    auto all = changes;
    all.push_back("run.epochs=" + std::to_string(epochs++));
    end = run.resume(all);
    ASSERT_FALSE(end.failed) << end.error.message;
  }
  expect_same_of_sites(run, end);
}

TEST(ReplayOverSites, SegmentsOfABoundedJournalReachEveryHash) {
  for (const std::string strategy : {"easgd", "gossip", "bsp"}) {
    SCOPED_TRACE(strategy);
    const auto [run, end] = train_bounded(sites_options_of(
        strategy, 3, {"exchange.wire=bf16", "run.journal=60 KB", "run.epochs=12", "model.widths=[4]"}));
    expect_same_of_sites(*run, end);
    EXPECT_GE(replayed(*run)->segments.size(), 2U);
  }
}

/// Every snapshot and every segment has all peer messages: the coordinator adds up their shares and ends the run if the sum is not one.
TEST(ReplayOverSites, PeerMessagesBetweenWorkersAreInEverySegment) {
  for (const std::string endpoint : {"inproc", "shm", "tcp"}) {
    for (const std::string seed : {"1", "2", "3"}) {
      SCOPED_TRACE(endpoint + ", seed " + seed);
      auto options = sites_options_of("gossip", 4,
                                      {"strategy.p=0.9", "run.seed=" + seed, "cluster.slowdown=[1, 3, 1, 2]",
                                       "run.journal=30 KB", "run.epochs=6", "model.widths=[4]"});
      options.push_back("exchange.endpoint=" + endpoint);
      const auto [run, end] = train_bounded(options);
      ASSERT_FALSE(end.failed) << end.error.message;
      const auto report = replayed(*run);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_GE(report->segments.size(), 2U);
      expect_whole(*report, end);
    }
  }
}

TEST(ReplayOverSites, OtherNumbersTakeTheSameRoute) {
  SmallRun run(sites_options_of("easgd", 3, {"exchange.wire=bf16", "strategy.tau=2"}));
  const auto end = run.train();
  ASSERT_FALSE(end.failed) << end.error.message;
  const auto report = replayed(run, {"strategy.alpha=0.1"});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->segments.front().replayed, report->segments.front().events);
  EXPECT_NE(report->summary.center_hash, end.summary.center_hash);
}

/// A strategy declares which of its rules gave other bits in an older arithmetic (Needs::changed_arithmetic).
TEST(ReplayOverSites, AnOldArithmeticIsRefusedWhereTheRuleHasChanged) {
  for (const std::string combine : {"gradients", "updates", "weights"}) {
    SmallRun run(sites_options_of("bsp", 3, {"strategy.combine=" + combine}));
    ASSERT_FALSE(run.train().failed);
    change_plan(run, [](auto& plan) { plan["arithmetic"] = 1; });
    const auto report = replayed(run);
    EXPECT_EQ(report.has_value(), combine != "weights") << combine;
    if (report) continue;
    EXPECT_EQ(report.error().code, core::Errc::config);
    EXPECT_NE(report.error().message.find(": recorded by version 0.1, whose strategy.combine = \"weights\" comes to "
                                          "other bits than this program's: replay it with that version"),
              std::string::npos)
        << report.error().message;
    EXPECT_TRUE(replayed(run, {"train.lr=0.005"})) << "other numbers have no bits to reach";
  }
}

/// The plan as another choice of the session would make it.
class AnotherPlan : public testing::Test {
 protected:
  AnotherPlan() : run_(sites_options_of("bsp", 3, {})) {
    if (const auto end = run_.train(); end.failed) throw std::runtime_error(end.error.message);
  }
  void write(const std::function<void(nlohmann::json&)>& change) const {
    change_plan(run_, [&](nlohmann::json& plan) { change(plan.at("exchange")); });
  }

  SmallRun run_;
};

TEST_F(AnotherPlan, PlanThatRoundsElsewhereDiverges) {
  write([](auto& exchange) { exchange["reductions"] = {{{"algorithm", "asa16"}}}; });
  const auto report = replayed(run_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::Errc::diverged) << report.error().message;
}

TEST_F(AnotherPlan, AlgorithmIsChosenByTheFloatsThatTravel) {
  write([](auto& exchange) {
    exchange["reductions"] = {{{"algorithm", "asa16"}, {"up_to_floats", 8}}, {{"algorithm", "asa"}}};
  });
  EXPECT_TRUE(replayed(run_)) << "no vector has eight floats";
  write([](auto& exchange) {
    exchange["reductions"] = {{{"algorithm", "asa16"}, {"up_to_floats", 1 << 20}}, {{"algorithm", "asa"}}};
  });
  EXPECT_FALSE(replayed(run_)) << "all are shorter";
}

TEST_F(AnotherPlan, TheLibrarysSumsAreRefusedInOneLine) {
  write([](auto& exchange) { exchange["reductions"] = {{{"algorithm", "ar"}}}; });
  const auto report = replayed(run_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::Errc::config);
  EXPECT_NE(report.error().message.find("exchange.algorithm = \"ar\""), std::string::npos) << report.error().message;
  EXPECT_EQ(report.error().message.find('\n'), std::string::npos);
  const auto other = replayed(run_, {"train.lr=0.005"});
  EXPECT_TRUE(other) << "other numbers have no bits to reach: " << other.error().message;
}

TEST_F(AnotherPlan, PlanOfOtherMembersIsCorrupt) {
  write([](auto& exchange) { exchange["worker_sites"] = {1, 2}; });
  const auto report = replayed(run_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, core::Errc::corrupt);
  EXPECT_NE(report.error().message.find("2 workers"), std::string::npos) << report.error().message;
}

}  // namespace
}  // namespace troupe::tests
