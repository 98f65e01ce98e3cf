// Nodes with addresses of their own: network namespaces behind a bridge, with certificates. Links are cut during training.
// Needs root and iproute2.
#include <csignal>
#include <filesystem>

#include "tests/nodes/nodes_fixture.hpp"
#include "tests/nodes/resets.hpp"

namespace troupe::nodes {
namespace {

/// Runs `ip` with these words; true: it succeeded.
bool ip(const std::string& words) {
  std::vector<std::string> command{"ip"};
  std::istringstream stream(words);
  for (std::string word; stream >> word;) command.push_back(word);
  Process process(command);
  return process.wait() == 0;
}

/// One namespace for the coordinator and one for each of two nodes, on one bridge: 10.77.0.1, .2 and .3.
class Hosts : public NodesFixture {
 protected:
  void SetUp() override {
    for (int host = 0; host < 3 && possible_; ++host) possible_ = ip("netns add " + space(host));
    possible_ = possible_ && ip("-n " + space(0) + " link add name switch type bridge") &&
                ip("-n " + space(0) + " address add 10.77.0.1/24 dev switch") &&
                ip("-n " + space(0) + " link set dev switch up") && ip("-n " + space(0) + " link set dev lo up");
    for (int host = 1; host < 3 && possible_; ++host) {
      const auto port = port_of(host);
      possible_ = ip("-n " + space(0) + " link add name " + port + " type veth peer name wire netns " + space(host)) &&
                  ip("-n " + space(0) + " link set dev " + port + " master switch up") &&
                  ip("-n " + space(host) + " address add " + address(host) + "/24 dev wire") &&
                  ip("-n " + space(host) + " link set dev wire up") && ip("-n " + space(host) + " link set dev lo up");
    }
    if (!possible_) GTEST_SKIP() << "network namespaces need root and iproute2";
    const auto directory = folder_.file("certs");
    Process authority(program({"certs", "init", "--directory", directory}));
    ASSERT_EQ(authority.wait(), 0) << authority.err();
    for (int host = 0; host < 3; ++host) {
      Process member(
          program({"certs", "node", "host" + std::to_string(host), "--host", address(host), "--directory", directory}));
      ASSERT_EQ(member.wait(), 0) << member.err();
    }
    tls_ = files(0);
    for (int host = 1; host < 3; ++host)
      start_node({.tls = files(host), .directory = {}, .host = address(host), .within = within(host)});
  }
  void TearDown() override {
    NodesFixture::TearDown();
    for (int host = 0; host < 3; ++host) {
      ip("netns delete " + space(host));
      EXPECT_FALSE(std::filesystem::exists("/run/netns/" + space(host)));
    }
  }

