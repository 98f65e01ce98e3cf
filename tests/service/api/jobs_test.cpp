#include <sched.h>
#include <sys/resource.h>

#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "experiment/directory/directory_lock.hpp"
#include "service/jobs/service_folder.hpp"
#include "service/service.hpp"
#include "tests/folder.hpp"
#include "tests/service/client.hpp"
#include "tests/service/schema_check.hpp"
#include "tests/store/run_folders.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

using nlohmann::json;
using tests::eventually;

/// A real server whose jobs execute the scripted program of tests/service/jobs, whatever their configuration, and whose nodes answer as the
/// test says.
class ServiceJobsTest : public ::testing::Test {
 protected:
  ServiceJobsTest() {
    auto users = Users::open(service_folder(folder_.path()).value() + "/users.json");
    for (const auto role : {Role::read, Role::run, Role::admin})
      tokens_[role] = users->add(std::string(name(role)) + "-user", role).value();
    JobOptions jobs;
    jobs.paths = {.executable = "troupe", .run_directory = folder_.path()};
    jobs.supervisor = {TROUPE_JOB_HOST, "supervise"};
    jobs.command = [this](const Job& job, const JobFolder&) {
      return job.spec.kind == JobKind::grid
                 ? std::vector<std::string>{"/bin/sh", "-c",
                                            // Its nice value and scheduling policy, by proc(5).
                                            "cut -d' ' -f19,41 /proc/self/stat > " + folder_.file("priority") +
                                                "; echo out; echo 'troupe: no such base'; exit 78"}
                 : std::vector<std::string>{TROUPE_JOB_HOST, "train", folder_.file(fmt::format("signals-{}", job.id))};
    };
    auto started =
        Service::start({.directory = folder_.path(),
                        .listen = {"127.0.0.1", 0},
                        .limits = {.requests_per_s = 1e6, .burst = 1e6},  // a test asks again and again
                        .version = "1.2.3",
                        .jobs = jobs,
                        .ask_node = [](const std::string& address, const std::stop_token&) -> core::Result<NodeReport> {
                          if (address != "h1:4242")
                            return core::fail(core::Errc::peer_lost, address + ": nothing listens there");
                          return NodeReport{.cores = 8,
                                            .load = 1.5,
                                            .memory = 100,
                                            .memory_free = 40,
                                            .gpus = {{"H100", 0.5, 80, 20}},
                                            .runs = {"a"}};
                        }},
                       std::make_shared<Users>(std::move(*users)));
    EXPECT_TRUE(started.has_value()) << started.error().message;
    service_ = std::move(*started);
    std::ifstream file(TROUPE_SOURCE_DIR "/service/openapi.json");
    document_ = json::parse(file, nullptr, false);
  }

  Reply ask(const std::string& method, const std::string& target, const std::string& body = {},
            Role role = Role::admin) {
    Client client(service_->port());
    client.send(
        request_text(method, "/api/v1" + target, fmt::format("Authorization: Bearer {}\r\n", tokens_[role]), body));
    return client.receive();
  }
  /// The answer, held against its schema.
  json good(const std::string& method, const std::string& pattern, const std::string& target, int status,
            const std::string& body = {}) {
    const auto reply = ask(method, target, body);
    EXPECT_EQ(reply.status, status) << method << " " << target << ": " << reply.body;
    std::string lower = method;
    for (auto& c : lower) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(misfit_of_answer(document_, lower, "/api/v1" + pattern, reply.status, reply.json()), "") << reply.body;
    return reply.json();
  }
  std::int64_t submit(const std::string& body) {
    const auto job = good("POST", "/jobs", "/jobs", 201, body);
    return job.value("id", std::int64_t{0});
  }
  std::string state(std::int64_t id) { return ask("GET", fmt::format("/jobs/{}", id)).json().value("state", ""); }
  bool reaches(std::int64_t id, const std::string& wanted) {
    return eventually([&] { return state(id) == wanted; });
  }
  bool begun(std::int64_t id) {
    return eventually([&] { return folder_.read(fmt::format("signals-{}", id)) == "begun\n"; });
  }

  tests::Folder folder_;
  std::map<Role, std::string> tokens_;
  std::unique_ptr<Service> service_;
  json document_;
  const std::string training_ =
      R"({"kind": "train", "name": "größe", "config": {"run.name": "x", "model.name": "lenet", "data.name": "glyphs", "strategy.name": "easgd", "cluster.workers": 3}})";
};

