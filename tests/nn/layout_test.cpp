#include "nn/layout.hpp"

#include <numeric>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>

#include "nn/graph.hpp"

namespace troupe::nn {
namespace {

std::vector<float> iota(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

std::vector<float> arena_of(const Layout& layout, const std::vector<float>& canonical) {
  std::vector<float> arena(layout.arena_floats(), -7.0f);
  layout.from_canonical(canonical, arena);
  return arena;
}

void expect_round_trip(const Layout& layout) {
  const auto canonical = iota(layout.canonical_floats());
  const auto arena = arena_of(layout, canonical);
  std::vector<float> back(canonical.size());
  layout.to_canonical(arena, back);
  EXPECT_EQ(back, canonical);
  // Every value once, and zero everywhere else: the map is injective and padding is zero.
  std::multiset<float> found;
  std::size_t zeros = 0;
  for (const float value : arena) value == 0 ? void(++zeros) : void(found.insert(value));
  EXPECT_EQ(found, std::multiset<float>(canonical.begin(), canonical.end()));
  EXPECT_EQ(zeros, layout.arena_floats() - layout.canonical_floats());
}

TEST(Layout, PlainTensorIsRowMajor) {
  const Layout layout({{"w", {2, 3}, 16, 6, {3, 1}, {}}}, 32);
  EXPECT_EQ(layout.canonical_floats(), 6u);
  const auto arena = arena_of(layout, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(arena[15], 0);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(arena[16 + static_cast<std::size_t>(i)], static_cast<float>(i + 1));
  EXPECT_EQ(arena[22], 0);
  expect_round_trip(layout);
}

TEST(Layout, TransposedTensorFollowsItsStrides) {
  // [2, 3] stored column by column: element (r, c) at c · 2 + r.
  const Layout layout({{"w", {2, 3}, 0, 6, {1, 2}, {}}}, 16);
  const auto arena = arena_of(layout, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(std::vector<float>(arena.begin(), arena.begin() + 6), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  expect_round_trip(layout);
}

TEST(Layout, OneInnerBlockPadsTheLastBlock) {
  // Ab4a of [6, 2]: element (a, b) at (a / 4) · 8 + b · 4 + a % 4; the second block holds rows 4 and 5 only.
  const Layout layout({{"w", {6, 2}, 0, 16, {8, 4}, {{0, 4}}}}, 16);
  const auto arena = arena_of(layout, iota(12));
  // rows are (1,2) (3,4) (5,6) (7,8) | (9,10) (11,12)
  EXPECT_EQ(arena, (std::vector<float>{1, 3, 5, 7, 2, 4, 6, 8, 9, 11, 0, 0, 10, 12, 0, 0}));
  expect_round_trip(layout);
}

TEST(Layout, OneDimensionMayBeBlockedTwice) {
  // AB4b2a2b of [2, 8]: b = 0..7 in one block of 4 · 2; within it (b / 2) · 4 + a · 2 + b % 2.
  const Layout layout({{"w", {2, 8}, 0, 16, {16, 16}, {{1, 4}, {0, 2}, {1, 2}}}}, 16);
  const auto arena = arena_of(layout, iota(16));
  EXPECT_EQ(arena, (std::vector<float>{1, 2, 9, 10, 3, 4, 11, 12, 5, 6, 13, 14, 7, 8, 15, 16}));
  expect_round_trip(layout);
}

TEST(Layout, BlockedConvolutionRoundTrips) {
  // ABcd16b16a of [20, 3, 5, 5]: 2 x 1 blocks of 16 · 16 = 256 at 5 x 5 positions. The bias lies before it in the arena.
  const Layout layout({{"conv1.weight", {20, 3, 5, 5}, 32, 12800, {6400, 6400, 1280, 256}, {{1, 16}, {0, 16}}},
                       {"conv1.bias", {20}, 0, 32, {1}, {}}},
                      32 + 12800);
  EXPECT_EQ(layout.canonical_floats(), 1520u);
  expect_round_trip(layout);
  // (o, i, h, w) = (17, 2, 3, 4) is canonical element ((17 · 3 + 2) · 5 + 3) · 5 + 4 = 1344 and lies at
  // 32 + 1 · 6400 + 0 + 3 · 1280 + 4 · 256 + 2 · 16 + 1 = 11329.
  const auto arena = arena_of(layout, iota(1520));
  EXPECT_EQ(arena[11329], 1345);
}

TEST(Layout, LongPlainRowsRoundTrip) {
  expect_round_trip(Layout({{"w", {3, 5000}, 0, 15000, {5000, 1}, {}}}, 15008));
  expect_round_trip(Layout({{"w", {5000, 3}, 0, 15000, {1, 5000}, {}}}, 15008));
  expect_round_trip(Layout({{"w", {5000}, 0, 5000, {1}, {}}}, 5008));
}

TEST(Layout, FingerprintTellsLayoutsApart) {
  const TensorLayout plain{"w", {4, 4}, 0, 16, {4, 1}, {}};
  const Layout reference({plain}, 32);
  EXPECT_EQ(reference.fingerprint(), Layout({plain}, 32).fingerprint());
  std::set<std::uint64_t> fingerprints{reference.fingerprint()};
  TensorLayout other = plain;
  other.name = "v";
  fingerprints.insert(Layout({other}, 32).fingerprint());
  other = plain;
  other.offset = 16;
  fingerprints.insert(Layout({other}, 32).fingerprint());
  other = plain;
  other.strides = {1, 4};
  fingerprints.insert(Layout({other}, 32).fingerprint());
  other = plain;
  other.strides = {16, 4};
  other.inner = {{0, 4}};
  fingerprints.insert(Layout({other}, 32).fingerprint());
  other = plain;
  other.extent = 32;
  fingerprints.insert(Layout({other}, 32).fingerprint());
  fingerprints.insert(Layout({plain}, 48).fingerprint());
  EXPECT_EQ(fingerprints.size(), 7u);
}

TEST(Layout, BrokenLayoutsAreBugs) {
  const TensorLayout good{"w", {4, 4}, 0, 16, {4, 1}, {}};
  const auto refused = [](TensorLayout tensor, std::size_t floats = 32) {
    try {
      Layout({std::move(tensor)}, floats);
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused(good), "accepted");
  EXPECT_EQ(refused(good, 17), "an arena of 17 floats is not a multiple of 16");
  TensorLayout bad = good;
  bad.offset = 4;
  EXPECT_EQ(refused(bad), "layout of \"w\": offset 4 is not a multiple of 16");
  bad = good;
  bad.extent = 15;
  EXPECT_EQ(refused(bad), "layout of \"w\": an element lies at 15, beyond its extent 15");
  bad = good;
  bad.offset = 32;
  EXPECT_EQ(refused(bad), "layout of \"w\": it ends at 48, the arena at 32");
  bad = good;
  bad.strides = {4};
  EXPECT_EQ(refused(bad), "layout of \"w\": 1 strides for 2 dimensions");
  bad = good;
  bad.inner = {{2, 4}};
  EXPECT_EQ(refused(bad), "layout of \"w\": inner block 4 of dimension 2");
  EXPECT_THROW(Layout({good, good}, 32), std::invalid_argument);
}

TEST(Layout, ConversionsCheckTheirSizes) {
  const Layout layout({{"w", {4}, 0, 4, {1}, {}}}, 16);
  std::vector<float> arena(16);
  std::vector<float> canonical(5);
  EXPECT_THROW(layout.to_canonical(arena, canonical), std::invalid_argument);
  EXPECT_THROW(layout.from_canonical(canonical, arena), std::invalid_argument);
}

TEST(Layout, PlainLayoutOfAGraphAlignsEveryParameter) {
  const auto graph =
      Graph::sequential("m", {3, 1, 1}, {LinearLayer{5, {}}, LinearLayer{2, {}}}, Loss::softmax_cross_entropy);
  ASSERT_TRUE(graph);
  const Layout layout = plain_layout(*graph);
  // 15 + 5 + 10 + 2 floats, each tensor rounded up to 16.
  EXPECT_EQ(layout.canonical_floats(), 32u);
  EXPECT_EQ(layout.arena_floats(), 64u);
  ASSERT_EQ(layout.tensors().size(), 4u);
  EXPECT_EQ(layout.tensors()[2].name, "fc2.weight");
  EXPECT_EQ(layout.tensors()[2].offset, 32);
  expect_round_trip(layout);
}

}  // namespace
}  // namespace troupe::nn
