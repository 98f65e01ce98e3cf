/// Jobs that `troupe serve` runs on nodes, by the certificates that it was started with, as a user submits them over HTTP.
#include <algorithm>
#include <csignal>
#include <deque>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/folder.hpp"
#include "tests/nodes/process.hpp"
#include "tests/service/client.hpp"
#include "tests/small_config.hpp"
#include "tests/transport/tcp/certificates.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

using nlohmann::json;
using tests::eventually;
using transport::testing::good_certificate;

constexpr const char* kNobody = "127.0.0.1:1";

/// The service speaks HTTP without TLS, as behind a proxy, and has the certificates for nodes from its environment.
class OverNodesTest : public testing::Test {
 protected:
  OverNodesTest() {
    for (int k = 0; k < 2; ++k)
      nodes_.emplace_back(nodes::NodeProcess::Options{.tls = good_certificate(), .programs = true});
    const auto& tls = good_certificate();
    std::vector<std::string> command{"env", "TROUPE_CA=" + tls.ca, "TROUPE_CERT=" + tls.certificate,
                                     "TROUPE_KEY=" + tls.key};
    const auto serve = nodes::program({"serve", "--listen", "127.0.0.1:0", "--dir", folder_.file("runs")});
    command.insert(command.end(), serve.begin(), serve.end());
    service_.emplace(command);
    EXPECT_TRUE(eventually([&] { return nodes::count(service_->out(), "\n") == 2; })) << service_->err();
    const auto text = service_->out();
    port_ = static_cast<std::uint16_t>(std::atoi(text.c_str() + text.find("127.0.0.1:") + 10));
    const auto token = text.substr(text.find("#token=") + 7);
    authorization_ = "Authorization: Bearer " + token.substr(0, token.find('\n')) + "\r\n";
  }
  void TearDown() override {
    for (auto& node : nodes_) {
      if (!node.process().runs()) continue;
      node.process().signal(SIGTERM);
      EXPECT_EQ(node.process().wait(), 0) << node.log();
    }
    service_->signal(SIGINT);
    EXPECT_EQ(service_->wait(), 0) << service_->err();
  }

  /// Again, where the service says that this is too often.
  Reply ask(const std::string& method, const std::string& target, const std::string& body = {}) {
    Reply reply;
    EXPECT_TRUE(eventually([&] {
      Client client(port_);
      client.send(request_text(method, "/api/v1" + target, authorization_, body));
      reply = client.receive();
      return reply.status != 429;
    }));
    return reply;
  }
  std::int64_t submit(const json& job) {
    const auto reply = ask("POST", "/jobs", job.dump());
    EXPECT_EQ(reply.status, 201) << reply.body;
    return reply.json().value("id", std::int64_t{0});
  }
  json job(std::int64_t id) { return ask("GET", fmt::format("/jobs/{}", id)).json(); }
  bool reaches(std::int64_t id, const std::string& state) {
    return eventually([&] {
             const auto now = job(id).value("state", "");
             return now == state || now == "failed" || now == "lost";
           }) &&
           job(id)["state"] == state;
  }
  std::string log(std::int64_t id) { return ask("GET", fmt::format("/jobs/{}/log", id)).body; }
  /// The list has the only run as one of so many workers: it is looked at every half second at most.
  bool is_listed_with(int workers) {
    return eventually([&] { return ask("GET", "/runs").json()["runs"][0]["workers"] == workers; });
  }
  std::string both() { return nodes_[0].name() + "," + nodes_[1].name(); }
  json training(int epochs, const std::string& nodes) {
    return {
        {"kind", "train"},
        {"name", "digits"},
        {"nodes", nodes},
        {"toml", tests::small_config(fmt::format("[run]\nepochs = {}", epochs),
                                     "[train]\nlr = 0.05\n[strategy]\nname = \"easgd\"\n[cluster]\nworkers = 3\n")}};
  }

  tests::Folder folder_;
  std::deque<nodes::NodeProcess> nodes_;
  std::optional<nodes::Process> service_;
  std::uint16_t port_ = 0;
  std::string authorization_;
};

