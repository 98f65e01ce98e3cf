// Packs an arena without its padding, whole and in slices, against a loop that copies float by float.
#include "transport/exchange/packing.hpp"

#include <random>

#include <gtest/gtest.h>

namespace troupe::exchange {
namespace {

struct Arena {
  std::vector<float> marks, values;
};

Arena random_arena(std::mt19937& random, std::size_t floats) {
  Arena arena;
  while (arena.marks.size() < floats) {  // runs, as blocks make them
    const auto length = std::min<std::size_t>(1 + random() % 20, floats - arena.marks.size());
    arena.marks.insert(arena.marks.end(), length, random() % 3 == 0 ? 0.F : 1.F);
  }
  for (std::size_t i = 0; i < floats; ++i) arena.values.push_back(arena.marks[i] * static_cast<float>(i + 1));
  return arena;
}

TEST(Packing, EverySliceKeepsItsParametersInOrder) {
  std::mt19937 random(7);
  for (const std::size_t floats : {1U, 5U, 64U, 1000U}) {
    const auto arena = random_arena(random, floats);
    const Packing packing(arena.marks);
    EXPECT_EQ(packing.arena_floats(), floats);
    for (int trial = 0; trial < 50; ++trial) {
      const auto offset = random() % floats;
      const auto count = random() % (floats - offset + 1);
      std::vector<float> expected;
      for (std::size_t i = offset; i < offset + count; ++i)
        if (arena.marks[i] != 0) expected.push_back(arena.values[i]);
      ASSERT_EQ(packing.packed(offset, count), expected.size());
      std::vector<float> dense(expected.size());
      const auto slice = core::ConstSpan(arena.values).subspan(offset, count);
      packing.pack(slice, offset, dense);
      ASSERT_EQ(dense, expected);
      std::vector<float> back(count, 0.F);
      packing.unpack(dense, offset, back);
      ASSERT_TRUE(std::equal(back.begin(), back.end(), slice.begin()));
    }
  }
}

TEST(Packing, PaddingIsLeftAsItIs) {
  const Packing packing(std::vector<float>{1, 0, 1, 1, 0});
  std::vector<float> slice{9, 8, 9, 9, 7};
  packing.unpack(std::vector<float>{1, 2, 3}, 0, slice);
  EXPECT_EQ(slice, (std::vector<float>{1, 8, 2, 3, 7}));
}

TEST(Packing, OnlyPaddingIsCleared) {
  std::mt19937 random(8);
  const auto arena = random_arena(random, 200);
  const Packing packing(arena.marks);
  for (int trial = 0; trial < 50; ++trial) {
    const auto offset = random() % 200;
    const auto count = random() % (200 - offset + 1);
    std::vector<float> slice(count, 3.F);
    packing.clear_padding(offset, slice);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(slice[i], arena.marks[offset + i] == 0 ? 0.F : 3.F) << i;
  }
}

TEST(Packing, NothingIsPaddingInAPlainArena) {
  const Packing packing(std::vector<float>(10, 1.F));
  EXPECT_EQ(packing.packed(0, 10), 10U);
  EXPECT_EQ(packing.packed(3, 4), 4U);
  EXPECT_EQ(packing.packed(10, 0), 0U);
}

}  // namespace
}  // namespace troupe::exchange
