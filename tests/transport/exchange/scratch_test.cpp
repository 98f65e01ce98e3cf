// Scratch memory of reductions: its size, and that it is kept between reductions.
#include "transport/exchange/scratch.hpp"

#include <cstring>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "core/kernels.hpp"
#include "tests/transport/exchange/connected_group.hpp"
#include "transport/inproc/endpoint.hpp"

namespace troupe::exchange::testing {
namespace {

TEST(Scratch, PiecesAreCutAlignedAndComeBack) {
  Scratch scratch;
  const std::byte* first = nullptr;
  {
    auto piece = scratch.take(Scratch::room<float>(3) + Scratch::room<std::uint16_t>(33));
    const auto floats = piece.cut<float>(3);
    const auto halves = piece.cut<std::uint16_t>(33);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(floats.data()) % core::kAlignment, 0U);
    EXPECT_EQ(reinterpret_cast<std::byte*>(halves.data()) - reinterpret_cast<std::byte*>(floats.data()), 64);
    EXPECT_EQ(halves.size(), 33U);
    EXPECT_THROW((void)piece.cut<float>(1), std::logic_error);
    first = reinterpret_cast<std::byte*>(floats.data());
  }
  auto again = scratch.take(10);
  EXPECT_EQ(reinterpret_cast<std::byte*>(again.cut<float>(1).data()), first);
  EXPECT_EQ(scratch.made(), 1U);
  EXPECT_EQ(scratch.bytes(), 64U + 128U);
}

/// Counts what is allocated, and refuses with `refusal`.
class CountingMemory final : public core::Allocator {
 public:
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::device; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override {
    if (refusal) return core::fail(*refusal, "refused");
    live += bytes;
    return host_.allocate(bytes);
  }
  void deallocate(void* memory, std::size_t bytes) noexcept override {
    live -= bytes;
    host_.deallocate(memory, bytes);
  }
  std::size_t live = 0;
  std::optional<core::Errc> refusal;

 private:
  core::HostAllocator host_;
};

TEST(Scratch, TakesItsBlocksFromAnAllocator) {
  CountingMemory memory;
  {
    Scratch scratch(memory);
    { const auto piece = scratch.take(640); }
    { const auto piece = scratch.take(6400); }
    EXPECT_EQ(memory.live, 6400U) << "the larger block replaced the smaller one";
    memory.refusal = core::Errc::out_of_memory;
    EXPECT_THROW((void)scratch.take(64'000), std::bad_alloc);
    memory.refusal = core::Errc::io;
    EXPECT_THROW((void)scratch.take(64'000), core::KernelsFailed);
  }
  EXPECT_EQ(memory.live, 0U);
}

TEST(Scratch, KeepsAsManyBlocksAsWereInUseAtOnce) {
  Scratch scratch;
  for (std::size_t bytes = 64; bytes <= 6400; bytes += 64) {
    const auto one = scratch.take(bytes), other = scratch.take(bytes);
    EXPECT_EQ(scratch.bytes(), 2 * bytes);
  }
  EXPECT_EQ(scratch.take(0).cut<float>(0).size(), 0U);
}

TEST(Scratch, PieceMayOutliveTheScratch) {
  Scratch::Piece piece;
  {
    Scratch scratch;
    piece = scratch.take(64);
  }
  std::memset(piece.cut<float>(16).data(), 1, 64);
}

/// A bucket far shorter than a chunk: a rank needs no more room than its own slice from each other rank.
TEST(Scratch, ReductionsTakeNoMoreThanTheSliceAndKeepIt) {
  const transport::testing::EndpointKind inproc{
      "inproc", [] { return transport::EndpointOptions{.hub = transport::make_inproc_hub("scratch")}; }};
  constexpr std::size_t kRanks = 16, kFloats = 4099;
  ConnectedGroup connected(inproc, kRanks);
  auto vectors = connected.vectors(kFloats);
  for (const auto algorithm : {Algorithm::asa, Algorithm::asa16, Algorithm::ring, Algorithm::hierarchical}) {
    SCOPED_TRACE(name(algorithm));
    std::vector<Scratch> scratch(kRanks);
    std::vector<std::size_t> made(kRanks);
    for (std::uint32_t round = 0; round < 3; ++round) {
      for (std::size_t r = 0; r < kRanks; ++r) {
        auto group = connected.group(r);
        for (std::size_t k = 0; k < kRanks; ++k) group.hosts.push_back(k / 4);
        connected.start(r, group,
                        {.algorithm = algorithm,
                         .vector = vectors[r].view().first(kFloats),
                         .scratch = &scratch[r],
                         .tag = {.run = 1, .exchange = round}},
                        vectors);
      }
      connected.finish();
      for (std::size_t r = 0; r < kRanks; ++r) {
        if (round == 0) made[r] = scratch[r].made();
        EXPECT_EQ(scratch[r].made(), made[r]) << "rank " << r << ", round " << round;
        // The leader of a host of 4 has the whole vectors of its 3 neighbours, then slices of 4; all other ranks slices of 16.
        const auto slice = core::slice_of(kFloats, 0, algorithm == Algorithm::hierarchical ? 4 : kRanks).count;
        const auto whole = algorithm == Algorithm::hierarchical && r % 4 == 0 ? 3 * Scratch::room<float>(kFloats) : 0;
        const auto parts = (kRanks + 1) * Scratch::room<float>(slice);
        EXPECT_LE(scratch[r].bytes(), whole + parts) << "rank " << r;
        const bool only_gives = algorithm == Algorithm::hierarchical && r % 4 != 0;
        EXPECT_EQ(scratch[r].bytes() > 0, !only_gives) << "rank " << r;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::exchange::testing
