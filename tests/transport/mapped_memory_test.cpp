// Contract of transport/mapped_memory.hpp, over every endpoint that implements it.
#include "transport/mapped_memory.hpp"

#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>

#include "endpoint_contract.hpp"
#include "transport/exchange/reduce.hpp"

namespace troupe::transport::testing {
namespace {

class MappedMemoryContract : public EndpointContract {
 protected:
  void SetUp() override {
    if (!party("probe")->capabilities().maps_peer_memory) GTEST_SKIP() << GetParam().name << " maps no memory";
  }
  static std::shared_ptr<core::Buffer> arena(Party& owner, std::size_t floats) {
    return std::make_shared<core::Buffer>(core::Buffer::allocate(owner->mapped_memory()->allocator(), floats).value());
  }
};
INSTANTIATE_TEST_SUITE_P(Endpoints, MappedMemoryContract, ::testing::ValuesIn(endpoint_kinds()), kind_name);

TEST_P(MappedMemoryContract, BothSidesSeeOneMemory) {
  Party& a = party("a");
  Party& b = party("b");
  const auto mine = arena(a, 100);
  std::iota(mine->view().begin(), mine->view().end(), 0.0f);
  const Exposure exposure = a->mapped_memory()->expose(mine).value();
  const Mapping mapping = b->mapped_memory()->attach(exposure.key(), 100).value();
  ASSERT_EQ(mapping.view().size(), 100u);
  EXPECT_EQ(mapping.view()[42], 42.0f);
  mapping.view()[42] = -1.0f;
  EXPECT_EQ(mine->view()[42], -1.0f);
}

TEST_P(MappedMemoryContract, ArenasHaveTheirOwnKeys) {
  Party& a = party("a");
  const auto first = arena(a, 16), second = arena(a, 16);
  const Exposure one = a->mapped_memory()->expose(first).value();
  const Exposure two = a->mapped_memory()->expose(second).value();
  EXPECT_NE(one.key(), two.key());
  const Mapping mapping = party("b")->mapped_memory()->attach(two.key(), 16).value();
  mapping.view()[0] = 5.0f;
  EXPECT_EQ(first->view()[0], 0.0f);
  EXPECT_EQ(second->view()[0], 5.0f);
}

TEST_P(MappedMemoryContract, AnotherLengthIsCorrupt) {
  Party& a = party("a");
  const Exposure exposure = a->mapped_memory()->expose(arena(a, 100)).value();
  const auto mapping = party("b")->mapped_memory()->attach(exposure.key(), 99);
  ASSERT_FALSE(mapping);
  EXPECT_EQ(mapping.error().code, core::Errc::corrupt);
}

TEST_P(MappedMemoryContract, AWithdrawnArenaIsNotAttachedButStaysMapped) {
  Party& a = party("a");
  Party& b = party("b");
  std::optional<Exposure> exposure = a->mapped_memory()->expose(arena(a, 100)).value();
  const ArenaKey key = exposure->key();
  const Mapping mapping = b->mapped_memory()->attach(key, 100).value();
  exposure.reset();
  EXPECT_EQ(b->mapped_memory()->attach(key, 100).error().code, core::Errc::peer_lost);
  mapping.view()[99] = 1.0f;  // the mapping is the last owner of this memory
  EXPECT_EQ(mapping.view()[99], 1.0f);
}

TEST_P(MappedMemoryContract, LostOwnersArenaCannotBeAttached) {
  Party& a = party("a");
  Party& b = party("b");
  const Exposure exposure = a->mapped_memory()->expose(arena(a, 100)).value();
  const Mapping mapping = b->mapped_memory()->attach(exposure.key(), 100).value();
  a->close();
  EXPECT_EQ(b->mapped_memory()->attach(exposure.key(), 100).error().code, core::Errc::peer_lost);
  EXPECT_EQ(b->mapped_memory()->attach({"nonsense"}, 100).error().code, core::Errc::peer_lost);
  EXPECT_EQ(mapping.view()[0], 0.0f);
}

TEST_P(MappedMemoryContract, NothingToExposeThrows) {
  Party& a = party("a");
  EXPECT_THROW((void)a->mapped_memory()->expose(nullptr), std::invalid_argument);
  EXPECT_THROW((void)a->mapped_memory()->expose(std::make_shared<core::Buffer>()), std::invalid_argument);
}

// The `shm` exchange as its header describes it: each rank on its own thread, ordered only by zero-byte
// messages.
TEST_P(MappedMemoryContract, RanksReduceInPlaceBetweenSignals) {
  constexpr std::size_t kRanks = 3;
  constexpr std::size_t kFloats = 1000;
  constexpr std::uint32_t kRounds = 5;
  std::vector<Party*> ranks;
  std::vector<std::shared_ptr<core::Buffer>> arenas;
  std::vector<Exposure> exposures;
  for (std::size_t r = 0; r < kRanks; ++r) {
    ranks.push_back(&party("rank-" + std::to_string(r)));
    arenas.push_back(arena(*ranks[r], kFloats));
    exposures.push_back((*ranks[r])->mapped_memory()->expose(arenas[r]).value());
  }
  std::vector<std::vector<Peer>> peers(kRanks, std::vector<Peer>(kRanks));
  for (std::size_t r = 0; r < kRanks; ++r)
    for (std::size_t q = 0; q < r; ++q) {
      const Pair pair = join(*ranks[r], *ranks[q]);
      peers[r][q] = pair.b_at_a;
      peers[q][r] = pair.a_at_b;
    }
  const auto run = [&](std::size_t me) {
    Party& self = *ranks[me];
    std::vector<Mapping> mappings;
    std::vector<core::Span> all;
    for (const Exposure& e : exposures) {
      mappings.push_back(self->mapped_memory()->attach(e.key(), kFloats).value());
      all.push_back(mappings.back().view());
    }
    const auto signal = [&](std::uint32_t number) {  // signals all ranks and waits for the signals of all
      std::vector<OperationId> operations;
      for (std::size_t q = 0; q < kRanks; ++q) {
        if (q == me) continue;
        operations.push_back(self.receive(peers[me][q], tag(number), MemoryView{}));
        operations.push_back(self.send(peers[me][q], tag(number), ConstMemoryView{}));
      }
      for (const OperationId operation : operations) self.expect_done(operation, 0);
    };
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < kFloats; ++i) arenas[me]->view()[i] = static_cast<float>(me * 1000 + i + round);
      signal(2 * round);
      exchange::reduce_slice(core::reference_kernels(), all, me, 1.0f);
      signal(2 * round + 1);
      for (std::size_t i = 0; i < kFloats; ++i)  // 0 + 1000 + 2000 + 3 (i + round)
        ASSERT_EQ(arenas[me]->view()[i], static_cast<float>(3000 + 3 * (i + round)));
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < kRanks; ++r) threads.emplace_back(run, r);
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace troupe::transport::testing
