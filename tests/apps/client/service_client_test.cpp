#include "apps/client/service_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <ctime>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "apps/client/reconnecting.hpp"
#include "core/file_descriptor.hpp"
#include "service/http/browser_tls.hpp"
#include "tests/service/served.hpp"
#include "tests/wait.hpp"
#include "transport/security/authority.hpp"

namespace troupe::apps {
namespace {

using service::Role;
using service::Served;
using std::chrono::milliseconds;

ServiceAddress address_at(std::uint16_t port, const std::string& token) {
  return {.url = {.tls = false, .host = "127.0.0.1", .port = port, .target = ""}, .token = token, .ca = {}};
}
ServiceAddress address_of(const Served& served) { return address_at(served.port(), served.token(Role::read)); }

const std::string kEvents = "/api/v1/runs/" + std::string(service::kRun) + "/events";

TEST(ServiceClientTest, AnswersComeOverOneConnection) {
  const Served served;
  ServiceClient client(address_of(served), {});
  for (int i = 0; i < 3; ++i) {
    const auto runs = client.get("/api/v1/runs");
    ASSERT_TRUE(runs.has_value()) << runs.error().message;
    EXPECT_EQ((*runs)["total"], 1);
  }
}

TEST(ServiceClientTest, AConnectionThatTheServiceHasClosedIsMadeAgain) {
  service::Limits limits;
  limits.idle_time = milliseconds(50);
  const Served served(limits);
  ServiceClient client(address_of(served), {});
  ASSERT_TRUE(client.get("/api/v1/runs").has_value());
  const auto closed = [&] {
    const auto text = served.get("/metrics").body;
    return text.find("troupe_http_connections 1\n") != std::string::npos;  // of the one that asks
  };
  ASSERT_TRUE(tests::eventually(closed));
  EXPECT_TRUE(client.get("/api/v1/runs").has_value());
}

TEST(ServiceClientTest, RefusalsSayWhatToDo) {
  const Served served;
  ServiceClient wrong(address_at(served.port(), "nonsense"), {});
  const auto refused = wrong.get("/api/v1/runs");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, core::Errc::config);
  EXPECT_NE(refused.error().message.find("TROUPE_TOKEN"), std::string::npos);
  ServiceClient client(address_of(served), {});
  const auto unknown = client.get("/api/v1/runs/none/state");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, core::Errc::config);
  EXPECT_NE(unknown.error().message.find("none"), std::string::npos);
  EXPECT_FALSE(may_pass(unknown.error()));
}

/// Takes connections and never says anything, or refuses them: its port is no other program's meanwhile.
class Silent {
 public:
  explicit Silent(bool listens = true) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    if (listens) {
      EXPECT_EQ(::listen(socket_.get(), 8), 0);
    }
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port = ntohs(address.sin_port);
  }
  std::uint16_t port = 0;

 private:
  core::FileDescriptor socket_;
};

TEST(ServiceClientTest, NobodyThereMayPass) {
  const Silent nobody(false);
  ServiceClient client(address_at(nobody.port, "x"), {});
  const auto answer = client.get("/api/v1/runs");
  ASSERT_FALSE(answer.has_value());
  EXPECT_TRUE(may_pass(answer.error())) << answer.error().message;
}

TEST(ServiceClientTest, SilenceEndsAtTheDeadline) {
  const Silent silent;
  ServiceClient client(address_at(silent.port, "x"), {}, {.answer = milliseconds(100)});
  const auto answer = client.get("/api/v1/runs");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, core::Errc::timeout);
}

TEST(ServiceClientTest, ARequestToStopEndsAWait) {
  const Silent silent;
  std::stop_source stop;
  core::Result<nlohmann::ordered_json> answer;
  {
    std::jthread asking([&] {
      ServiceClient client(address_at(silent.port, "x"), stop.get_token());
      answer = client.get("/api/v1/runs");
    });
    stop.request_stop();
  }
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, core::Errc::interrupted);
}

TEST(ServiceClientTest, EventsComeFromBehindTheLastOne) {
  const Served served;
  std::stop_source stop;
  std::vector<ServerEvent> seen;
  const auto collect = [&](std::string& id, std::size_t count) {
    ServiceClient client(address_of(served), stop.get_token());
    seen.clear();
    const auto result = client.follow(kEvents + "?from=0", id, [&](const ServerEvent& event) {
      seen.push_back(event);
      if (seen.size() == count) stop.request_stop();
    });
    EXPECT_EQ(result.error().code, core::Errc::interrupted);
    stop = std::stop_source();
  };
  std::string id;
  collect(id, 2);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].kind, "started");
  EXPECT_EQ(seen[1].kind, "epoch");
  EXPECT_EQ(id, seen[1].id);
  collect(id, 3);  // the other epochs and the end
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[2].kind, "ended");
}

