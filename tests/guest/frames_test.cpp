#include "guest/frames.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include <gtest/gtest.h>

#include "tests/wait.hpp"

namespace troupe::guest {
namespace {

using namespace std::chrono_literals;

/// Frames over one end of a pair of sockets; the test has the other.
class FramesTest : public testing::Test {
 protected:
  FramesTest() { connect(); }
  void connect() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    there_.reset(pair[1]);
    frames_.emplace(core::FileDescriptor(pair[0]));
  }
  void write(std::string_view bytes) const {
    ASSERT_EQ(::write(there_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  static std::string frame(std::uint32_t length, std::uint16_t type, std::uint16_t zero, std::string_view payload) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 4);
    std::memcpy(bytes.data() + 4, &type, 2);
    std::memcpy(bytes.data() + 6, &zero, 2);
    return bytes.append(payload);
  }
  static Frames::Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }
  core::Error refused() {
    auto frame = frames_->receive(in(tests::kPatience));
    EXPECT_FALSE(frame);
    return frame ? core::Error{} : frame.error();
  }

  core::FileDescriptor there_;
  std::optional<Frames> frames_;
};

TEST_F(FramesTest, ArriveInOrderHoweverTheyAreCut) {
  const auto both = frame(5, 1, 0, "hello") + frame(0, 3, 0, "");
  std::thread writer([&] {
    for (const char byte : both) write({&byte, 1});
  });
  const auto first = frames_->receive(in(tests::kPatience)), second = frames_->receive(in(tests::kPatience));
  writer.join();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->type, FrameType::hello);
  EXPECT_EQ(first->text(), "hello");
  EXPECT_EQ(second->type, FrameType::ready);
  EXPECT_EQ(second->text(), "");
}

TEST_F(FramesTest, OnlyTypesOfAGuestAreTaken) {
  for (const std::uint16_t type : {0, 13, 101, 110, 65535}) {
    connect();
    write(frame(0, type, 0, ""));
    const auto error = refused();
    EXPECT_EQ(error.code, core::Errc::data) << type;
    EXPECT_EQ(error.message, "the guest sent a frame of type " + std::to_string(type) +
                                 " with second half-word 0: not the guest protocol");
  }
}

TEST_F(FramesTest, TheSecondHalfWordIsZero) {
  write(frame(0, 3, 1, ""));
  EXPECT_EQ(refused().code, core::Errc::data);
}

TEST_F(FramesTest, ALongerPayloadIsRefusedBeforeItCame) {
  write(frame((16U << 20) + 1, 8, 0, ""));
  const auto error = refused();
  EXPECT_EQ(error.code, core::Errc::data);
  EXPECT_EQ(error.message, "the guest sent STATE of 16777217 bytes, 16777216 are allowed");
}

TEST_F(FramesTest, TheLongestPayloadArrives) {
  const std::string payload(16U << 20, 'x');
  std::thread writer([&] {
    const auto bytes = frame(16U << 20, 8, 0, payload);
    for (std::size_t done = 0; done < bytes.size();)
      done += ::write(there_.get(), bytes.data() + done, bytes.size() - done);
  });
  const auto state = frames_->receive(in(tests::kPatience));
  writer.join();
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->text(), payload);
}

TEST_F(FramesTest, AClosedConnectionIsAnError) {
  there_.reset();
  EXPECT_EQ(refused().code, core::Errc::io);
}

TEST_F(FramesTest, AConnectionThatClosesWithinAFrameIsAnError) {
  write(frame(5, 1, 0, "he"));
  there_.reset();
  EXPECT_EQ(refused().code, core::Errc::io);
}

TEST_F(FramesTest, SilenceIsATimeoutAlsoWithinAFrame) {
  EXPECT_EQ(frames_->receive(in(0ms)).error().code, core::Errc::timeout);
  write(frame(5, 1, 0, "he"));
  EXPECT_EQ(frames_->receive(in(1ms)).error().code, core::Errc::timeout);
}

TEST_F(FramesTest, AGuestThatDoesNotReadIsATimeout) {
  const std::vector<std::byte> payload(kMostPayload);
  const auto sent = frames_->send(FrameType::load, payload, {}, in(1ms));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, core::Errc::timeout);
}

TEST_F(FramesTest, SendingToAClosedConnectionIsAnError) {
  there_.reset();
  EXPECT_EQ(frames_->send(FrameType::last, {}, {}, in(tests::kPatience)).error().code, core::Errc::io);
}

// A child of the guest's holds the connection open: nothing else tells that the guest has ended.
TEST_F(FramesTest, TheEndOfTheProcessEndsAWaitAfterWhatItSent) {
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const core::FileDescriptor there(pair[1]), ended(::eventfd(1, EFD_CLOEXEC));
  Frames frames(core::FileDescriptor(pair[0]), ended.get());
  const auto sent = frame(0, 3, 0, "");
  ASSERT_EQ(::write(there.get(), sent.data(), sent.size()), 8);
  EXPECT_TRUE(frames.receive(in(tests::kPatience)));
  const auto none = frames.receive(in(tests::kPatience));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, core::Errc::io);
}

TEST_F(FramesTest, DescriptorsComeWithTheFirstByte) {
  const core::FileDescriptor file(::eventfd(7, EFD_CLOEXEC));
  const std::array files{file.get(), file.get(), file.get()};
  ASSERT_TRUE(frames_->send(FrameType::welcome, std::as_bytes(std::span("{}", 2)), files, in(tests::kPatience)));
  char first = 0;
  iovec part{&first, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(3 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ASSERT_EQ(::recvmsg(there_.get(), &message, MSG_CMSG_CLOEXEC), 1);
  ASSERT_NE(CMSG_FIRSTHDR(&message), nullptr);
  ASSERT_EQ(CMSG_FIRSTHDR(&message)->cmsg_len, CMSG_LEN(3 * sizeof(int)));
  std::array<int, 3> got{};
  std::memcpy(got.data(), CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
  std::uint64_t value = 0;
  EXPECT_EQ(::read(got[1], &value, sizeof(value)), 8);
  EXPECT_EQ(value, 7U);
  for (const int descriptor : got) ::close(descriptor);
  std::array<char, 9> rest{};
  ASSERT_EQ(::read(there_.get(), rest.data(), rest.size()), 9);
  EXPECT_EQ(first, 2);  // the length, little-endian
  EXPECT_EQ(rest[3], 101);
  EXPECT_EQ(std::string_view(rest.data() + 7, 2), "{}");
}

}  // namespace
}  // namespace troupe::guest
