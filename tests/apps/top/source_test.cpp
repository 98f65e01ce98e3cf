#include <poll.h>

#include <fstream>

#include <gtest/gtest.h>

#include "apps/top/live_source.hpp"
#include "tests/service/served.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

ServiceAddress address_of(const service::Served& served) {
  return {.url = {.tls = false, .host = "127.0.0.1", .port = served.port(), .target = ""},
          .token = served.token(service::Role::read),
          .ca = {}};
}

void add_line(const tests::Folder& folder, const std::string& line) {
  std::ofstream(folder.file(std::string(service::kRun) + "/metrics.jsonl"), std::ios::app) << line << std::flush;
}

constexpr auto kNote = "{\"kind\":\"note\",\"t\":9,\"level\":\"info\",\"text\":\"news\"}\n";

bool has_note(const LiveView& view) {
  return view.state.is_object() && !view.state["notes"].empty() && view.state["notes"].back()["text"] == "news";
}

class Following {
 public:
  explicit Following(std::unique_ptr<LiveSource> source)
      : source_(std::move(source)), thread_([this](const std::stop_token& stop) { source_->follow(latest, stop); }) {}
  LatestView latest;

 private:
  std::unique_ptr<LiveSource> source_;
  std::jthread thread_;
};

TEST(LiveSourceTest, ADirectoryAndAServiceSayTheSame) {
  const service::Served served;
  const auto local = local_source(served.folder().path(), std::string(service::kRun))->once();
  const auto remote = service_source(address_of(served), std::string(service::kRun))->once();
  ASSERT_TRUE(local.has_value()) << local.error().message;
  ASSERT_TRUE(remote.has_value()) << remote.error().message;
  EXPECT_EQ(local->state, remote->state);
  EXPECT_EQ(local->run, remote->run);
  EXPECT_EQ(local->state["status"], "done");
}

TEST(LiveSourceTest, NewLinesOfADirectoryAreSeen) {
  const service::Served served;
  Following following(local_source(served.folder().path(), std::string(service::kRun)));
  ASSERT_TRUE(tests::eventually([&] { return following.latest.get().state.is_object(); }));
  add_line(served.folder(), kNote);
  EXPECT_TRUE(tests::eventually([&] { return has_note(following.latest.get()); }));
  pollfd waker{.fd = following.latest.waker(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&waker, 1, 0), 1);
}

TEST(LiveSourceTest, NewLinesOfAServicesRunAreSeen) {
  const service::Served served;
  Following following(service_source(address_of(served), std::string(service::kRun)));
  ASSERT_TRUE(tests::eventually([&] { return following.latest.get().state.is_object(); }));
  add_line(served.folder(), kNote);
  EXPECT_TRUE(tests::eventually([&] { return has_note(following.latest.get()); }));
}

TEST(LiveSourceTest, AServiceThatEndsIsAProblemAndNoFailure) {
  service::Served served;
  Following following(service_source(address_of(served), std::string(service::kRun)));
  ASSERT_TRUE(tests::eventually([&] { return following.latest.get().state.is_object(); }));
  served.stop();
  EXPECT_TRUE(tests::eventually([&] { return !following.latest.get().problem.empty(); }));
  EXPECT_TRUE(following.latest.get().state.is_object()) << "what was known stays";
  EXPECT_FALSE(following.latest.failure().has_value());
}

TEST(LiveSourceTest, AWrongTokenOrRunIsAFailure) {
  const service::Served served;
  auto address = address_of(served);
  Following unknown(service_source(address, "none"));
  ASSERT_TRUE(tests::eventually([&] { return unknown.latest.failure().has_value(); }));
  EXPECT_EQ(unknown.latest.failure()->code, core::Errc::config);
  address.token = "wrong";
  Following refused(service_source(address, std::string(service::kRun)));
  ASSERT_TRUE(tests::eventually([&] { return refused.latest.failure().has_value(); }));
  EXPECT_NE(refused.latest.failure()->message.find("--token-file"), std::string::npos);
}

TEST(LiveSourceTest, WithoutARunningRunAServiceHasNone) {
  const service::Served served;  // its only run is done
  const auto view = service_source(address_of(served), "")->once();
  ASSERT_FALSE(view.has_value());
  EXPECT_EQ(view.error().code, core::Errc::config);
  EXPECT_NE(view.error().message.find("no run is running"), std::string::npos);
}

}  // namespace
}  // namespace troupe::apps
