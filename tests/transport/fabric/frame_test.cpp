#include "transport/fabric/frame.hpp"

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

std::vector<std::byte> bytes(std::size_t size) { return std::vector<std::byte>(size, std::byte{7}); }

TEST(FabricFrame, RoundTrips) {
  const FrameHead head{.kind = FrameKind::offer, .to = 1, .from = 2, .operation = 3, .tag = 4, .size = 5, .number = 6};
  const auto body = bytes(5);
  const auto coded = encode(head, body);
  EXPECT_EQ(coded.size(), 72u + 5u);
  const auto frame = parse(coded);
  ASSERT_TRUE(frame);
  EXPECT_FALSE(frame->head_damaged || frame->body_damaged);
  EXPECT_EQ(frame->head.kind, FrameKind::offer);
  EXPECT_EQ(frame->head.to, 1u);
  EXPECT_EQ(frame->head.from, 2u);
  EXPECT_EQ(frame->head.operation, 3u);
  EXPECT_EQ(frame->head.tag, 4u);
  EXPECT_EQ(frame->head.size, 5u);
  EXPECT_EQ(frame->head.number, 6u);
  EXPECT_TRUE(std::equal(frame->body.begin(), frame->body.end(), body.begin(), body.end()));
}

TEST(FabricFrame, InvalidFramesAreRefused) {
  const auto good = encode({.kind = FrameKind::done});
  EXPECT_TRUE(parse(good));
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse(std::span(good).first(size))) << size;
  EXPECT_FALSE(parse(encode({.kind = static_cast<FrameKind>(kFrameKinds)})));
}

// The head ends at byte 72. The rest is the body; its damage leaves the head valid.
TEST(FabricFrame, EveryFlippedBitIsNoticedAndAttributedToHeadOrBody) {
  for (std::uint32_t kind = 0; kind < kFrameKinds; ++kind) {
    const bool carries = kind <= static_cast<std::uint32_t>(FrameKind::offer);
    const auto good = encode({.kind = static_cast<FrameKind>(kind), .to = 1, .size = 40}, bytes(carries ? 40 : 0));
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      auto bad = good;
      bad[bit / 8] ^= std::byte{1} << (bit % 8);
      const auto frame = parse(bad);
      ASSERT_TRUE(frame) << kind << " " << bit;
      ASSERT_EQ(frame->head_damaged, bit < 8 * 72) << kind << " " << bit;
      ASSERT_TRUE(frame->head_damaged || frame->body_damaged) << kind << " " << bit;
    }
  }
}

TEST(FabricFrame, ATruncatedBodyIsDamaged) {
  const auto good = encode({.kind = FrameKind::offer, .size = 40}, bytes(40));
  for (std::size_t size = 72; size < good.size(); ++size) {
    const auto frame = parse(std::span(good).first(size));
    ASSERT_TRUE(frame);
    EXPECT_TRUE(frame->body_damaged && !frame->head_damaged) << size;
  }
}

TEST(FabricFrame, AnOfferCarriesAShortMessageWhole) {
  EXPECT_FALSE(parse(encode({.kind = FrameKind::offer, .size = 5}, bytes(4))));
  EXPECT_FALSE(parse(encode({.kind = FrameKind::offer, .size = 5}, bytes(6))));
  EXPECT_TRUE(parse(encode({.kind = FrameKind::offer, .size = kShortMessage}, bytes(kShortMessage))));
  EXPECT_TRUE(parse(encode({.kind = FrameKind::offer, .size = kShortMessage + 1})));
  EXPECT_FALSE(parse(encode({.kind = FrameKind::offer, .size = kShortMessage + 1}, bytes(1))));
}

TEST(FabricFrame, TextsRoundTripAndInvalidOnesAreRefused) {
  for (const auto& [first, second] : {std::pair("ucx:01/a", "secret"), {"", "why"}, {"a", ""}, {"", ""}}) {
    const auto texts = parse_texts(encode(first, second));
    ASSERT_TRUE(texts);
    EXPECT_EQ(texts->first, first);
    EXPECT_EQ(texts->second, second);
  }
  auto coded = encode("abc", "d");
  EXPECT_FALSE(parse_texts(std::span(coded).first(3)));
  EXPECT_FALSE(parse_texts(std::span(coded).first(5)));  // the first text is truncated
  coded[3] = std::byte{0xff};
  EXPECT_FALSE(parse_texts(coded));
}

}  // namespace
}  // namespace troupe::transport
