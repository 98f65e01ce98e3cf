#include "transport/shm/protocol/address.hpp"

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

ShmAddress address() { return {random_shm_token().value(), random_shm_token().value(), "rank 3/of 7"}; }

TEST(ShmAddress, RoundTripsAsText) {
  const ShmAddress one = address();
  const auto parsed = ShmAddress::parse(one.text());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, one.id);
  EXPECT_TRUE(same_secret(parsed->secret, one.secret));
  EXPECT_EQ(parsed->name, one.name);
}

TEST(ShmAddress, ThePublicTextDoesNotHoldTheSecret) {
  const ShmAddress one = address();
  const std::string secret = one.text().substr(37, 32);  // shm: 32 digits .
  EXPECT_EQ(one.label().find(secret), std::string::npos);
  EXPECT_EQ(one.socket_name().find(secret), std::string::npos);
  EXPECT_TRUE(one.label().ends_with("/rank 3/of 7"));
}

TEST(ShmAddress, OtherTextIsRefused) {
  const std::string text = address().text();
  for (std::size_t size = 0; size < 4 + 32 + 1 + 32 + 1; ++size) EXPECT_FALSE(ShmAddress::parse(text.substr(0, size)));
  for (const std::size_t at : {0U, 3U, 4U, 35U, 36U, 37U, 68U, 69U}) {
    std::string wrong = text;
    wrong[at] = '#';
    EXPECT_FALSE(ShmAddress::parse(wrong)) << at;
  }
}

TEST(ShmArenaKey, RoundTripsAsText) {
  const ShmArenaKey key{address(), 18'446'744'073'709'551'615U};
  const auto parsed = ShmArenaKey::parse(key.text());
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->owner.id, key.owner.id);
  EXPECT_EQ(parsed->number, key.number);
  EXPECT_FALSE(ShmArenaKey::parse(key.owner.text()));
  EXPECT_FALSE(ShmArenaKey::parse(key.text() + "0"));  // more than 64 bits
  EXPECT_FALSE(ShmArenaKey::parse(key.text() + "x"));
}

TEST(SameSecret, EveryBitCounts) {
  const ShmToken one = random_shm_token().value();
  EXPECT_TRUE(same_secret(one, one));
  for (std::size_t bit = 0; bit < 8 * one.size(); ++bit) {
    ShmToken other = one;
    other[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(same_secret(one, other));
  }
}

}  // namespace
}  // namespace troupe::transport