TEST_F(ServiceJobsTest, AJobIsSubmittedShownSavedStoppedAndDeleted) {
  const auto id = submit(training_);
  ASSERT_TRUE(begun(id));
  ASSERT_TRUE(eventually([&] { return ask("POST", fmt::format("/jobs/{}/checkpoint", id)).status == 200; }));
  ASSERT_TRUE(eventually([&] { return folder_.read(fmt::format("signals-{}", id)) == "begun\ncheckpoint\n"; }));
  EXPECT_EQ(ask("DELETE", fmt::format("/jobs/{}", id)).status, 409);
  EXPECT_EQ(ask("POST", fmt::format("/jobs/{}/resume", id)).status, 409);
  const auto server = ask("GET", "/server").json();
  EXPECT_EQ(server["slots"], (json{{"total", 1}, {"running", 1}}));
  const auto row = good("GET", "/jobs", "/jobs", 200).at(0);
  EXPECT_EQ(row["name"], "größe");
  EXPECT_EQ(row["workers"], 3);
  EXPECT_EQ(row["user"], "admin-user");
  good("POST", "/jobs/{id}/stop", fmt::format("/jobs/{}/stop", id), 200);
  ASSERT_TRUE(reaches(id, "stopped"));
  const auto details = good("GET", "/jobs/{id}", fmt::format("/jobs/{}", id), 200);
  EXPECT_EQ(details["exit_code"], 130);
  EXPECT_EQ(details["history"][0]["event"], "submitted by admin-user");
  EXPECT_NE(details["config"].get<std::string>().find("cluster.workers = 3\n"), std::string::npos) << details["config"];
  good("POST", "/jobs/{id}/resume", fmt::format("/jobs/{}/resume", id), 200);
  ASSERT_TRUE(reaches(id, "running"));
  EXPECT_EQ(ask("POST", fmt::format("/jobs/{}/stop", id), R"({"checkpoint": false})").status, 200);
  ASSERT_TRUE(reaches(id, "stopped"));
  EXPECT_EQ(ask("DELETE", fmt::format("/jobs/{}", id)).status, 204);
  EXPECT_EQ(ask("GET", fmt::format("/jobs/{}", id)).status, 404);
  EXPECT_EQ(ask("GET", fmt::format("/jobs/{}", id)).json()["error"]["code"], "unknown");
}

TEST_F(ServiceJobsTest, AConfigurationThatIsWrongIsRefusedWithItsKeyAndNoJobIsThere) {
  const auto reply = ask(
      "POST", "/jobs",
      R"({"kind": "train", "config": {"model.name": "lenet", "data.name": "glyphs", "strategy.name": "easgd", "strategy.tau": -1}})");
  EXPECT_EQ(reply.status, 400);
  ASSERT_EQ(reply.json()["errors"].size(), 1U) << reply.body;
  EXPECT_EQ(reply.json()["errors"][0]["key"], "strategy.tau");
  EXPECT_EQ(reply.json()["error"]["code"], "config");
  EXPECT_EQ(ask("GET", "/jobs").json(), json::array());
}

TEST_F(ServiceJobsTest, BodiesThatAreNoJobAreRefused) {
  for (const std::string body :
       {"", "[]", "{\"kind\": \"reboot\"}", R"({"kind": "train"})", R"({"kind": "launch", "command": "rm -rf /"})",
        R"({"kind": "launch", "command": []})", R"({"kind": "grid", "config": "x", "name": "../x"})",
        R"({"kind": "grid", "config": "x", "priority": "high"})",
        R"({"kind": "grid", "config": "x", "priority": 9223372036854775808})",
        R"({"kind": "grid", "config": "x", "start": 1})", R"({"kind": "train", "config": {"a b": 1}})"})
    EXPECT_EQ(ask("POST", "/jobs", body).status, 400) << body;
  EXPECT_EQ(ask("GET", "/jobs").json(), json::array());
}

