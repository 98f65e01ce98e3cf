// A watch of a run beside a service that is busy when it matters. tests/scripts/watch_test.py has the real one.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <list>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apps/watch/watch.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::apps {
namespace {

/// The lines of a run that was interrupted, resumed, and has diverged then. An event's id is the position behind its line.
const std::string kLines = R"(id: 100
event: ended
data: {"kind":"ended","error":{"code":"interrupted","message":"Ctrl-C"}}

id: 200
event: ended
data: {"kind":"ended","error":{"code":"diverged","message":"too fast"}}

)";

std::string reply_of(unsigned status, const std::string& body) {
  return fmt::format("HTTP/1.1 {} Text\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status, body.size(),
                     body);
}

/// Sends the lines to whoever asks for events. Other connections are served meanwhile, one at a time.
class Service {
 public:
  /// `state`: the reply to the n-th question for the run's state; on the service's thread.
  explicit Service(std::function<std::string(int)> state)
      : state_(std::move(state)), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listening_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { serve(); });
  }
  ~Service() { ::shutdown(listening_.get(), SHUT_RDWR); }  // ends the accept
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  void serve() {
    for (;;) {
      core::FileDescriptor connection(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection.get() < 0) return;
      std::string request;
      for (char c = 0; !request.ends_with("\r\n\r\n") && ::recv(connection.get(), &c, 1, 0) == 1;) request += c;
      const auto target = request.substr(0, request.find('\r'));
      const bool events = target.find("/events") != std::string::npos;
      const auto reply = events ? "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + kLines
                         : target.find("/state") != std::string::npos ? state_(++asked_)
                                                                      : reply_of(404, "");
      ::send(connection.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
      if (events) streams_.push_back(std::move(connection));  // stays open
    }
  }

  std::function<std::string(int)> state_;
  int asked_ = 0;
  std::list<core::FileDescriptor> streams_;
  core::FileDescriptor listening_;
  std::uint16_t port_ = 0;
  std::jthread thread_;  // the last member: it uses the others
};

core::Result<void> watch(std::function<std::string(int)> state, std::chrono::milliseconds patience = {}) {
  const Service service(std::move(state));
  const WatchOptions options{
      .address = {.url = {.tls = false, .host = "127.0.0.1", .port = service.port(), .target = ""},
                  .token = "t",
                  .ca = {}},
      .json = true,
      .patience = patience,
      .tell = nullptr};
  return watch_run(options, "r", {});
}

TEST(WatchRun, AnEarlierEndIsNotTheLastWhereTheServiceIsBusyForAMoment) {
  for (const unsigned busy : {429U, 503U}) {
    const auto end = watch(
        [&](int n) { return n == 1 ? reply_of(busy, "") : reply_of(200, R"({"status":"failed","position":200})"); });
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, core::Errc::diverged) << busy << ": " << end.error().message;
  }
}

TEST(WatchRun, ARunThatIsNoLongerThereHasEnded) {
  const auto end = watch([](int) { return reply_of(404, ""); });
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, core::Errc::interrupted) << end.error().message;
  EXPECT_EQ(end.error().message, "Ctrl-C");
}

TEST(WatchRun, AServiceThatStaysBusyIsNoEndOfTheRun) {
  const auto end = watch([](int) { return reply_of(503, ""); }, std::chrono::milliseconds(1));
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, core::Errc::peer_lost) << end.error().message;
  EXPECT_NE(end.error().message.find("answers 503"), std::string::npos);
}

}  // namespace
}  // namespace troupe::apps
