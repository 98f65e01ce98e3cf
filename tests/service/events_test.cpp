#include <chrono>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "experiment/directory/directory_lock.hpp"
#include "tests/service/served.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

struct Received {
  std::string name, data, id;
};

/// Reads events until one of this kind has come.
std::vector<Received> read_until(Client& client, std::string_view last) {
  std::vector<Received> all;
  while (true) {
    const auto text = client.receive_until("\n\n");
    if (text.empty()) return all;
    if (text.starts_with(":")) continue;
    Received event;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = text.find('\n', begin);
      const auto line = text.substr(begin, end - begin);
      if (line.starts_with("event: ")) event.name = line.substr(7);
      if (line.starts_with("data: ")) event.data = line.substr(6);
      if (line.starts_with("id: ")) event.id = line.substr(4);
      begin = end + 1;
    }
    if (event.name.empty()) continue;
    all.push_back(event);
    if (event.name == last) return all;
  }
}

class EventsTest : public testing::Test {
 protected:
  [[nodiscard]] Client stream(const std::string& headers = {}, const std::string& query = {}) const {
    Client client(served_.port());
    client.send(request_text("GET", "/api/v1/runs/" + std::string(kRun) + "/events" + query,
                             served_.authorization(Role::read) + headers));
    EXPECT_THAT(client.receive_until("\r\n\r\n"), testing::HasSubstr("200"));
    EXPECT_NE(client.receive_until("stream\n\n"), "");
    return client;
  }
  void append(const std::string& text) const {
    std::ofstream(served_.folder().file(std::string(kRun) + "/metrics.jsonl"), std::ios::app) << text << std::flush;
  }
  const std::string lines_ = store::started_line() + store::epoch_line(1, 0.5);
  Served served_{{}, [this](const tests::Folder& folder) {
                   folder.write(std::string(kRun) + "/config.toml", store::config_text("a"));
                   folder.write(std::string(kRun) + "/metrics.jsonl",
                                store::started_line() + store::epoch_line(1, 0.5));
                 }};
};

TEST_F(EventsTest, LinesComeWithTheirPositions) {
  auto client = stream({}, "?from=0");
  const auto events = read_until(client, "epoch");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].name, "started");
  EXPECT_EQ(events[0].data + "\n", store::started_line());
  EXPECT_EQ(events[0].id, std::to_string(store::started_line().size()));
  EXPECT_EQ(events[1].id, std::to_string(lines_.size()));
}

TEST_F(EventsTest, WithoutAPositionOnlyNewLinesCome) {
  auto client = stream();
  append(store::epoch_line(2, 0.6));
  const auto events = read_until(client, "epoch");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].data + "\n", store::epoch_line(2, 0.6));
}

TEST_F(EventsTest, ALineIsSentWhenItIsWhole) {
  auto client = stream();
  const auto line = store::epoch_line(2, 0.6);
  append(line.substr(0, 20));
  append(line.substr(20));
  EXPECT_EQ(read_until(client, "epoch").front().data + "\n", line);
}

/// A client that is cut off again and again, wherever it is, sees each line once.
TEST_F(EventsTest, ResumedClientSeesEachLineOnce) {
  std::string all = lines_;
  std::vector<std::string> expected{store::started_line(), store::epoch_line(1, 0.5)};
  std::vector<std::string> seen;
  std::string position = "0";
  for (int round = 2; round < 12; ++round) {
    auto client = stream("Last-Event-ID: " + position + "\r\n");
    append(store::epoch_line(round, 0.5));
    expected.push_back(store::epoch_line(round, 0.5));
    // Some of what is there, then the connection ends.
    for (const auto& event : read_until(client, "epoch")) {
      seen.push_back(event.data + "\n");
      position = event.id;
    }
  }
  append(store::ended_line());
  expected.push_back(store::ended_line());
  auto client = stream("Last-Event-ID: " + position + "\r\n");
  for (const auto& event : read_until(client, "ended")) seen.push_back(event.data + "\n");
  EXPECT_EQ(seen, expected);
}

TEST_F(EventsTest, ManyClientsGetTheSame) {
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(stream());
  append(store::epoch_line(2, 0.6));
  for (auto& client : clients) EXPECT_EQ(read_until(client, "epoch").front().data + "\n", store::epoch_line(2, 0.6));
}

TEST_F(EventsTest, PositionWithinALineIsMovedBehindIt) {
  auto client = stream({}, "?from=5");
  EXPECT_EQ(read_until(client, "epoch").front().data + "\n", store::epoch_line(1, 0.5));
}

TEST_F(EventsTest, PositionsThatAreNoneAreRefused) {
  for (const auto* from : {"-1", "x", "1e3", "99999999999999999999999"})
    EXPECT_EQ(served_.get(fmt::format("/api/v1/runs/{}/events?from={}", kRun, from)).status, 400) << from;
  EXPECT_EQ(served_.get("/api/v1/runs/none/events").status, 404);
}

TEST_F(EventsTest, StateFollowsTheFile) {
  const auto state = [&] { return served_.get("/api/v1/runs/" + std::string(kRun) + "/state").json(); };
  EXPECT_EQ(state()["epoch"], 1);
  EXPECT_EQ(state()["position"], lines_.size());
  append(store::epoch_line(2, 0.6));
  EXPECT_EQ(state()["epoch"], 2);
}

/// The first listener there is; and the run changes once, before the service has looked at it for that listener.
TEST_F(EventsTest, ARunThatChangesAfterAListenerHasComeIsAnnounced) {
  auto lock = experiment::DirectoryLock::take(served_.folder().file(kRun));
  ASSERT_TRUE(lock.has_value());
  ASSERT_TRUE(tests::eventually([&] { return served_.get("/api/v1/runs").json()["runs"][0]["status"] == "running"; }))
      << "as a client sees it before it listens";
  Client client(served_.port());
  client.send(request_text("GET", "/api/v1/events", served_.authorization(Role::read)));
  EXPECT_NE(client.receive_until("stream\n\n"), "");
  { const auto killed = std::move(*lock); }
  std::string status;
  for (const auto until = std::chrono::steady_clock::now() + tests::kPatience;
       status != "killed" && std::chrono::steady_clock::now() < until;) {
    const auto events = read_until(client, "run");
    if (events.empty()) break;
    const auto row = nlohmann::json::parse(events.back().data);
    EXPECT_EQ(row["run"], kRun);
    status = row["status"];
  }
  EXPECT_EQ(status, "killed");
}

}  // namespace
}  // namespace troupe::service
