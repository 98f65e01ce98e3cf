#include "guest/listener.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <future>
#include <vector>

#include <gtest/gtest.h>

#include "tests/wait.hpp"

namespace troupe::guest {
namespace {

core::FileDescriptor connected_to(const std::string& name) {
  core::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length), 0) << std::strerror(errno);
  return socket;
}

/// A frame as docs/formats/guest.md has it.
std::string frame(std::uint16_t type, const std::string& payload) {
  std::string bytes(8, '\0');
  const auto length = static_cast<std::uint32_t>(payload.size());
  std::memcpy(bytes.data(), &length, 4);
  std::memcpy(bytes.data() + 4, &type, 2);
  return bytes + payload;
}

std::string hello(const std::string& token, const std::string& name = "w") {
  return frame(1, R"({"protocol":1,"token":")" + token + R"(","tensors":[[")" + name + R"(",[2]]],"statistics":[]})");
}

void say(const core::FileDescriptor& socket, const std::string& bytes) {
  EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

/// The program is a shell that does nothing. The connections come from this process, which is not a descendant of it.
class Listener : public testing::Test {
 protected:
  Listener() {
    auto opened = GuestListener::open();
    EXPECT_TRUE(opened) << opened.error().message;
    listener_ = std::make_unique<GuestListener>(std::move(*opened));
    auto started = GuestProcess::start({"sleep", "1000"}, {}, {});
    EXPECT_TRUE(started) << started.error().message;
    process_ = std::move(*started);
  }
  [[nodiscard]] core::Result<GuestListener::Arrival> await(std::chrono::milliseconds patience = tests::kPatience) {
    return listener_->await(*process_, std::chrono::steady_clock::now() + patience);
  }

  std::unique_ptr<GuestListener> listener_;
  std::unique_ptr<GuestProcess> process_;
};

TEST_F(Listener, TakesTheConnectionWithItsToken) {
  const auto guest = connected_to(listener_->name());
  say(guest, hello(listener_->token(), "mine"));
  const auto arrival = await();
  ASSERT_TRUE(arrival) << arrival.error().message;
  EXPECT_EQ(arrival->introduction.tensors.at(0).name, "mine");
}

TEST_F(Listener, StraysDisturbNothing) {
  std::vector<core::FileDescriptor> strays;
  const auto stray = [&](const std::string& bytes) {
    strays.push_back(connected_to(listener_->name()));
    say(strays.back(), bytes);
  };
  stray("");                                                  // is silent
  stray(hello(listener_->token()).substr(0, 20));             // stops within its HELLO
  stray(hello("0123456789abcdef0123456789abcdef"));           // another token
  stray(frame(1, "no JSON"));                                 //
  stray(frame(3, ""));                                        // READY
  stray("GET / HTTP/1.1\r\n\r\n");                            // another protocol
  stray(std::string("\xff\xff\xff\xff\x01\x00\x00\x00", 8));  // a length that is not allowed
  stray("");
  strays.back().reset();  // leaves
  const auto guest = connected_to(listener_->name());
  say(guest, hello(listener_->token(), "mine"));
  const auto arrival = await();
  ASSERT_TRUE(arrival) << arrival.error().message;
  EXPECT_EQ(arrival->introduction.tensors.at(0).name, "mine");
}

TEST_F(Listener, ManyStraysDoNotHoldUpTheGuest) {
  std::vector<core::FileDescriptor> strays;
  auto arrival = std::async(std::launch::async, [this] { return await(); });
  for (int k = 0; k < 200; ++k) strays.push_back(connected_to(listener_->name()));  // each is silent
  const auto guest = connected_to(listener_->name());
  say(guest, hello(listener_->token(), "mine"));
  ASSERT_EQ(arrival.wait_for(tests::kPatience), std::future_status::ready);
  EXPECT_TRUE(arrival.get());
}

TEST_F(Listener, StraysAreNotTheProgram) {
  const auto stray = connected_to(listener_->name());
  say(stray, frame(1, "no JSON"));
  const auto arrival = await(std::chrono::milliseconds(20));
  ASSERT_FALSE(arrival);
  EXPECT_EQ(arrival.error().code, core::Errc::timeout);
  EXPECT_EQ(arrival.error().message, "the program has not called troupe.join");
}

}  // namespace
}  // namespace troupe::guest