TEST(FollowEventsTest, EachLineComesOnceOverARestart) {
  auto first = std::make_unique<Served>();
  const auto port = first->port();
  std::stop_source stop;
  std::vector<std::string> kinds;
  int lost = 0;
  std::string id;
  ServiceClient client(address_at(port, first->token(Role::read)), stop.get_token());
  const FollowOptions options{.on_event =
                                  [&](const ServerEvent& event) {
                                    kinds.push_back(event.kind);
                                    if (event.kind == "ended") first->stop();
                                  },
                              .on_lost =
                                  [&](const core::Error& error, milliseconds) {
                                    EXPECT_TRUE(may_pass(error)) << error.message;
                                    if (++lost == 3) stop.request_stop();
                                  },
                              .first_pause = milliseconds(1),
                              .longest_pause = milliseconds(1)};
  EXPECT_TRUE(follow_events(client, kEvents + "?from=0", id, options, stop.get_token()).has_value());
  EXPECT_EQ(kinds, (std::vector<std::string>{"started", "epoch", "epoch", "epoch", "ended"}));
}

TEST(FollowEventsTest, ItGivesUpAfterItsPatience) {
  const Silent nobody(false);
  ServiceClient client(address_at(nobody.port, "x"), {});
  std::string id;
  const FollowOptions options{.on_event = [](const ServerEvent&) {},
                              .patience = milliseconds(20),
                              .first_pause = milliseconds(5),
                              .longest_pause = milliseconds(5)};
  const auto result = follow_events(client, kEvents, id, options, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, core::Errc::peer_lost);
  EXPECT_NE(result.error().message.find("given up"), std::string::npos);
}

class ServiceClientTlsTest : public testing::Test {
 protected:
  ServiceClientTlsTest() {
    EXPECT_TRUE(security::create_authority(certificates_.path(), std::time(nullptr), false));
    EXPECT_TRUE(security::create_authority(others_.path(), std::time(nullptr), false));
    files_ = security::create_node(certificates_.path(), "n1", {}, std::time(nullptr), false).value();
    served_ = std::make_unique<Served>(service::Limits{}, Served::one_run,
                                       service::make_browser_tls(files_, std::time(nullptr)).value());
  }
  [[nodiscard]] core::Result<nlohmann::ordered_json> ask(const std::string& host, const std::string& ca) const {
    ServiceAddress address{.url = {.tls = true, .host = host, .port = served_->port(), .target = ""},
                           .token = served_->token(Role::read),
                           .ca = ca};
    ServiceClient client(address, {});
    return client.get("/api/v1/runs");
  }
  const tests::Folder certificates_, others_;
  security::TlsFiles files_;
  std::unique_ptr<Served> served_;
};

TEST_F(ServiceClientTlsTest, TheAuthorityThatTheUserNamesIsTrusted) {
  const auto answer = ask("127.0.0.1", files_.ca);
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_TRUE(ask("localhost", files_.ca).has_value());
}

TEST_F(ServiceClientTlsTest, AnotherAuthorityIsNotTrusted) {
  for (const auto& ca : {others_.file("ca.pem"), std::string()}) {
    const auto answer = ask("127.0.0.1", ca);
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, core::Errc::config);
    EXPECT_NE(answer.error().message.find("cannot be trusted"), std::string::npos) << answer.error().message;
  }
}

TEST_F(ServiceClientTlsTest, ACertificateForAnotherNameIsNotTrusted) {
  const auto answer = ask("127.1", files_.ca);  // it resolves to 127.0.0.1, which the certificate names, but not so
  ASSERT_FALSE(answer.has_value());
  EXPECT_NE(answer.error().message.find("cannot be trusted"), std::string::npos) << answer.error().message;
}

TEST_F(ServiceClientTlsTest, AFileWithoutCertificatesIsNamed) {
  const auto answer = ask("127.0.0.1", certificates_.file("none.pem"));
  ASSERT_FALSE(answer.has_value());
  EXPECT_NE(answer.error().message.find("none.pem"), std::string::npos);
}

}  // namespace
}  // namespace troupe::apps
