/// What a sink holds is gone when its client has the answer: one that asks again at once finds it free.
#include <atomic>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "service/http/server.hpp"
#include "tests/service/client.hpp"
#include "tests/wait.hpp"

namespace troupe::service {
namespace {

/// How a request with a sink comes to its answer.
enum class Way : std::uint8_t { handled, handler_refuses, handler_throws, write_refuses, write_throws, too_large };

struct Case {
  Way way;
  int status;
  const char* name;
};

class BodySinkTest : public testing::TestWithParam<Case> {
 protected:
  /// Ends only when the client has its answer, or after a time in which it has none.
  class SlowEnd final : public BodySink {
   public:
    SlowEnd(BodySinkTest& test, Way way) : test_(test), way_(way) {}
    ~SlowEnd() override {
      constexpr std::chrono::milliseconds kTime{100};
      test_.answered_before_ = tests::eventually([&] { return test_.answered_.load(); }, kTime);
      test_.ended_ = true;
    }
    SlowEnd(const SlowEnd&) = delete;
    SlowEnd& operator=(const SlowEnd&) = delete;
    std::optional<Response> write(std::string_view) override {
      if (way_ == Way::write_throws) throw std::runtime_error("out of order");
      return way_ == Way::write_refuses ? std::optional(failure(507, "no_space", "full")) : std::nullopt;
    }

   private:
    BodySinkTest& test_;
    const Way way_;
  };

  BodySinkTest() {
    const auto way = GetParam().way;
    router_.add(
        {.method = Method::put,
         .pattern = "/body",
         .role = Role::none,
         .where = Where::unpacking,
         .handler =
             [way](const Request&) {
               if (way == Way::handler_throws) throw std::runtime_error("out of order");
               return way == Way::handled ? answer_text("taken") : failure(400, "data", "wrong");
             },
         .open_body = [this, way](const Request&, std::optional<std::uint64_t>)
             -> tl::expected<std::unique_ptr<BodySink>, Response> { return std::make_unique<SlowEnd>(*this, way); },
         .body_bytes = 1000});
  }

  std::atomic<bool> answered_{false}, answered_before_{false}, ended_{false};
  Router router_;
  Counters counters_;
  Worker uploads_, unpacking_;
  std::unique_ptr<HttpServer> server_ =
      HttpServer::start(
          {.listen = {"127.0.0.1", 0}, .workers = {{Where::uploads, &uploads_}, {Where::unpacking, &unpacking_}}},
          router_, counters_)
          .value();
};

TEST_P(BodySinkTest, TheAnswerLeavesAfterTheEndOfTheSink) {
  Client client(server_->port());
  const std::size_t bytes = GetParam().way == Way::too_large ? 2000 : 100;
  client.send(
      fmt::format("PUT /body HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                  bytes, std::string(bytes, 'x')));
  const auto reply = client.receive();
  EXPECT_TRUE(ended_);
  answered_ = true;
  EXPECT_EQ(reply.status, GetParam().status) << reply.body;
  server_->stop();
  uploads_.stop();
  unpacking_.stop();
  EXPECT_FALSE(answered_before_);
}

INSTANTIATE_TEST_SUITE_P(
    EachWay, BodySinkTest,
    testing::Values(Case{Way::handled, 200, "Handled"}, Case{Way::handler_refuses, 400, "HandlerRefuses"},
                    Case{Way::handler_throws, 500, "HandlerThrows"}, Case{Way::write_refuses, 507, "WriteRefuses"},
                    Case{Way::write_throws, 500, "WriteThrows"}, Case{Way::too_large, 413, "TooLarge"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace troupe::service
