// Which streams FrameGuard ends before CAF reads them.
#include "actors/control/frame_guard.hpp"

#include <string>

#include <caf/io/basp/message_type.hpp>
#include <gtest/gtest.h>

namespace troupe::actors {
namespace {

using caf::io::basp::message_type;

/// A header that announces `payload` bytes; its other fields do not matter here.
std::string header(message_type type, std::uint32_t payload) {
  std::string bytes(FrameGuard::kHeaderBytes, '\0');
  bytes[0] = static_cast<char>(type);
  for (std::size_t i = 0; i < 4; ++i) bytes[4 + i] = static_cast<char>(payload >> (24 - 8 * i));
  return bytes;
}
std::string message(message_type type, std::uint32_t payload) {
  return header(type, payload) + std::string(payload, 'x');
}

const std::string kGreeting = message(message_type::client_handshake, 21);

std::string verdict(security::TlsSide side, const std::string& bytes) {
  FrameGuard guard(side);
  const auto wrong = guard.watch(bytes);
  return std::string(wrong.value_or(""));
}
std::string verdict(const std::string& bytes) { return verdict(security::TlsSide::accepted, bytes); }

TEST(FrameGuard, AcceptsMembersMessages) {
  const std::string talk = kGreeting + message(message_type::direct_message, 300) +
                           message(message_type::heartbeat, 0) + kGreeting +
                           message(message_type::monitor_message, 40) + message(message_type::down_message, 41) +
                           message(message_type::routed_message, 1);
  EXPECT_EQ(verdict(talk), "");
  FrameGuard in_parts(security::TlsSide::accepted);
  for (const char byte : talk) EXPECT_FALSE(in_parts.watch({&byte, 1}));
  EXPECT_EQ(verdict(security::TlsSide::dialled,
                    message(message_type::server_handshake, 70) + message(message_type::heartbeat, 0)),
            "");
}

TEST(FrameGuard, ReportsWhenTheHandshakeIsComplete) {
  FrameGuard guard(security::TlsSide::accepted);
  EXPECT_FALSE(guard.watch(std::span(kGreeting).first(kGreeting.size() - 1)));
  EXPECT_FALSE(guard.greeted());
  EXPECT_FALSE(guard.watch(std::span(kGreeting).last(1)));
  EXPECT_TRUE(guard.greeted());
}

TEST(FrameGuard, TheFirstMessageMustBeTheHandshake) {
  EXPECT_EQ(verdict(message(message_type::direct_message, 8)), "it does not speak CAF's protocol");
  EXPECT_EQ(verdict(message(message_type::heartbeat, 0)), "it does not speak CAF's protocol");
  EXPECT_EQ(verdict(message(message_type::server_handshake, 70)), "it does not speak CAF's protocol");
  EXPECT_EQ(verdict(security::TlsSide::dialled, kGreeting), "it does not speak CAF's protocol");
  EXPECT_EQ(verdict("GET "), "it does not speak CAF's protocol");
  EXPECT_EQ(verdict("\x15\x03\x01"), "it speaks TLS");  // an alert, shorter than a header
}

TEST(FrameGuard, InvalidLengthsAreRefused) {
  EXPECT_EQ(verdict(header(message_type::client_handshake, 0)), "invalid handshake length");
  EXPECT_EQ(verdict(header(message_type::client_handshake, FrameGuard::kHandshakeBytes + 1)),
            "invalid handshake length");
  EXPECT_EQ(verdict(kGreeting + header(message_type::client_handshake, 0)), "invalid handshake length");
  for (const auto type : {message_type::direct_message, message_type::routed_message, message_type::monitor_message,
                          message_type::down_message}) {
    EXPECT_EQ(verdict(kGreeting + header(type, 0)), "invalid message length");
    EXPECT_EQ(verdict(kGreeting + header(type, FrameGuard::kMessageBytes + 1)), "invalid message length");
    EXPECT_EQ(verdict(kGreeting + header(type, FrameGuard::kMessageBytes)), "");
  }
  EXPECT_EQ(verdict(kGreeting + header(message_type::heartbeat, 1)), "its heartbeat has a payload");
}

TEST(FrameGuard, AnotherHandshakeNamesTheSameNode) {
  std::string other = kGreeting;
  other.back() = 'y';
  const std::string why = "its second handshake names another node than its first";
  EXPECT_EQ(verdict(kGreeting + message(message_type::direct_message, 30) + other), why);
  EXPECT_EQ(verdict(kGreeting + header(message_type::client_handshake, 20)), why);
  EXPECT_EQ(verdict(kGreeting + header(message_type::client_handshake, 22)), why);
  EXPECT_EQ(verdict(kGreeting + kGreeting + kGreeting), "");
  FrameGuard in_parts(security::TlsSide::accepted);
  const std::string twice = kGreeting + other;
  for (std::size_t i = 0; i + 1 < twice.size(); ++i) EXPECT_FALSE(in_parts.watch({&twice[i], 1}));
  EXPECT_TRUE(in_parts.watch({&twice.back(), 1}));
}

TEST(FrameGuard, MessagesOutOfTurnAreRefused) {
  EXPECT_EQ(verdict(kGreeting + message(message_type::server_handshake, 70)), "invalid handshake");
  const std::string server = message(message_type::server_handshake, 70);
  EXPECT_EQ(verdict(security::TlsSide::dialled, server + server), "invalid handshake");
  EXPECT_EQ(verdict(kGreeting + header(static_cast<message_type>(7), 0)), "it sends messages of an unknown kind");
}

}  // namespace
}  // namespace troupe::actors