TEST_F(ServiceJobsTest, AFailedJobSaysWhyAndItsLogIsReadInParts) {
  const auto id = submit(R"({"kind": "grid", "name": "g", "config": "base = \"nowhere.toml\"\n", "start": false})");
  EXPECT_EQ(state(id), "stopped");
  good("PATCH", "/jobs/{id}", fmt::format("/jobs/{}", id), 200, R"({"priority": 7})");
  good("POST", "/jobs/{id}/start", fmt::format("/jobs/{}/start", id), 200);
  ASSERT_TRUE(reaches(id, "failed"));
  const auto job = ask("GET", fmt::format("/jobs/{}", id)).json();
  EXPECT_EQ(job["error"], "troupe: no such base");
  EXPECT_EQ(job["exit_code"], 78);
  EXPECT_EQ(job["priority"], 7);
  EXPECT_EQ(ask("PATCH", fmt::format("/jobs/{}", id), R"({"priority": 18446744073709551615})").status, 400);
  const auto first = ask("GET", fmt::format("/jobs/{}/log?limit=6", id));
  EXPECT_EQ(first.body, "out\ntr");
  EXPECT_EQ(first.headers.at("x-next"), "6");
  EXPECT_EQ(ask("GET", fmt::format("/jobs/{}/log?from=6", id)).body, "oupe: no such base\n");
  EXPECT_EQ(ask("GET", fmt::format("/jobs/{}/log?from=-1", id)).status, 400);
}

TEST_F(ServiceJobsTest, AJobHasThePriorityOfTheServicesProcessNotOfItsThreads) {
  const auto id = submit(R"({"kind": "grid", "name": "g", "config": "base = \"nowhere.toml\"\n"})");
  ASSERT_TRUE(reaches(id, "failed"));
  EXPECT_EQ(folder_.read("priority"), fmt::format("{} {}\n", ::getpriority(PRIO_PROCESS, 0), ::sched_getscheduler(0)));
}

TEST_F(ServiceJobsTest, JobsThatAreNotThereAreNotFound) {
  for (const auto* id : {"1", "0", "-1", "x", "9999999999999999999999", "1%2F2"})
    for (const auto& [method, path] :
         {std::pair{"GET", ""}, {"DELETE", ""}, {"POST", "/stop"}, {"GET", "/log"}, {"POST", "/start"}})
      EXPECT_EQ(ask(method, fmt::format("/jobs/{}{}", id, path)).status, 404) << method << " " << id << path;
}

TEST_F(ServiceJobsTest, WhoMayOnlyReadChangesNothing) {
  EXPECT_EQ(ask("POST", "/jobs", training_, Role::read).status, 403);
  EXPECT_EQ(ask("POST", "/nodes", R"({"address": "h1:4242"})", Role::run).status, 403);
  EXPECT_EQ(ask("GET", "/jobs", {}, Role::read).json(), json::array());
  EXPECT_EQ(ask("GET", "/nodes", {}, Role::read).json(), json::array());
}

TEST_F(ServiceJobsTest, NodesAreAddedAskedAndRemoved) {
  good("POST", "/nodes", "/nodes", 201, R"({"address": "h1:4242"})");
  good("POST", "/nodes", "/nodes", 201, R"({"address": "h2:4242"})");
  EXPECT_EQ(ask("POST", "/nodes", R"({"address": "h1:4242"})").status, 400) << "it is known";
  EXPECT_EQ(ask("POST", "/nodes", R"({"address": "h1"})").status, 400);
  ASSERT_TRUE(eventually([&] {
    const auto nodes = ask("GET", "/nodes").json();
    return nodes[0]["state"] == "alive" && nodes[1]["error"] == "h2:4242: nothing listens there";
  }));
  const auto nodes = good("GET", "/nodes", "/nodes", 200);
  EXPECT_EQ(nodes[0]["cores"], 8);
  EXPECT_EQ(nodes[0]["gpus"][0]["memory_free"], 20);
  EXPECT_EQ(nodes[0]["runs"], json{"a"});
  EXPECT_EQ(nodes[1]["state"], "dead");
  EXPECT_EQ(ask("DELETE", "/nodes/h2%3A4242").status, 204);
  EXPECT_EQ(ask("DELETE", "/nodes/h2%3A4242").status, 404);
  EXPECT_EQ(ask("GET", "/nodes").json().size(), 1U);
}

