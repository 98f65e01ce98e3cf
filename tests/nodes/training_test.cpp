// Undisturbed runs over nodes: every strategy, every way vectors travel, resuming, and the output of `troupe nodes`.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "tests/nodes/nodes_fixture.hpp"
#include "tests/transport/tcp/certificates.hpp"

namespace troupe::nodes {
namespace {

using Training = NodesFixture;

const std::set<std::string> kWithoutCentre{"bsp", "gossip", "pairs"};

class EveryStrategy : public NodesFixture, public testing::WithParamInterface<const char*> {};

TEST_P(EveryStrategy, TrainsAndReplays) {
  start_nodes(2);
  const std::string strategy = GetParam();
  std::vector<std::string> settings{"strategy.name=" + strategy};
  if (strategy == "eamsgd") settings.emplace_back("train.optimizer=nesterov");
  Process run(train(with(settings)));
  ASSERT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(summary(run)["samples"], 2400);
  const bool measured = apps::contents(this->run() + "/metrics.jsonl").find("\"distance\":") != std::string::npos;
  EXPECT_EQ(measured, !kWithoutCentre.contains(strategy)) << "workers of other processes meet the centre, too";
  expect_replays(this->run());
}

INSTANTIATE_TEST_SUITE_P(, EveryStrategy,
                         testing::Values("bsp", "easgd", "eamsgd", "sync_easgd", "downpour", "ssp", "local_sgd",
                                         "diloco", "mixed", "gossip", "pairs"),
                         [](const auto& info) { return std::string(info.param); });

class Sums : public NodesFixture, public testing::WithParamInterface<const char*> {};

TEST_P(Sums, HaveTheBitsOfOneProcess) {
  start_nodes(2);
  const auto bsp = with({"strategy.name=bsp", std::string("exchange.algorithm=") + GetParam()});
  Process over(train(bsp));
  ASSERT_EQ(over.wait(), 0) << over.err();
  expect_replays(this->run());
  Process alone(program({"train", config_, "--set", "run.dir=" + folder_.file("here"), "--quiet", "--json", "--set",
                         "strategy.name=bsp"}));
  ASSERT_EQ(alone.wait(), 0) << alone.err();
  EXPECT_EQ(summary(over)["center_hash"], summary(alone)["center_hash"]);
}

INSTANTIATE_TEST_SUITE_P(, Sums, testing::Values("asa", "shm"),
                         [](const auto& info) { return std::string(info.param); });

struct Devices {
  std::string name;
  std::vector<std::string> settings;
  bool mapped = true;
};

class OnDevices : public NodesFixture, public testing::WithParamInterface<Devices> {};

/// Processes whose members exchange in the memory of devices: the host's stand-in, whose memory the host cannot read.
TEST_P(OnDevices, HaveTheBitsOfOneProcessResumeAndReplay) {
  start_nodes(2);
  auto settings = GetParam().settings;
  settings.insert(settings.end(), {"cluster.device=cuda_on_host", "strategy.name=bsp"});
  Process over(train(with(settings)));
  ASSERT_EQ(over.wait(), 0) << over.err();
  const auto note = GetParam().mapped ? "processes of one host map each other's device memory"
                                      : "processes do not map each other's device memory";
  EXPECT_NE(over.err().find(note), std::string::npos) << over.err();
  Process alone(program({"train", config_, "--set", "run.dir=" + folder_.file("here"), "--quiet", "--json", "--set",
                         "strategy.name=bsp", "--set", "cluster.device=cuda_on_host"}));
  ASSERT_EQ(alone.wait(), 0) << alone.err();
  EXPECT_EQ(summary(over)["center_hash"], summary(alone)["center_hash"]);
  expect_replays(this->run());
  Process again(resume(with({"run.epochs=3"})));  // the nodes fetch the checkpoint
  ASSERT_EQ(again.wait(), 0) << again.err();
  expect_replays(this->run());
}

INSTANTIATE_TEST_SUITE_P(
    , OnDevices,
    testing::Values(Devices{"shm", {"exchange.endpoint=shm"}}, Devices{"tcp", {"exchange.endpoint=tcp"}},
                    Devices{"shm_summed_in_place", {"exchange.endpoint=shm", "exchange.algorithm=shm"}},
                    Devices{"shm_staged", {"exchange.endpoint=shm", "exchange.map_devices=false"}, false},
                    Devices{"tcp_staged", {"exchange.endpoint=tcp", "exchange.map_devices=false"}, false}),
    [](const auto& info) { return info.param.name; });

/// Servers at site 0, workers in other processes: pairs and pushes work in the workers' own memory.
TEST_F(Training, AsynchronousRunsOnMappedDevicesReplay) {
  start_nodes(2);
  for (const char* strategy : {"easgd", "downpour", "gossip"}) {
    Process run(train(with({std::string("strategy.name=") + strategy, "cluster.device=cuda_on_host"})));
    ASSERT_EQ(run.wait(), 0) << strategy << ": " << run.err();
    EXPECT_NE(run.err().find("map each other's device memory"), std::string::npos) << run.err();
    expect_replays(summary(run)["run"]);
  }
}

/// Nodes get the weights from the coordinator: the checkpoint lies on its host alone.
TEST_F(Training, ARunFromACheckpointHasTheBitsOfOneProcess) {
  Process first(program({"train", config_, "--set", "run.dir=" + folder_.file("first"), "--quiet", "--json", "--set",
                         "strategy.name=bsp"}));
  ASSERT_EQ(first.wait(), 0) << first.err();
  const std::vector<std::string> init{"--init", summary(first)["run"], "--set", "strategy.name=bsp"};
  auto here = program({"train", config_, "--set", "run.dir=" + folder_.file("here"), "--quiet", "--json"});
  here.insert(here.end(), init.begin(), init.end());
  Process alone(here);
  ASSERT_EQ(alone.wait(), 0) << alone.err();
  EXPECT_NE(summary(alone)["center_hash"], summary(first)["center_hash"]);
  start_nodes(2);
  Process over(train(init));
  ASSERT_EQ(over.wait(), 0) << over.err();
  EXPECT_EQ(summary(over)["center_hash"], summary(alone)["center_hash"]);
  expect_replays(this->run());
}

/// A pull sees the push before it, even where the push's vector takes longer to arrive.
TEST_F(Training, OneWorkersExchangesHaveTheBitsOfOneProcess) {
  start_nodes(1, transport::testing::good_certificate());
  const std::vector<std::string> settings{"cluster.workers=1", "model.widths=[1000]", "run.epochs=1"};
  for (const std::vector<std::string>& strategy : {std::vector<std::string>{"strategy.name=downpour"},
                                                   {"strategy.name=ssp", "strategy.s=1", "strategy.overlap=wait"}}) {
    const auto here = program({"train", config_, "--set", "run.dir=" + folder_.file("here"), "--quiet", "--json"});
    Process alone(with(settings, with(strategy, here)));
    ASSERT_EQ(alone.wait(), 0) << alone.err();
    for (const char* endpoint : {"shm", "tcp"}) {
      Process over(train(with(settings, with(strategy, with({std::string("exchange.endpoint=") + endpoint})))));
      ASSERT_EQ(over.wait(), 0) << endpoint << ": " << over.err();
      EXPECT_EQ(summary(over)["center_hash"], summary(alone)["center_hash"]) << endpoint;
      EXPECT_EQ(summary(over)["exchange"]["staleness_mean"], summary(alone)["exchange"]["staleness_mean"]) << endpoint;
      expect_replays(this->run());
    }
  }
}

TEST_F(Training, AutoMeasuresTheFastestReduction) {
  start_nodes(2);
  Process run(train(with({"strategy.name=bsp"})));
  ASSERT_EQ(run.wait(), 0) << run.err();
  EXPECT_NE(run.err().find("reductions: "), std::string::npos) << run.err();
  const auto decided = [&] {
    std::ifstream file(this->run() + "/plan.json");
    return nlohmann::json::parse(file)["exchange"];
  };
  const auto first = decided();
  // Three workers on one host: asa (direct reduce-scatter + allgather), shm and ring, at two lengths of up to 19,090 floats.
  ASSERT_EQ(first["measured"].size(), 6) << first;
  for (const auto& timing : first["measured"]) EXPECT_GT(timing["seconds"], 0) << first;
  expect_replays(this->run());
  // A resumed run keeps the measured decision.
  Process more(resume(with({"run.epochs=3"})));
  ASSERT_EQ(more.wait(), 0) << more.err();
  EXPECT_EQ(decided(), first);
  expect_replays(this->run());
}

TEST_F(Training, EveryEndpointCarriesTheSameBits) {
  start_nodes(2);
  std::string hash;
  Process facts(program({"nodes", names(), "--json"}));
  ASSERT_EQ(facts.wait(), 0) << facts.err();
  const auto first = nlohmann::json::parse(facts.out().substr(0, facts.out().find('\n')));
  for (const char* endpoint : {"shm", "tcp", "ucx"}) {
    const auto& built = first["endpoints"];
    if (std::find(built.begin(), built.end(), endpoint) == built.end()) continue;
    Process run(
        train(with({"strategy.name=bsp", "exchange.algorithm=asa", std::string("exchange.endpoint=") + endpoint})));
    ASSERT_EQ(run.wait(), 0) << endpoint << ": " << run.err();
    const auto center = summary(run)["center_hash"].get<std::string>();
    if (hash.empty()) hash = center;
    EXPECT_EQ(center, hash) << endpoint;
  }
}

TEST_F(Training, WhereTheCentreIsKeptDoesNotMatter) {
  start_nodes(2);
  std::string hash;
  for (const char* placement : {"dedicated", "colocated"}) {
    Process run(train(
        with({"strategy.name=sync_easgd", "cluster.servers=2", std::string("cluster.server_placement=") + placement})));
    ASSERT_EQ(run.wait(), 0) << placement << ": " << run.err();
    const auto center = summary(run)["center_hash"].get<std::string>();
    if (hash.empty()) hash = center;
    EXPECT_EQ(center, hash) << placement;
  }
}

TEST_F(Training, UnsuitableEndpointIsExit78) {
  start_nodes(2);
  for (const std::vector<std::string>& cannot : {std::vector<std::string>{"exchange.endpoint=inproc"},
                                                 {"exchange.endpoint=mpi"},
                                                 {"exchange.algorithm=ar", "exchange.endpoint=mpi"},
                                                 {"exchange.algorithm=shm", "exchange.endpoint=tcp"},
                                                 {"exchange.algorithm=shm", "exchange.wire=bf16"}}) {
    Process run(train(with(cannot)));
    EXPECT_EQ(run.wait(), 78) << run.err();
    EXPECT_EQ(count(run.err(), "\n"), 1) << run.err();
    EXPECT_NE(run.err().find(cannot.back().substr(0, cannot.back().find('='))), std::string::npos) << run.err();
    EXPECT_TRUE(no_run());
  }
}

/// Every kind of sum: gradients in buckets, parameters, velocities, running statistics; over all workers, over pairs, from one to all.
TEST_F(Training, SumsInMappedMemoryAreTheSameBits) {
  start_nodes(2);
  const std::vector<std::vector<std::string>> ways{
      {"strategy.name=bsp", "model.widths=[600, 300]", "cluster.workers=4"},
      {"strategy.name=bsp", "strategy.combine=updates", "cluster.workers=2"},
      {"strategy.name=bsp", "strategy.combine=weights", "strategy.average_momentum=true", "train.momentum=0.9",
       "train.optimizer=momentum"},
      {"strategy.name=pairs", "cluster.workers=4"}};
  for (const auto& way : ways) {
    std::string hash;
    for (const char* algorithm : {"asa", "shm"}) {
      Process run(train(with(way, with({std::string("exchange.algorithm=") + algorithm}))));
      ASSERT_EQ(run.wait(), 0) << testing::PrintToString(way) << run.err();
      const auto center = summary(run)["center_hash"].get<std::string>();
      if (hash.empty()) hash = center;
      EXPECT_EQ(center, hash) << testing::PrintToString(way);
      expect_replays(this->run());
    }
  }
}

TEST_F(Training, A16BitWireMovesHalfTheBytes) {
  start_nodes(2);
  for (const char* strategy : {"bsp", "easgd"}) {
    Process run(train(with({std::string("strategy.name=") + strategy, "exchange.wire=bf16"})));
    ASSERT_EQ(run.wait(), 0) << strategy << ": " << run.err();
    EXPECT_EQ(summary(run)["samples"], 2400);
  }
}

TEST_F(Training, RunsWithARoundedWireReplay) {
  start_nodes(2);
  for (const char* strategy : {"mixed", "downpour", "gossip"}) {
    for (const char* placement : {"dedicated", "colocated"}) {
      Process run(train(with({std::string("strategy.name=") + strategy, "cluster.servers=2", "cluster.workers=4",
                              std::string("cluster.server_placement=") + placement, "exchange.wire=fp16",
                              "exchange.algorithm=ring", "exchange.endpoint=tcp"})));
      ASSERT_EQ(run.wait(), 0) << strategy << ", " << placement << ": " << run.err();
      expect_replays(summary(run)["run"]);
    }
  }
}

TEST_F(Training, NodesTrainWithCertificatesOnLoopback) {
  start_nodes(2, transport::testing::good_certificate());
  for (const char* endpoint : {"auto", "tcp"}) {
    Process run(train(with({std::string("exchange.endpoint=") + endpoint})));
    ASSERT_EQ(run.wait(), 0) << endpoint << ": " << run.err();
    EXPECT_EQ(summary(run)["samples"], 2400);
  }
  for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(count(node(k).log(), "rejected"), 0) << node(k).log();
}

TEST_F(Training, ResumedRunHasTheBitsOfTheUninterruptedOne) {
  start_nodes(2);
  // Another run may measure another winner, and its sums then have other bits.
  const std::vector<std::string> settings{"strategy.name=bsp", "exchange.algorithm=asa"};
  Process whole(train(with(settings, with({"run.epochs=3"}))));
  ASSERT_EQ(whole.wait(), 0) << whole.err();
  const auto hash = summary(whole)["center_hash"];

  const auto part = folder_.file("part");
  Process first(train(with(settings, with({"run.epochs=1", "run.dir=" + part}))));
  ASSERT_EQ(first.wait(), 0) << first.err();
  auto again = program(
      {"train", "--resume", summary(first)["run"], "--nodes", names(), "--plain", "--json", "--set", "run.epochs=3"});
  Process second(again);
  ASSERT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(summary(second)["center_hash"], hash);
}

TEST_F(Training, AnInterruptSavesACheckpointAndLeavesTheNodesFree) {
  start_nodes(2);
  Process run(train(with({"run.epochs=100000", "cluster.synthetic_step_ms=20"})));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  Process again(resume(with({"run.epochs=1"})));
  const int code = again.wait();
  EXPECT_TRUE(code == 0 || again.err().find("epochs are done") != std::string::npos) << again.err();
  expect_free();
}

TEST_F(Training, TwoRunsShareTheNodes) {
  start_nodes(2);
  const auto settings = with({"cluster.workers=2"});
  Process one(train(settings));
  Process two(train(with({"cluster.workers=2", "run.dir=" + folder_.file("two")})));
  EXPECT_EQ(one.wait(), 0) << one.err();
  EXPECT_EQ(two.wait(), 0) << two.err();
}

TEST_F(Training, NodesReportTheirState) {
  start_nodes(2);
  Process text(program({"nodes", names()}));
  ASSERT_EQ(text.wait(), 0) << text.err();
  for (std::size_t k = 0; k < 2; ++k) EXPECT_NE(text.out().find(node(k).name()), std::string::npos) << text.out();
  EXPECT_NE(text.out().find("cores"), std::string::npos) << text.out();

  Process run(train(with({"run.epochs=100000", "cluster.synthetic_step_ms=20"})));
  ASSERT_TRUE(run.says("epoch 1/")) << run.err();
  Process json(program({"nodes", names(), "--json"}));
  ASSERT_EQ(json.wait(), 0) << json.err();
  ASSERT_EQ(count(json.out(), "\n"), 2) << json.out();
  const auto line = nlohmann::json::parse(json.out().substr(0, json.out().find('\n')));
  EXPECT_EQ(line["node"], node(0).name());
  EXPECT_EQ(line["up"], true);
  EXPECT_EQ(line["members"].size(), 2) << line;
  EXPECT_GT(line["resident_bytes"], 1'000'000) << line;
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
}

// A library of the tests stands for the driver's at the node.
TEST_F(Training, NodesReportTheirGpus) {
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string usual = before ? before : "";
  ::setenv("LD_LIBRARY_PATH", (TROUPE_FAKES_FOLDER ":" + usual).c_str(), 1);
  start_nodes(1);
  before ? ::setenv("LD_LIBRARY_PATH", usual.c_str(), 1) : ::unsetenv("LD_LIBRARY_PATH");
  Process text(program({"nodes", names()}));
  ASSERT_EQ(text.wait(), 0) << text.err();
  EXPECT_NE(text.out().find("NVIDIA H200: 34 % busy, 12.5 of 140.0 GiB in use"), std::string::npos) << text.out();
  Process json(program({"nodes", names(), "--json"}));
  ASSERT_EQ(json.wait(), 0) << json.err();
  const auto use = nlohmann::json::parse(json.out())["gpu_use"];
  ASSERT_EQ(use.size(), 2U) << json.out();
  EXPECT_EQ(use[0]["load"], 0.34);
  EXPECT_EQ(use[0]["memory_bytes"], 150323855360);
  EXPECT_TRUE(use[1]["load"].is_null());
}

TEST_F(Training, UnreachableNodeIsNamedAndTheOthersAreShown) {
  start_nodes(2);
  const auto both = names();
  node(0).process().kill();
  Process text(program({"nodes", both}));
  EXPECT_EQ(text.wait(), 75);
  EXPECT_NE(text.out().find("cores"), std::string::npos) << text.out();
  EXPECT_EQ(count(text.err(), "\n"), 1) << text.err();
  EXPECT_NE(text.out().find(node(0).name()), std::string::npos) << text.out();

  Process json(program({"nodes", both, "--json"}));
  EXPECT_EQ(json.wait(), 75);
  const auto down = nlohmann::json::parse(json.out().substr(0, json.out().find('\n')));
  EXPECT_EQ(down["up"], false);
  EXPECT_NE(json.out().find("\"up\":true"), std::string::npos) << json.out();
}

}  // namespace
}  // namespace troupe::nodes
