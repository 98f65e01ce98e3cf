#include "nn/program/workspace.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/buffer.hpp"

namespace troupe::nn::testing {
namespace {

TEST(Workspace, NothingAliveAtOnceOverlapsAndOffsetsAreAligned) {
  EXPECT_TRUE(rc::check([] {
    const auto sizes = *rc::gen::container<std::vector<std::tuple<std::uint16_t, std::uint8_t, std::uint8_t>>>(
        rc::gen::arbitrary<std::tuple<std::uint16_t, std::uint8_t, std::uint8_t>>());
    std::vector<Lifetime> lives;
    for (const auto& [floats, first, length] : sizes)
      lives.push_back({floats % 5000u + 1u, first % 40, first % 40 + length % 12});
    const Placement placement = place(lives);
    for (std::size_t i = 0; i < lives.size(); ++i) {
      RC_ASSERT(placement.offsets[i] % core::kAlignmentFloats == 0u);
      RC_ASSERT(placement.offsets[i] + lives[i].floats <= placement.floats);
      for (std::size_t j = 0; j < i; ++j) {
        const bool together = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
        const bool apart = placement.offsets[i] + lives[i].floats <= placement.offsets[j] ||
                           placement.offsets[j] + lives[j].floats <= placement.offsets[i];
        RC_ASSERT(!together || apart);
      }
    }
  }));
}

TEST(Workspace, MemoryIsUsedAgain) {
  // A chain: each tensor lives until the next one is made. Room for two of 1,600 floats is enough.
  const std::vector<Lifetime> chain{{1600, 0, 1}, {1600, 1, 2}, {1600, 2, 3}, {1600, 3, 4}};
  EXPECT_EQ(place(chain).floats, 3200u);
  EXPECT_EQ(place({}).floats, 0u);
}

}  // namespace
}  // namespace troupe::nn::testing