TEST_F(OverNodesTest, ATrainingRunsOnAllNodesAndIsInTheListOfRuns) {
  const auto id = submit(training(2, both()));
  ASSERT_TRUE(reaches(id, "done")) << job(id) << log(id);
  for (auto& node : nodes_) EXPECT_GT(nodes::count(node.log(), "begins"), 0U) << node.log();
  const auto run = job(id)["run"].get<std::string>();
  EXPECT_TRUE(eventually([&] { return ask("GET", "/runs/" + run).json()["status"] == "done"; }));
  EXPECT_TRUE(eventually([&] { return ask("GET", "/runs/" + run).json()["job"] == id; })) << job(id);
  EXPECT_TRUE(is_listed_with(3));
  EXPECT_EQ(job(id)["nodes"], both());
}

TEST_F(OverNodesTest, ASweepIsAJobThatUsesAllNodesAndGoesOnAfterAStop) {
  // Long steps: most of the sweep is to come when the first trial has a score.
  const auto base =
      folder_.write("base.toml", tests::small_config("[run]\nepochs = 4", "[cluster]\nsynthetic_step_ms = 15\n"));
  const auto id = submit({{"kind", "grid"},
                          {"name", "the search"},
                          {"nodes", both()},
                          {"toml", fmt::format("base = \"{}\"\n[sweep]\nruns = 6\neta = 2\n[grid]\n"
                                               "train.lr = {{ log = [0.01, 0.5] }}\n",
                                               base)}});
  const auto sweep = [&] { return ask("GET", "/sweeps/the%20search").json(); };
  json ranked;
  ASSERT_TRUE(eventually([&] { return !(ranked = sweep()).value("ranking", json::array()).empty(); }))
      << job(id) << log(id);
  EXPECT_EQ(ranked["state"], "running");
  ASSERT_EQ(ask("POST", fmt::format("/jobs/{}/stop", id)).status, 200);
  ASSERT_TRUE(reaches(id, "stopped")) << job(id) << log(id);
  EXPECT_EQ(job(id)["run"], "the search");  // the service asks a job that runs for it once a second
  EXPECT_EQ(sweep()["state"], "interrupted");
  ASSERT_EQ(ask("POST", fmt::format("/jobs/{}/resume", id)).status, 200);
  ASSERT_TRUE(reaches(id, "done")) << job(id) << log(id);
  const auto end = sweep();
  EXPECT_EQ(end["state"], "finished");
  ASSERT_EQ(end["trials"].size(), 6U);
  std::set<std::string> runs;
  for (const auto& trial : end["trials"]) {
    EXPECT_FALSE(trial["scores"].empty()) << trial;
    runs.insert(trial["run"].get<std::string>());
  }
  EXPECT_EQ(runs.size(), 6U);
  EXPECT_EQ(end["trials"][end["ranking"][0].get<std::size_t>()]["scores"].size(), 3U);
  for (auto& node : nodes_) EXPECT_GT(nodes::count(node.log(), "begins"), 0U) << node.log();
  EXPECT_TRUE(eventually([&] {
    const auto listed = ask("GET", "/runs?filter=status%3Ddone").json()["runs"];
    return listed.size() == 6 && std::ranges::all_of(listed, [&](const json& run) {
             return run["grid"] == "the search" && run["job"] == id && runs.contains(run["run"].get<std::string>());
           });
  })) << ask("GET", "/runs").body;
}

TEST_F(OverNodesTest, AProgramOfTheUsersRunsOnNodesThatTakePrograms) {
  const auto id = submit({{"kind", "launch"},
                          {"command", {TROUPE_SCRIPTED_GUEST, "samples=48"}},
                          {"config", {{"cluster.workers", 2}, {"strategy.name", "easgd"}}},
                          {"nodes", {nodes_[0].name(), nodes_[1].name()}}});
  ASSERT_TRUE(reaches(id, "done")) << job(id) << log(id);
  for (auto& node : nodes_) EXPECT_GT(nodes::count(node.log(), "begins"), 0U) << node.log();
  EXPECT_TRUE(is_listed_with(2));
}