TEST_F(ServiceJobsTest, DataSetsAreRegisteredInspectedAndRemovedUnlessARunUsesThem) {
  EXPECT_EQ(ask("POST", "/datasets", R"({"name": "digits", "kind": "glyphs"})", Role::run).status, 403);
  good("POST", "/datasets", "/datasets", 201, R"({"name": "digits", "kind": "glyphs"})");
  EXPECT_EQ(ask("POST", "/datasets", R"({"name": "digits", "kind": "glyphs"})").status, 400) << "the name is taken";
  EXPECT_EQ(ask("POST", "/datasets", R"({"name": "large", "kind": "glyphs", "resize": 18446744073709551615})").status,
            400);
  good("GET", "/datasets", "/datasets", 200);
  const auto facts = good("GET", "/datasets/{name}", "/datasets/digits", 200);
  EXPECT_EQ(facts["classes"].size(), 10U);
  EXPECT_EQ(facts["resize"], 0);
  const auto sample = ask("GET", "/datasets/digits/samples/3.png");
  EXPECT_EQ(sample.status, 200);
  EXPECT_EQ(sample.headers.at("content-type"), "image/png");
  EXPECT_EQ(sample.body.substr(1, 3), "PNG");
  for (const auto* missing :
       {"/datasets/other", "/datasets/digits/samples/x.png", "/datasets/digits/samples/99999999.png",
        "/datasets/digits/samples/1", "/datasets/other/samples/1.png"})
    EXPECT_EQ(ask("GET", missing).status, 404) << missing;
  const auto photos = folder_.file("photos");
  folder_.write("photos/a/x.png", "");
  ASSERT_EQ(
      ask("POST", "/datasets", json{{"name", "photos"}, {"kind", "folder"}, {"path", photos}, {"resize", 8}}.dump())
          .status,
      201);
  EXPECT_EQ(ask("GET", "/datasets").json()[1]["resize"], 8);
  const std::string run = "20260102-030405-busy";
  folder_.write(run + "/config.toml", "[run]\nname = \"busy\"\n[data]\nname = \"folder\"\npath = \"" + photos + "\"\n");
  folder_.write(run + "/metrics.jsonl", store::started_line());
  const auto lock = experiment::DirectoryLock::take(folder_.file(run));
  ASSERT_TRUE(lock.has_value());
  ASSERT_TRUE(eventually([&] { return ask("GET", "/datasets").json()[1]["used_by"] == json{run}; }))
      << ask("GET", "/datasets").body << ask("GET", "/runs").body;
  EXPECT_EQ(ask("DELETE", "/datasets/photos").status, 409);
  EXPECT_EQ(ask("DELETE", "/datasets/digits").status, 204);
  EXPECT_EQ(ask("DELETE", "/datasets/digits").status, 404);
}

TEST_F(ServiceJobsTest, ADataSetThatAWaitingJobNamesStays) {
  const auto photos = folder_.file("photos");
  for (const auto* split : {"train", "test"}) folder_.write(fmt::format("photos/{}/a/x.png", split), "");
  const json set{{"name", "photos"}, {"kind", "folder"}, {"path", photos}, {"resize", 28}};
  ASSERT_EQ(ask("POST", "/datasets", set.dump()).status, 201);
  const auto first = submit(training_);
  for (const auto* quote : {"\"", "'"}) {
    const auto toml = fmt::format(
        "[model]\nname = \"lenet\"\n[data]\nname = \"folder\"\nresize = 28\npath = {0}{1}{0}\n", quote, photos);
    const auto id = submit(json{{"kind", "train"}, {"toml", toml}}.dump());
    const auto refused = ask("DELETE", "/datasets/photos");
    EXPECT_EQ(refused.status, 409) << quote;
    EXPECT_NE(refused.body.find(fmt::format("job {}", id)), std::string::npos) << refused.body;
    ask("POST", fmt::format("/jobs/{}/stop", id));
    EXPECT_TRUE(reaches(id, "stopped"));
  }
  EXPECT_EQ(ask("DELETE", "/datasets/photos").status, 204);
  ASSERT_TRUE(begun(first));
  ask("POST", fmt::format("/jobs/{}/stop", first));
  EXPECT_TRUE(reaches(first, "stopped"));
}

TEST_F(ServiceJobsTest, ChangesOfJobsAreEvents) {
  Client events(service_->port());
  events.send(request_text("GET", "/api/v1/events", fmt::format("Authorization: Bearer {}\r\n", tokens_[Role::read])));
  ASSERT_NE(events.receive_until("\r\n\r\n"), "");
  const auto id = submit(training_);
  for (const auto* wanted : {"\"state\":\"queued\"", "\"state\":\"running\""}) {
    std::string event;
    do event = events.receive_until("\n\n");
    while (!event.empty() && event.find("event: job") == std::string::npos);
    EXPECT_NE(event.find(wanted), std::string::npos) << event;
  }
  ASSERT_TRUE(begun(id));
  ask("POST", fmt::format("/jobs/{}/stop", id));
  EXPECT_TRUE(reaches(id, "stopped"));
}

}  // namespace
}  // namespace troupe::service