  /// `command`, run on host `host`; 0 is the coordinator's.
  [[nodiscard]] static std::vector<std::string> at(int host, const std::vector<std::string>& command) {
    auto all = within(host);
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  [[nodiscard]] static std::string space(int host) {
    return "troupe-" + std::to_string(::getpid()) + "-" + std::to_string(host);
  }
  [[nodiscard]] static std::vector<std::string> within(int host) { return {"ip", "netns", "exec", space(host)}; }
  [[nodiscard]] static std::string address(int host) { return "10.77.0." + std::to_string(host + 1); }
  [[nodiscard]] static std::string port_of(int host) { return "port" + std::to_string(host); }
  [[nodiscard]] security::TlsFiles files(int host) const {
    const auto base = folder_.file("certs/host" + std::to_string(host));
    return {.ca = folder_.file("certs/ca.pem"), .certificate = base + ".pem", .key = base + ".key"};
  }

  /// Trains; `cut` cuts worker 2's host off; the run continues without it. After `heal` both hosts can serve another run.
  void expect_survives(const std::string& cut, const std::string& heal) {
    Process run(at(0, train(with({"run.epochs=100000", "cluster.synthetic_step_ms=20"}))));
    ASSERT_TRUE(run.says("epoch 1/")) << run.err();
    ASSERT_TRUE(ip(cut)) << cut;
    EXPECT_TRUE(run.says("is lost")) << run.err();
    EXPECT_TRUE(node(1).process().says(": ends")) << node(1).log();
    const auto epochs = count(run.err(), "epoch ");
    EXPECT_TRUE(run.says("epoch ", epochs + 2)) << run.err();
    ASSERT_TRUE(ip(heal)) << heal;
    EXPECT_TRUE(run.says("epoch ", epochs + 4)) << run.err();
    run.signal(SIGINT);
    EXPECT_EQ(run.wait(), 130) << run.err();
    EXPECT_EQ(count(run.err(), "is lost"), 1) << run.err();
    Process again(at(0, train(with({"run.dir=" + folder_.file("again")}))));
    EXPECT_EQ(again.wait(), 0) << again.err();
    EXPECT_EQ(summary(again)["samples"], 2400);
  }

  bool possible_ = true;
};

TEST_F(Hosts, SharedMemorySumsAcrossHostsAreRefused) {
  Process run(at(0, train(with({"strategy.name=bsp", "exchange.algorithm=shm"}))));
  EXPECT_EQ(run.wait(), 78) << run.err();
  EXPECT_EQ(count(run.err(), "\n"), 1) << run.err();
  EXPECT_NE(run.err().find("exchange.algorithm = \"shm\": workers on several hosts share no memory: use \"auto\""),
            std::string::npos)
      << run.err();
  EXPECT_TRUE(no_run());
}

TEST_F(Hosts, EveryStrategyTrainsOverTls) {
  for (const char* strategy : {"bsp", "easgd", "gossip", "pairs", "mixed"}) {
    Process run(at(0, train(with({std::string("strategy.name=") + strategy}))));
    EXPECT_EQ(run.wait(), 0) << strategy << ": " << run.err();
  }
}

TEST_F(Hosts, ShmEndpointAcrossHostsIsRefused) {
  Process run(at(0, train(with({"exchange.endpoint=shm"}))));
  EXPECT_EQ(run.wait(), 78) << run.err();
  EXPECT_NE(run.err().find("exchange.endpoint"), std::string::npos) << run.err();
}

TEST_F(Hosts, RunContinuesWithoutANodeBehindADeadLink) {
  const auto link = "-n " + space(0) + " link set dev " + port_of(2);
  expect_survives(link + " down", link + " up");
}

TEST_F(Hosts, RunContinuesWithoutANodeBehindAOneWayLink) {
  // The node's packets go to a hardware address that does not exist.
  const auto neighbour = "-n " + space(2) + " neighbour ";
  expect_survives(neighbour + "replace " + address(0) + " lladdr 02:00:00:00:00:99 dev wire nud permanent",
                  neighbour + "delete " + address(0) + " dev wire");
}

TEST_F(Hosts, CutLinkEndsABspRunThatResumes) {
  const auto link = "-n " + space(0) + " link set dev " + port_of(2);
  Process run(at(0, train(with({"strategy.name=bsp", "run.epochs=100000", "cluster.synthetic_step_ms=20"}))));
  ASSERT_TRUE(run.says("epoch 2/")) << run.err();
  ASSERT_TRUE(ip(link + " down"));
  EXPECT_EQ(run.wait(), 75) << run.err();
  EXPECT_NE(run.err().find("--resume"), std::string::npos) << run.err();
  ASSERT_TRUE(ip(link + " up"));
  EXPECT_TRUE(node(1).process().says(": ends")) << node(1).log();
  const auto epochs = two_epochs_after(run);
  Process again(at(0, resume_to(epochs)));
  EXPECT_EQ(again.wait(), 0) << again.err();
  EXPECT_EQ(summary(again)["samples"], epochs * 1200);
}

TEST_F(Hosts, AResetConnectionCostsNothing) {
  const auto settings =
      with({"strategy.name=bsp", "exchange.algorithm=asa", "run.epochs=6", "cluster.synthetic_step_ms=20"});
  Process run(at(0, train(settings)));
  std::size_t resets = 0;
  for (std::size_t epoch = 1; epoch <= 3; ++epoch) {
    ASSERT_TRUE(run.says("epoch ", epoch)) << run.err();
    resets += reset_data(node(1).process().pid(), {node(0).port(), node(1).port()}, within(2));
  }
  if (resets == 0) {
    run.signal(SIGINT);
    run.wait();
    GTEST_SKIP() << "resetting connections needs CONFIG_INET_DIAG_DESTROY";
  }
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.err().find("lost"), std::string::npos) << run.err();
  Process unharmed(at(0, train(with({"run.dir=" + folder_.file("unharmed")}, settings))));
  ASSERT_EQ(unharmed.wait(), 0) << unharmed.err();
  EXPECT_EQ(summary(run)["center_hash"], summary(unharmed)["center_hash"]);
  EXPECT_EQ(summary(run)["samples"], summary(unharmed)["samples"]);
}

TEST_F(Hosts, ASlowLinkIsNoLoss) {
  Process limit(at(
      2, {"tc", "qdisc", "add", "dev", "wire", "root", "tbf", "rate", "10mbit", "burst", "64kb", "latency", "200ms"}));
  if (limit.wait() != 0) GTEST_SKIP() << "limiting a link needs tc with tbf";
  Process run(at(0, train(with({"strategy.name=bsp", "run.epochs=1"}))));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.err().find("lost"), std::string::npos) << run.err();
}

/// The workers' hosts have a direct link that is slower than their links to the coordinator: peer messages are still under way long
/// after the workers have reported that they are ready.
TEST_F(Hosts, PeerMessagesOnASlowLinkArriveBeforeASegmentBegins) {
  ASSERT_TRUE(ip("-n " + space(1) + " link add name direct type veth peer name direct netns " + space(2)));
  for (const int host : {1, 2}) {
    ASSERT_TRUE(ip("-n " + space(host) + " link set dev direct up"));
    ASSERT_TRUE(ip("-n " + space(host) + " route add " + address(3 - host) + "/32 dev direct src " + address(host)));
    Process limit(at(host, {"tc", "qdisc", "add", "dev", "direct", "root", "tbf", "rate", "8mbit", "burst", "16kb",
                            "latency", "2s"}));
    if (limit.wait() != 0) GTEST_SKIP() << "limiting a link needs tc with tbf";
  }
  Process run(at(
      0, train(with({"strategy.name=gossip", "strategy.p=1", "cluster.workers=4", "data.batch=1",
                     "data.train_samples=200", "run.epochs=3", "run.journal=20 KB", "cluster.synthetic_step_ms=10"}))));
  ASSERT_EQ(run.wait(), 0) << run.err();
  Process replay(program({"replay", summary(run)["run"], "--json"}));
  ASSERT_EQ(replay.wait(), 0) << replay.err();
  EXPECT_EQ(summary(replay)["center_hash"], summary(run)["center_hash"]);
}

// A vector takes 7 s to arrive, and a wait ends after 3 s without a byte: like 5.8 million parameters over 3 Mbit/s and a minute. The
// coordinator's first snapshot, the step's reduction and the last snapshot take more than twice their deadlines.
TEST_F(Hosts, VectorMayTakeLongerThanAnyDeadline) {
  const std::vector<std::string> limit{"root", "tbf", "rate", "1mbit", "burst", "16kb", "latency", "200ms"};
  for (int host = 1; host < 3; ++host) {
    for (const auto& [place, device] : {std::pair(host, std::string("wire")), std::pair(0, port_of(host))}) {
      std::vector<std::string> command{"tc", "qdisc", "add", "dev", device};
      command.insert(command.end(), limit.begin(), limit.end());
      Process tc(at(place, command));
      if (tc.wait() != 0) GTEST_SKIP() << "limiting a link needs tc with tbf";
    }
  }
  Process run(at(0, train(with({"strategy.name=bsp", "run.epochs=1", "cluster.workers=2", "model.widths=[280]",
                                "data.train_samples=40", "exchange.algorithm=asa", "exchange.deadline_s=3"}))));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(run.err().find("lost"), std::string::npos) << run.err();
  EXPECT_EQ(summary(run)["samples"], 40) << run.err();
}

}  // namespace
}  // namespace troupe::nodes
