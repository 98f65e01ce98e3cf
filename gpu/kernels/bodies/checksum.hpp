/// XXH3-64 (github.com/Cyan4973/xxHash, without a seed) of more than 240 bytes, the checksum of transport/common/wire_hash.hpp. Blocks of 1024 bytes
/// are summed at once, each on its own; one thread for each of the eight lanes then carries the sums through the blocks in order. Thread rule:
/// plain values.
#pragma once

#include "gpu/kernels/portable.hpp"
#include "gpu/kernels/xxh3_shape.hpp"

namespace troupe::gpu {

/// The algorithm's secret, as the words that it reads: of a stripe, of the last stripe, and of the end. A value: kernels get it as a parameter.
struct Xxh3Secret {
  std::uint64_t stripe[24] = {0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
                              0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
                              0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
                              0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
                              0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
                              0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af};
  std::uint64_t last[8] = {0xea647378d9c97e9f, 0xc5c3ebd33483acc5, 0x17eb6313faffa081, 0xd349daf0b751dd0d,
                           0x2b9e68d429265516, 0x8ffca1477d58be16, 0x45ce31d07ad1b8f8, 0xaf280416958f3acb};
  std::uint64_t merge[8] = {0x6dd4de1cad21f72c, 0xa44072db979083e9, 0xe679cb1f67b3b7a4, 0xd05a8278e5c0cc4e,
                            0x4608b82172ffcc7d, 0x9035e08e2443f774, 0x52283c4c263a81e6, 0x65d088cb00c391bb};
};

/// One access of memory that was written as elements of another type.
template <class Word>
struct alignas(sizeof(Word)) [[gnu::may_alias]] AnyWord {
  Word value;
};
/// Little-endian. REQUIRES that `from` is aligned to Word.
template <class Word>
[[nodiscard]] TROUPE_HOST_DEVICE inline std::uint64_t word_at(const unsigned char* from) {
  const auto* parts = reinterpret_cast<const AnyWord<Word>*>(from);
  std::uint64_t word = 0;
  TROUPE_UNROLL
  for (int part = 0; part < static_cast<int>(8 / sizeof(Word)); ++part)
    word |= std::uint64_t{parts[part].value} << (8 * static_cast<int>(sizeof(Word)) * part);
  return word;
}
/// The product of the two halves.
[[nodiscard]] TROUPE_HOST_DEVICE constexpr std::uint64_t halves_product(std::uint64_t word) {
  return (word & 0xffffffff) * (word >> 32);
}
/// The upper word of the product, xor the lower.
[[nodiscard]] TROUPE_HOST_DEVICE constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t low = (a & 0xffffffff) * (b & 0xffffffff);
  const std::uint64_t left = (a >> 32) * (b & 0xffffffff);
  const std::uint64_t right = (a & 0xffffffff) * (b >> 32);
  const std::uint64_t middle = (low >> 32) + (left & 0xffffffff) + right;
  const std::uint64_t high = (a >> 32) * (b >> 32) + (left >> 32) + (middle >> 32);
  return high ^ (middle << 32 | (low & 0xffffffff));
}

/// Block body: what each whole block adds to the lanes. A thread has two lanes, because each adds its words to the other too.
template <class Word>
struct Xxh3BlocksBody {
  static constexpr int kThreads = 128;
  static constexpr int kPhases = 2;
  static constexpr int kPairs = Xxh3Shape::kLanes / 2;
  static constexpr int kBlocks = kThreads / kPairs;  // of the message, in one of the device
  struct Shared {
    std::uint64_t secret[24];  // read with the lane's index, which a parameter would serialise
  };

  const unsigned char* data;
  std::uint64_t* sums;  // [count, lanes]
  std::int64_t count;
  Xxh3Secret secret;

  [[nodiscard]] std::int64_t blocks() const { return ceil_div(count, kBlocks); }
  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t block, int thread, Shared& shared) const {
    if (phase == 0) {
      if (thread < 24) shared.secret[thread] = secret.stripe[thread];
      return;
    }
    const std::int64_t mine = block * kBlocks + thread / kPairs;
    if (mine >= count) return;
    const int lane = 2 * (thread % kPairs);
    const unsigned char* const from = data + mine * Xxh3Shape::kBlock + 8 * lane;
    std::uint64_t even = 0, odd = 0;
    TROUPE_UNROLL
    for (int stripe = 0; stripe < Xxh3Shape::kStripes; ++stripe) {
      const std::uint64_t first = word_at<Word>(from + stripe * Xxh3Shape::kStripe);
      const std::uint64_t second = word_at<Word>(from + stripe * Xxh3Shape::kStripe + 8);
      even += second + halves_product(first ^ shared.secret[stripe + lane]);
      odd += first + halves_product(second ^ shared.secret[stripe + lane + 1]);
    }
    sums[mine * Xxh3Shape::kLanes + lane] = even;
    sums[mine * Xxh3Shape::kLanes + lane + 1] = odd;
  }
};

