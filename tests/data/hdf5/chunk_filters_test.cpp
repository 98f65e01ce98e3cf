#include "data/hdf5/chunk_filters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/data/idx_files.hpp"

namespace troupe::data {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

Bytes deflated(const Bytes& bytes) {
  uLongf length = compressBound(bytes.size());
  Bytes packed(length);
  EXPECT_EQ(compress(packed.data(), &length, bytes.data(), bytes.size()), Z_OK);
  packed.resize(length);
  return packed;
}

std::string refusal(const std::vector<ChunkFilter>& filters, const Bytes& stored, std::size_t wanted,
                    std::uint32_t skipped = 0) {
  Bytes out(wanted, 0xee);
  const auto undone = undo_filters(filters, skipped, stored, out);
  if (undone) return "no error";
  EXPECT_EQ(undone.error().code, core::Errc::data);
  return undone.error().message;
}

TEST(ChunkFiltersTest, LzfRunsAndCopiesAreUnpacked) {
  // By hand: a run of 3 ("abc"), a copy of 1 + 2 bytes from 3 back ("abc"), a run of 1 ("d"), a copy of 7 + 2 + 2 bytes from 1 back.
  const Bytes stored{2, 'a', 'b', 'c', 1 << 5, 2, 0, 'd', 7 << 5, 2, 0};
  Bytes out(3 + 3 + 1 + 11);
  ASSERT_TRUE(unpack_lzf(stored, out));
  EXPECT_EQ(text_of(out), "abcabcdddddddddddd");
  // 300 bytes of noise as runs of 32, then a copy of 2 + 1 bytes from 290 = (1 << 8 | 33) + 1 back.
  Bytes noise, packed;
  for (int i = 0; i < 300; ++i) noise.push_back(static_cast<std::uint8_t>(i * i % 251));
  for (std::size_t from = 0; from < noise.size(); from += 32) {
    const auto run = std::min<std::size_t>(32, noise.size() - from);
    packed.push_back(static_cast<std::uint8_t>(run - 1));
    packed.insert(packed.end(), noise.begin() + static_cast<std::ptrdiff_t>(from),
                  noise.begin() + static_cast<std::ptrdiff_t>(from + run));
  }
  packed.insert(packed.end(), {1 << 5 | 1, 33});
  Bytes unpacked(303);
  ASSERT_TRUE(unpack_lzf(packed, unpacked));
  noise.insert(noise.end(), {noise[10], noise[11], noise[12]});
  EXPECT_THAT(unpacked, ElementsAreArray(noise));
}

TEST(ChunkFiltersTest, DamagedLzfIsRefused) {
  const auto unpacks = [](const Bytes& stored, std::size_t wanted) {
    Bytes out(wanted + 16, 0xee);
    const bool done = unpack_lzf(stored, std::span(out).first(wanted));
    EXPECT_THAT(Bytes(out.begin() + static_cast<std::ptrdiff_t>(wanted), out.end()), testing::Each(0xee));
    return done;
  };
  EXPECT_TRUE(unpacks({2, 'a', 'b', 'c'}, 3));
  EXPECT_FALSE(unpacks({2, 'a', 'b', 'c'}, 4));          // too short
  EXPECT_FALSE(unpacks({2, 'a', 'b', 'c'}, 2));          // too long
  EXPECT_FALSE(unpacks({2, 'a', 'b'}, 3));               // cut within a run
  EXPECT_FALSE(unpacks({0, 'a', 1 << 5}, 4));            // cut before the distance
  EXPECT_FALSE(unpacks({0, 'a', 7 << 5}, 4));            // cut before the length
  EXPECT_FALSE(unpacks({0, 'a', 7 << 5, 0}, 10));        // cut after it
  EXPECT_FALSE(unpacks({0, 'a', 1 << 5, 1}, 4));         // before the beginning
  EXPECT_FALSE(unpacks({0, 'a', 7 << 5, 255, 0}, 100));  // a copy beyond the end
  EXPECT_FALSE(unpacks({}, 1));
}

TEST(ChunkFiltersTest, FiltersAreUndoneUnlessTheyWereSkipped) {
  Bytes values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i / 7);
  Bytes out(values.size());
  using enum ChunkFilter;
  const std::vector<ChunkFilter> both{shuffle, gzip};
  ASSERT_TRUE(undo_filters(both, 0, deflated(values), out));
  EXPECT_EQ(out, values);
  out.assign(values.size(), 0);
  ASSERT_TRUE(undo_filters(both, 2, values, out));  // as lzf and gzip leave what they cannot shorten
  EXPECT_EQ(out, values);
  out.assign(values.size(), 0);
  ASSERT_TRUE(undo_filters({}, 0, values, out));
  EXPECT_EQ(out, values);
}

TEST(ChunkFiltersTest, ChunksThatLieAboutTheirLengthAreRefused) {
  using enum ChunkFilter;
  const auto packed = deflated(Bytes(1'000'000, 0));  // about 1 KB
  EXPECT_THAT(refusal({gzip}, packed, 1000), HasSubstr("do not unpack (gzip) to the 1000 of a chunk"));
  EXPECT_THAT(refusal({gzip}, packed, 1'000'001), HasSubstr("(gzip)"));
  EXPECT_THAT(refusal({gzip}, Bytes(packed.begin(), packed.end() - 5), 1'000'000), HasSubstr("(gzip)"));
  EXPECT_THAT(refusal({gzip}, Bytes(50, 'x'), 50), HasSubstr("(gzip)"));
  EXPECT_THAT(refusal({shuffle, lzf}, Bytes(50, 'x'), 50), HasSubstr("(lzf)"));
  EXPECT_THAT(refusal({}, Bytes(50, 'x'), 51), HasSubstr("50 bytes do not unpack (as it is) to the 51"));
  EXPECT_THAT(refusal({gzip}, Bytes(50, 'x'), 51, 1), HasSubstr("(as it is)"));
}

}  // namespace
}  // namespace troupe::data
