#include "transport/tcp/protocol/frame.hpp"

#include <gtest/gtest.h>

#include "transport/net/refusal.hpp"
#include "transport/tcp/protocol/hello.hpp"

namespace troupe::transport {
namespace {

constexpr Frame kOffer{.type = FrameType::offer,
                       .length = 5,
                       .message = 0x0102030405060708,
                       .tag = 0x1112131415161718,
                       .size = 5,
                       .payload_hash = 0x2122232425262728,
                       .ack = 0x3132333435363738};

TEST(TcpFrame, HasTheDocumentedLayout) {
  const FrameBytes bytes = encode(kOffer);
  // 3: type 5; 4: length; 8: message, least significant byte first.
  EXPECT_EQ(bytes[3], std::byte{5});
  EXPECT_EQ(bytes[4], std::byte{5});
  EXPECT_EQ(bytes[8], std::byte{0x08});
  EXPECT_EQ(bytes[16], std::byte{0x18});
  EXPECT_EQ(bytes[32], std::byte{0x28});
  EXPECT_EQ(bytes[40], std::byte{0x38});
  const auto frame = decode(bytes.data());
  ASSERT_TRUE(frame) << frame.error().message;
  EXPECT_EQ(frame->message, kOffer.message);
  EXPECT_EQ(frame->tag, kOffer.tag);
  EXPECT_EQ(frame->size, kOffer.size);
  EXPECT_EQ(frame->length, kOffer.length);
  EXPECT_EQ(frame->payload_hash, kOffer.payload_hash);
  EXPECT_EQ(frame->ack, kOffer.ack);
}

TEST(TcpFrame, EveryFlippedBitIsNoticed) {
  const FrameBytes good = encode(kOffer);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    FrameBytes bytes = good;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto frame = decode(bytes.data());
    ASSERT_FALSE(frame) << bit;
    EXPECT_EQ(frame.error().code, core::Errc::corrupt);
  }
}

TEST(TcpFrame, AnAbsurdLengthIsRefusedThoughItsHashIsRight) {
  for (unsigned type = 0; type < 256; ++type) {
    const FrameBytes bytes = encode({.type = static_cast<FrameType>(type), .length = 0xffffffff});
    EXPECT_FALSE(decode(bytes.data())) << type;
  }
  for (const FrameType type : {FrameType::done, FrameType::want, FrameType::heartbeat}) {
    const FrameBytes bytes = encode({.type = type, .length = 1});
    EXPECT_FALSE(decode(bytes.data()));
  }
  const FrameBytes most = encode({.type = FrameType::chunk, .length = kChunkBytes});
  EXPECT_TRUE(decode(most.data()));
}

TEST(TcpHello, RoundTripAndEveryTruncation) {
  Hello hello;
  hello.version = 1;
  hello.attempt = 3;
  hello.connection = 6;
  hello.token = new_session_token();
  hello.peer_token = new_session_token();
  hello.received = 7;
  hello.window = {.messages = 4, .eager_bytes = 5};
  hello.from = "tcp:127.0.0.1:1/p1/a";
  hello.to = "tcp:127.0.0.1:2/p2/b";
  const auto bytes = encode(hello);
  const auto read = decode_hello(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->attempt, 3u);
  EXPECT_EQ(read->connection, 6u);
  EXPECT_TRUE(read->token == hello.token);
  EXPECT_TRUE(read->peer_token == hello.peer_token);
  EXPECT_FALSE(read->token == read->peer_token);
  EXPECT_EQ(read->received, 7u);
  EXPECT_EQ(read->window.messages, 4u);
  EXPECT_EQ(read->window.eager_bytes, 5u);
  EXPECT_EQ(read->from, hello.from);
  EXPECT_EQ(read->to, hello.to);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_hello(std::span(bytes).first(size))) << size;
}

TEST(TcpHello, TextThatIsNotPrintableIsRefused) {
  Hello hello;
  hello.token = new_session_token();
  hello.window.messages = 1;
  hello.from = "\x1b[31m";
  EXPECT_FALSE(decode_hello(encode(hello)));
  const std::string text = "bell\a";
  EXPECT_EQ(printable_text(std::as_bytes(std::span(text))), "bell?");
}

}  // namespace
}  // namespace troupe::transport
