#include "transport/common/wire_hash.hpp"

#include <string>

#include <gtest/gtest.h>

#include "transport/common/host_number.hpp"

namespace troupe::transport {
namespace {

// XXH3-64's published value for empty input, seed 0.
TEST(WireHash, IsXxh3) { EXPECT_EQ(wire_hash(std::string_view{}), 0x2D06800538D394C2u); }

// Long inputs take other branches of the algorithm than short ones, and other instructions.
TEST(WireHash, EveryByteCounts) {
  for (const std::size_t size : {1u, 16u, 17u, 128u, 240u, 241u, 1024u, 5000u}) {
    std::string text(size, 'x');
    const auto whole = wire_hash(text);
    for (std::size_t i = 0; i < size; ++i) {
      text[i] = 'y';
      ASSERT_NE(wire_hash(text), whole) << i << " of " << size;
      text[i] = 'x';
    }
  }
}

TEST(HostNumber, IsNonZeroAndConstant) {
  EXPECT_NE(host_number(), 0u);
  EXPECT_EQ(host_number(), host_number());
}

}  // namespace
}  // namespace troupe::transport
