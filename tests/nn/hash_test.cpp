#include "nn/hash.hpp"

#include <array>

#include <gtest/gtest.h>

namespace troupe::nn {
namespace {

// Published test values for empty input (XXH3 with the default secret, seed 0).
TEST(Hash, EmptyInputHasThePublishedHashes) {
  EXPECT_EQ(hash64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(hash128_hex({}), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(center_hash({}), "xxh3:2d06800538d394c2");
}

TEST(Hash, BytesInPiecesHaveTheHashOfTheWhole) {
  std::array<std::byte, 5000> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  Hash128 hash;
  EXPECT_EQ(hash.hex(), hash128_hex({}));
  std::size_t done = 0;
  for (const std::size_t piece : {1U, 0U, 255U, 1000U, 3744U}) {
    hash.add(std::span(bytes).subspan(done, piece));
    done += piece;
    EXPECT_EQ(hash.hex(), hash128_hex(std::span(bytes).first(done)));
  }
  EXPECT_EQ(done, bytes.size());
}

TEST(Hash, CenterHashIsOverTheBytesOfTheFloats) {
  const std::array<float, 3> values{1.0f, -0.0f, 2.5f};
  const std::array<unsigned char, 12> bytes{0, 0, 0x80, 0x3f, 0, 0, 0, 0x80, 0, 0, 0x20, 0x40};
  EXPECT_EQ(hash64(std::as_bytes(std::span(bytes))), hash64(std::as_bytes(std::span(values))));
  EXPECT_EQ(center_hash(values).size(), std::string("xxh3:").size() + 16);
  const std::array<float, 3> other{1.0f, 0.0f, 2.5f};  // the sign of zero counts
  EXPECT_NE(center_hash(values), center_hash(other));
}

}  // namespace
}  // namespace troupe::nn
