#include <semaphore>

#include <gmock/gmock.h>

#include "service/http/server.hpp"
#include "tests/service/client.hpp"

namespace troupe::service {
namespace {

/// A handler that answers when the test lets it.
class AnswerTimeTest : public testing::Test {
 protected:
  AnswerTimeTest() {
    for (const auto method : {Method::get, Method::put})
      router_.add({.method = method,
                   .pattern = "/slow",
                   .role = Role::none,
                   .where = Where::files,
                   .handler =
                       [this](const Request&) {
                         go_on_.acquire();
                         return answer_text("late");
                       },
                   .answer_time = std::chrono::milliseconds(50)});
    router_.add({.method = Method::get,
                 .pattern = "/quick",
                 .role = Role::none,
                 .where = Where::files,
                 .handler = [](const Request&) { return answer_text("here"); }});
  }
  Reply late_reply(std::string_view method) {
    Client client(server_->port());
    client.send(request_text(method, "/slow"));
    auto reply = client.receive();
    go_on_.release();
    client.send(request_text("GET", "/quick"));
    EXPECT_EQ(client.receive().body, "here") << "and not the late answer";
    return reply;
  }
  std::counting_semaphore<> go_on_{0};
  Router router_;
  Counters counters_;
  Worker worker_;
  std::unique_ptr<HttpServer> server_ =
      HttpServer::start({.listen = {"127.0.0.1", 0}, .workers = {{Where::files, &worker_}}}, router_, counters_)
          .value();
};

TEST_F(AnswerTimeTest, ALateAnswerIs503AndNeverSent) {
  const auto reply = late_reply("GET");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, testing::HasSubstr("try again"));
}

TEST_F(AnswerTimeTest, WhoAskedForAChangeHearsThatItMayStillBeMade) {
  const auto reply = late_reply("PUT");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, testing::HasSubstr("may still be made"));
}

}  // namespace
}  // namespace troupe::service