/// Block body, one block: the lanes through all blocks, the rest of the message, and the end.
template <class Word>
struct Xxh3TotalBody {
  static constexpr int kThreads = 32;
  static constexpr int kPhases = 2;
  static constexpr int kFetched = 8;  // at once, so that loads overlap
  static constexpr std::uint64_t kPrime32_1 = 0x9e3779b1, kPrime32_2 = 0x85ebca77, kPrime32_3 = 0xc2b2ae3d;
  static constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87, kPrime2 = 0xc2b2ae3d27d4eb4f,
                                 kPrime3 = 0x165667b19e3779f9, kPrime4 = 0x85ebca77c2b2ae63,
                                 kPrime5 = 0x27d4eb2f165667c5;
  struct Shared {
    std::uint64_t lanes[Xxh3Shape::kLanes];
  };

  const unsigned char* data;
  std::int64_t bytes;
  const std::uint64_t* sums;
  std::int64_t count;  // of sums' blocks
  std::uint64_t* result;
  Xxh3Secret secret;

  [[nodiscard]] std::int64_t blocks() const { return 1; }
  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t /*block*/, int thread, Shared& shared) const {
    if (phase == 0) {
      if (thread < Xxh3Shape::kLanes) shared.lanes[thread] = lane_sum(thread);
    } else if (thread == 0) {
      *result = merged(shared.lanes);
    }
  }

 private:
  [[nodiscard]] static TROUPE_HOST_DEVICE std::uint64_t start_of(int lane) {
    switch (lane) {
      case 0: return kPrime32_3;
      case 1: return kPrime1;
      case 2: return kPrime2;
      case 3: return kPrime3;
      case 4: return kPrime4;
      case 5: return kPrime32_2;
      case 6: return kPrime5;
      default: return kPrime32_1;
    }
  }
  [[nodiscard]] TROUPE_HOST_DEVICE std::uint64_t scrambled(std::uint64_t sum, int lane) const {
    return (sum ^ sum >> 47 ^ secret.stripe[Xxh3Shape::kStripes + lane]) * kPrime32_1;
  }
  template <class Access>
  [[nodiscard]] static TROUPE_HOST_DEVICE std::uint64_t added(const unsigned char* stripe, int lane,
                                                              std::uint64_t key) {
    return word_at<Access>(stripe + 8 * (lane ^ 1)) + halves_product(word_at<Access>(stripe + 8 * lane) ^ key);
  }
  [[nodiscard]] TROUPE_HOST_DEVICE std::uint64_t lane_sum(int lane) const {
    std::uint64_t sum = start_of(lane);
    const std::uint64_t* from = sums + lane;
    std::int64_t block = 0;
    for (; block + kFetched <= count; block += kFetched) {
      std::uint64_t fetched[kFetched];
      TROUPE_UNROLL
      for (int k = 0; k < kFetched; ++k) fetched[k] = from[(block + k) * Xxh3Shape::kLanes];
      TROUPE_UNROLL
      for (int k = 0; k < kFetched; ++k) sum = scrambled(sum + fetched[k], lane);
    }
    for (; block < count; ++block) sum = scrambled(sum + from[block * Xxh3Shape::kLanes], lane);
    const unsigned char* const rest = data + count * Xxh3Shape::kBlock;
    const auto stripes = static_cast<int>((bytes - 1 - count * Xxh3Shape::kBlock) / Xxh3Shape::kStripe);
    for (int stripe = 0; stripe < stripes; ++stripe)
      sum += added<Word>(rest + stripe * Xxh3Shape::kStripe, lane, secret.stripe[stripe + lane]);
    // The last stripe ends with the message, so it may begin anywhere.
    return sum + added<unsigned char>(data + bytes - Xxh3Shape::kStripe, lane, secret.last[lane]);
  }
  [[nodiscard]] TROUPE_HOST_DEVICE std::uint64_t merged(const std::uint64_t* lanes) const {
    std::uint64_t hash = static_cast<std::uint64_t>(bytes) * kPrime1;
    for (int lane = 0; lane < Xxh3Shape::kLanes; lane += 2)
      hash += folded_product(lanes[lane] ^ secret.merge[lane], lanes[lane + 1] ^ secret.merge[lane + 1]);
    hash = (hash ^ hash >> 37) * 0x165667919e3779f9;
    return hash ^ hash >> 32;
  }
};

}  // namespace troupe::gpu
