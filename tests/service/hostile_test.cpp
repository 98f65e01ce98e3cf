/// Row 30 of the table of faults: what must be refused, and that nothing changes.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/service/served.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

constexpr std::array kMethods{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"};

/// All files of the runs, as text.
std::string state_of(const Served& served) {
  std::string all;
  for (const auto* file : {"config.toml", "metrics.jsonl", "summary.json", "notes.json"})
    all += served.folder().read(fmt::format("{}/{}", kRun, file)) + "\n--\n";
  return all + served.folder().read(".service/users.json");
}

class HostileTest : public testing::Test {
 protected:
  static Limits patient() {
    Limits limits;
    limits.requests_per_s = 1e6;
    limits.burst = 1e6;
    return limits;
  }
  void expect_unharmed() {
    EXPECT_EQ(state_of(served_), before_);
    EXPECT_EQ(served_.get("/api/v1/runs").json()["total"], 1);
  }
  const std::string run_ = "/api/v1/runs/" + std::string(kRun);
  Served served_{patient()};
  const std::string before_ = state_of(served_);
};

TEST_F(HostileTest, ForeignHostIsRefusedWithEveryMethod) {
  for (const auto* method : kMethods)
    for (const auto* host : {"Host: evil.example\r\n", "Host: 127.0.0.1.evil.example\r\n", "Host: \r\n",
                             "Host: 127.0.0.1\r\nHost: evil.example\r\n", "Host: 127.0.0.1@evil.example\r\n"})
      for (const auto& target : {run_, std::string("/"), std::string("/nowhere")})
        EXPECT_EQ(served_.ask(method, target, Role::admin, "", host).status, 400) << method << " " << host;
  Client client(served_.port());
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.receive().status, 400);
  expect_unharmed();
}

TEST_F(HostileTest, ForeignOriginIsRefusedWhereSomethingChanges) {
  for (const auto* method : kMethods) {
    const bool reads = std::string_view(method) == "GET" || std::string_view(method) == "HEAD";
    for (const auto* origin : {"http://evil.example", "null", "http://127.0.0.1:1", "https://train.example.org"}) {
      const auto reply = served_.ask(method, run_, Role::admin, "", fmt::format("Origin: {}\r\n", origin));
      EXPECT_EQ(reply.status, reads ? 200 : 403) << method << " " << origin;
    }
  }
  for (const auto& stream : {run_ + "/events", std::string("/api/v1/events")})
    EXPECT_EQ(served_.ask("GET", stream, Role::admin, "", "Origin: http://evil.example\r\n").status, 403);
  expect_unharmed();
}

TEST_F(HostileTest, NoTokenIsRefusedWithEveryMethod) {
  for (const auto* method : kMethods) {
    const auto status = served_.ask(method, run_, Role::none).status;
    EXPECT_TRUE(status == 401 || status == 405) << method << ": " << status;
  }
  EXPECT_EQ(served_.ask("DELETE", run_, Role::none).status, 401);
  expect_unharmed();
}

TEST_F(HostileTest, WaysOutOfTheFolderAreRefused) {
  for (const auto* path : {"/api/v1/runs/..%2f..%2fetc%2fpasswd", "/api/v1/runs/..", "/api/v1/runs/%2e%2e/config",
                           "/api/v1/runs/a%2f..%2f..%2f..%2fetc/config", "/assets/..%2fusers.json",
                           "/assets/%2fetc%2fpasswd", "/../../etc/passwd", "/api/v1/runs/a%00b", "/api/v1/runs/%ff"})
    for (const auto* method : {"GET", "DELETE", "PUT"})
      EXPECT_EQ(served_.ask(method, path).status, 400) << method << " " << path;
  // The service's own folder is no run.
  for (const auto* path : {"/api/v1/runs/.service", "/api/v1/runs/.service%2Fusers.json/config"})
    EXPECT_EQ(served_.ask("DELETE", path).status, std::string_view(path).ends_with("config") ? 405 : 404) << path;
  expect_unharmed();
}

TEST_F(HostileTest, QueriesThatCannotBeReadAreRefused) {
  for (const auto* query : {"filter=%zz", "filter=strategy%3", "%", "filter=a&x=%g0"})
    EXPECT_EQ(served_.get(std::string("/api/v1/runs?") + query).status, 400) << query;
  EXPECT_EQ(served_.get("/api/v1/runs?filter=strategy%3Dbsp&limit=5&").status, 200);
}