TEST_F(OverNodesTest, ARunOnNodesIsStoppedWithACheckpointAndResumedThere) {
  const auto id = submit(training(100'000, both()));
  ASSERT_TRUE(eventually([&] { return job(id)["run"].is_string() && job(id)["state"] == "running"; })) << log(id);
  const auto run = job(id)["run"].get<std::string>();
  ASSERT_TRUE(eventually([&] { return ask("GET", "/runs/" + run + "/state").json().value("samples", 0) > 0; }))
      << log(id);
  for (const auto& node : nodes_) ASSERT_EQ(ask("POST", "/nodes", json{{"address", node.name()}}.dump()).status, 201);
  EXPECT_TRUE(eventually([&] {
    const auto nodes = ask("GET", "/nodes").json();
    return nodes[0]["runs"].size() == 1 && nodes[0]["runs"] == nodes[1]["runs"];
  })) << ask("GET", "/nodes").body;
  ASSERT_EQ(ask("POST", fmt::format("/jobs/{}/stop", id)).status, 200);
  ASSERT_TRUE(reaches(id, "stopped")) << log(id);
  const auto saved = ask("GET", "/runs/" + run + "/checkpoints").json()["checkpoints"];
  ASSERT_FALSE(saved.empty());
  ASSERT_EQ(ask("POST", fmt::format("/jobs/{}/resume", id)).status, 200);
  ASSERT_TRUE(eventually([&] { return nodes::count(nodes_[0].log(), "begins") == 2; })) << log(id);
  ASSERT_TRUE(eventually([&] {
    ask("POST", fmt::format("/jobs/{}/checkpoint", id));
    const auto now = ask("GET", "/runs/" + run + "/checkpoints").json()["checkpoints"];
    return !now.empty() && now[0]["step"] > saved[0]["step"];
  })) << log(id);
  EXPECT_EQ(job(id)["run"], run);
  ask("POST", fmt::format("/jobs/{}/stop", id));
  EXPECT_TRUE(reaches(id, "stopped"));
}

TEST_F(OverNodesTest, NodesThatCannotBeReachedAreNamed) {
  EXPECT_EQ(ask("POST", "/jobs", training(1, "h1").dump()).status, 400);
  EXPECT_EQ(ask("POST", "/jobs", training(1, "127.0.0.1:1,,").dump()).status, 400);
  EXPECT_EQ(ask("POST", "/jobs", training(1, both() + "," + nodes_[1].name()).dump()).status, 400) << "twice";
  const auto dead = submit(training(1, nodes_[0].name() + "," + kNobody));
  EXPECT_FALSE(reaches(dead, "done"));
  EXPECT_EQ(job(dead)["state"], "failed");
  EXPECT_THAT(job(dead)["error"].get<std::string>(), testing::HasSubstr(kNobody));
  EXPECT_THAT(job(dead)["error"].get<std::string>(), testing::HasSubstr("no process listens there"));
  const auto unknown = submit(training(1, "no-such-host.invalid:4242"));
  EXPECT_FALSE(reaches(unknown, "done"));
  EXPECT_THAT(job(unknown)["error"].get<std::string>(), testing::HasSubstr("no-such-host.invalid"));
}

TEST_F(OverNodesTest, ATrainingGoesOnWithoutANodeThatDies) {
  const auto id = submit(training(100'000, both()));
  ASSERT_TRUE(eventually([&] { return job(id)["run"].is_string(); })) << log(id);
  const auto run = job(id)["run"].get<std::string>();
  const auto samples = [&] { return ask("GET", "/runs/" + run + "/state").json().value("samples", std::int64_t{0}); };
  ASSERT_TRUE(eventually([&] { return samples() > 0; })) << log(id);
  ASSERT_EQ(ask("POST", "/nodes", json{{"address", nodes_[1].name()}}.dump()).status, 201);
  nodes_[1].process().kill();
  ASSERT_TRUE(eventually([&] { return ask("GET", "/nodes").json()[0]["state"] == "dead"; }));
  const auto before = samples();
  ASSERT_TRUE(eventually([&] { return samples() > before + 2000; })) << log(id);
  EXPECT_TRUE(eventually([&] { return ask("GET", "/runs/" + run + "/notes").body.find("lost") != std::string::npos; }))
      << ask("GET", "/runs/" + run + "/notes").body;
  ask("POST", fmt::format("/jobs/{}/stop", id));
  EXPECT_TRUE(reaches(id, "stopped")) << log(id);
}

}  // namespace
}  // namespace troupe::service
