#include "transport/fabric_frame.hpp"

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

std::vector<std::byte> bytes(std::size_t size) { return std::vector<std::byte>(size, std::byte{7}); }

TEST(FabricFrame, ComesBackAsItWas) {
  const FrameHead head{.kind = FrameKind::offer, .to = 1, .from = 2, .operation = 3, .tag = 4, .size = 5};
  const auto body = bytes(5);
  const auto coded = encode(head, body);
  EXPECT_EQ(coded.size(), 48u + 5u);
  const auto frame = parse(coded);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->head.kind, FrameKind::offer);
  EXPECT_EQ(frame->head.to, 1u);
  EXPECT_EQ(frame->head.from, 2u);
  EXPECT_EQ(frame->head.operation, 3u);
  EXPECT_EQ(frame->head.tag, 4u);
  EXPECT_EQ(frame->head.size, 5u);
  EXPECT_TRUE(std::equal(frame->body.begin(), frame->body.end(), body.begin(), body.end()));
}

TEST(FabricFrame, WhatIsNoneIsRefused) {
  const auto good = encode({.kind = FrameKind::done});
  EXPECT_TRUE(parse(good));
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse(std::span(good).first(size))) << size;
  for (const std::size_t at : {0u, 3u, 4u, 7u}) {  // the magic number, the kind
    auto bad = good;
    bad[at] ^= std::byte{0x80};
    EXPECT_FALSE(parse(bad)) << at;
  }
}

TEST(FabricFrame, AnOfferCarriesAShortMessageWhole) {
  EXPECT_FALSE(parse(encode({.kind = FrameKind::offer, .size = 5}, bytes(4))));
  EXPECT_FALSE(parse(encode({.kind = FrameKind::offer, .size = 5}, bytes(6))));
  EXPECT_TRUE(parse(encode({.kind = FrameKind::offer, .size = kShortMessage}, bytes(kShortMessage))));
  EXPECT_TRUE(parse(encode({.kind = FrameKind::offer, .size = kShortMessage + 1})));
  EXPECT_FALSE(parse(encode({.kind = FrameKind::offer, .size = kShortMessage + 1}, bytes(1))));
}

TEST(FabricFrame, TextsComeBackAndNonsenseDoesNot) {
  for (const auto& [first, second] : {std::pair("ucx:01/a", "secret"), {"", "why"}, {"a", ""}, {"", ""}}) {
    const auto texts = parse_texts(encode(first, second));
    ASSERT_TRUE(texts);
    EXPECT_EQ(texts->first, first);
    EXPECT_EQ(texts->second, second);
  }
  auto coded = encode("abc", "d");
  EXPECT_FALSE(parse_texts(std::span(coded).first(3)));
  EXPECT_FALSE(parse_texts(std::span(coded).first(5)));  // the first text is cut off
  coded[3] = std::byte{0xff};
  EXPECT_FALSE(parse_texts(coded));
}

// Published values of FNV-1a, 64 bits.
TEST(FabricFrame, ChecksumIsFnv1a) {
  EXPECT_EQ(checksum(""), 0xcbf29ce484222325u);
  EXPECT_EQ(checksum("a"), 0xaf63dc4c8601ec8cu);
}

}  // namespace
}  // namespace troupe::transport