TEST_F(HostileTest, BodyOfAGibibyteIsRefusedBeforeItComes) {
  for (const auto role : {Role::none, Role::admin}) {
    Client client(served_.port());
    client.send(fmt::format("PUT {}/notes HTTP/1.1\r\nHost: 127.0.0.1\r\n{}Content-Length: 1073741824\r\n\r\n", run_,
                            served_.authorization(role)));
    client.send(std::string(100'000, 'x'));
    EXPECT_EQ(client.receive().status, 413);
  }
  Client client(served_.port());
  client.send(fmt::format("PUT {}/notes HTTP/1.1\r\nHost: 127.0.0.1\r\n{}Transfer-Encoding: chunked\r\n\r\n", run_,
                          served_.authorization(Role::admin)));
  const auto chunk = fmt::format("10000\r\n{}\r\n", std::string(0x10000, 'x'));
  for (int i = 0; i < 20; ++i) client.send(chunk);
  EXPECT_EQ(client.receive().status, 413);
  expect_unharmed();
}

/// By whoever has no token, too. The bodies are within the limit of bytes.
TEST_F(HostileTest, BodiesThatAreDeepOrHaveTooManyKeysAreRefused) {
  std::string many = "{";
  for (int key = 0; key < 60'000; ++key) many += fmt::format("\"{}\":0,", key);
  many += "\"token\":0}";
  std::string deep_objects;
  for (int level = 0; level < 50'000; ++level) deep_objects += "{\"a\":";
  for (const auto& body :
       {"{\"token\":" + std::string(500'000, '['),
        "{\"token\":" + std::string(400'000, '[') + std::string(400'000, ']') + "}", deep_objects, many}) {
    const auto reply = served_.ask("POST", "/api/v1/session", Role::none, body);
    EXPECT_EQ(reply.status, 400) << body.substr(0, 20);
    EXPECT_THAT(reply.body, testing::HasSubstr("too deeply"));
  }
  const auto level = [](int levels) {  // with the object around it one more
    return "{\"token\":" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
  };
  EXPECT_EQ(served_.ask("POST", "/api/v1/session", Role::none, level(32)).status, 401) << "no token, but well-formed";
  EXPECT_EQ(served_.ask("POST", "/api/v1/session", Role::none, level(33)).status, 400);
  expect_unharmed();
}

TEST_F(HostileTest, OnlySomeArchivesExistAtOnce) {
  constexpr std::uintmax_t kMoreThanSocketsHold = std::uintmax_t{32} << 20;
  const auto weights = served_.folder().write(std::string(kRun) + "/best.safetensors", "");
  std::filesystem::resize_file(weights, kMoreThanSocketsHold);
  const auto target = run_ + "/export.zip?checkpoints=1";
  {
    std::vector<Client> slow;  // none reads more than the headers
    for (int i = 0; i < 4; ++i) {
      slow.emplace_back(served_.port());
      slow.back().send(request_text("GET", target, served_.authorization(Role::read)));
      EXPECT_THAT(slow.back().receive_until("\r\n\r\n"), testing::HasSubstr(" 200 "));
    }
    const auto reply = served_.get(target);
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.headers.count("retry-after"), 1U);
  }
  EXPECT_TRUE(tests::eventually([&] { return served_.ask("HEAD", target, Role::read).status == 200; }));
}

TEST_F(HostileTest, BodyWithoutATokenIsNotRead) {
  Client client(served_.port());
  client.send(fmt::format("PUT {}/notes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n", run_));
  EXPECT_EQ(client.receive().status, 401);
  EXPECT_TRUE(client.is_closed_by_peer());
  expect_unharmed();
}

TEST_F(HostileTest, LargeHeadersAreRefused) {
  EXPECT_EQ(served_.ask("GET", "/healthz", Role::none, "", "X: " + std::string(20'000, 'x') + "\r\n").status, 431);
  EXPECT_EQ(served_.ask("GET", "/" + std::string(20'000, 'x'), Role::none).status, 431);
  expect_unharmed();
}

TEST_F(HostileTest, WhatIsNoHttpIsRefused) {
  for (const auto* text : {"hello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
                           "GET / HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n",
                           "POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n"}) {
    Client client(served_.port());
    client.send(text);
    const auto reply = client.receive();
    EXPECT_TRUE(reply.status == 400 || reply.status == 0) << text << ": " << reply.status;
  }
  expect_unharmed();
}

/// Requests with bytes changed, cut and doubled, by a fixed generator: the service answers the next client all the same.
TEST_F(HostileTest, RandomRequestsLeaveTheServiceAsItIs) {
  std::mt19937 random(30);  // NOLINT: the same bytes in every run
  const auto up_to = [&](std::size_t most) { return std::uniform_int_distribution<std::size_t>(0, most)(random); };
  const std::vector<std::string> seeds{
      request_text("GET", run_ + "/curves?series=a,b&points=20", served_.authorization(Role::read)),
      request_text("PUT", run_ + "/notes", served_.authorization(Role::none), R"({"note": "x"})"),
      request_text("POST", "/api/v1/check", served_.authorization(Role::read), R"({"config": {"train.lr": [1, "a"]}})"),
      "POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n0\r\n\r\n"};
  for (int round = 0; round < 400; ++round) {
    auto text = seeds[up_to(seeds.size() - 1)];
    for (std::size_t change = up_to(6); change > 0 && !text.empty(); --change) {
      const auto at = up_to(text.size() - 1);
      switch (up_to(3)) {
        case 0: text[at] = static_cast<char>(up_to(255)); break;
        case 1: text.erase(at, up_to(8)); break;
        case 2: text.insert(at, text.substr(at, up_to(40))); break;
        default: text.insert(at, 1, static_cast<char>(up_to(255)));
      }
    }
    Client client(served_.port());
    client.send(text);  // and away, before the answer
  }
  expect_unharmed();
}

TEST(HostileLimitsTest, SlowHeadersAreEnded) {
  Limits limits;
  limits.header_time = std::chrono::milliseconds(100);
  const Served served(limits);
  Client client(served.port());
  client.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX");
  EXPECT_TRUE(client.is_closed_by_peer());
  Client silent(served.port());
  EXPECT_TRUE(silent.is_closed_by_peer());
}

TEST(HostileLimitsTest, SlowBodiesAndIdleConnectionsAreEnded) {
  Limits limits;
  limits.body_time = std::chrono::milliseconds(100);
  limits.idle_time = std::chrono::milliseconds(100);
  const Served served(limits);
  Client client(served.port());
  client.send(fmt::format("POST /api/v1/check HTTP/1.1\r\nHost: 127.0.0.1\r\n{}Content-Length: 100\r\n\r\n{{",
                          served.authorization(Role::read)));
  EXPECT_TRUE(client.is_closed_by_peer());
  Client idle(served.port());
  idle.send(request_text("GET", "/healthz"));
  EXPECT_EQ(idle.receive().status, 200);
  EXPECT_TRUE(idle.is_closed_by_peer());
}

TEST(HostileLimitsTest, TooManyRequestsAreRefused) {
  Limits limits;
  limits.requests_per_s = 0.001;
  limits.burst = 10;
  const Served served(limits);
  Client client(served.port());
  std::map<int, int> statuses;
  for (int i = 0; i < 15; ++i) {
    client.send(request_text("GET", "/healthz"));
    ++statuses[client.receive().status];
  }
  EXPECT_THAT(statuses, testing::ElementsAre(testing::Pair(200, 10), testing::Pair(429, 5)));
}

TEST(HostileLimitsTest, ThousandsOfConnectionsLeaveRoomForLater) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
  ::setrlimit(RLIMIT_NOFILE, &files);
  Limits limits;
  limits.connections_per_address = 100;
  const Served served(limits);
  {
    std::vector<Client> clients;
    for (int i = 0; i < 2000; ++i) {
      clients.emplace_back(served.port());
      if (!clients.back().is_open()) break;
    }
    EXPECT_EQ(clients.size(), 2000U);
    clients.front().send(request_text("GET", "/healthz"));
    EXPECT_EQ(clients.front().receive().status, 200);
    // One too many hears so, or is closed.
    const auto status = clients.back().receive().status;
    EXPECT_TRUE(status == 429 || status == 0) << status;
  }
  EXPECT_TRUE(tests::eventually([&] { return served.get("/healthz").status == 200; }));
}

TEST(HostileLimitsTest, StopEndsConnectionsThatWait) {
  Served served;
  Client idle(served.port());
  Client stream(served.port());
  stream.send(request_text("GET", "/api/v1/events", served.authorization(Role::read)));
  EXPECT_NE(stream.receive_until("\n\n"), "");
  served.stop();
  EXPECT_TRUE(idle.is_closed_by_peer());
  EXPECT_TRUE(stream.is_closed_by_peer());
}

}  // namespace
}  // namespace troupe::service
