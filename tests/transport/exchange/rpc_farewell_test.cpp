// The end of a site that lends memory in place: its peers unmap the memory before it is freed. The memory is a stand-in for a device's, which must
// not be freed while a peer maps it (docs/gpu.md); it works over every endpoint.
#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "tests/transport/exchange/connected_group.hpp"
#include "transport/exchange/envelope.hpp"
#include "transport/exchange/rpc.hpp"

namespace troupe::exchange::testing {
namespace {

using transport::Peer;

constexpr std::size_t kMostFloats = 1024;
constexpr std::size_t kVectorFloats = 256;

/// What all members map and free.
struct Mapped {
  struct Block {
    core::Buffer memory;  // lives as long as the test: a late access is counted, not fatal
    std::size_t owner = 0;
    int mappings = 0;
    bool freed = false;
  };
  std::map<std::string, Block> blocks;
  std::size_t wrongs = 0;  // blocks that were freed while they were mapped

  [[nodiscard]] int mappings_of(std::size_t owner) const {
    int all = 0;
    for (const auto& [key, block] : blocks)
      if (block.owner == owner) all += block.mappings;
    return all;
  }
};

/// Memory of one member. It is kept until the object ends, as a device's.
class RecordedMemory final : public transport::MappedMemory, private core::Allocator {
 public:
  RecordedMemory(Mapped& all, std::size_t owner) : all_(all), owner_(owner) {}
  RecordedMemory(const RecordedMemory&) = delete;
  RecordedMemory& operator=(const RecordedMemory&) = delete;
  ~RecordedMemory() override {
    for (auto& [key, block] : all_.blocks) {
      if (block.owner != owner_) continue;
      block.freed = true;
      if (block.mappings > 0) ++all_.wrongs;
    }
  }
  [[nodiscard]] core::Allocator& allocator() noexcept override { return *this; }
  [[nodiscard]] core::Result<transport::Exposure> expose(std::shared_ptr<core::Buffer> arena) override {
    auto key = key_of(arena->data());
    return transport::Exposure({std::move(key)}, std::move(arena));
  }
  [[nodiscard]] core::Result<transport::Mapping> attach(const transport::ArenaKey& key, std::size_t floats) override {
    const auto found = all_.blocks.find(key.text);
    if (found == all_.blocks.end() || found->second.freed) return core::fail(core::Errc::config, "there is none");
    auto& block = found->second;
    ++block.mappings;
    return transport::Mapping(block.memory.view().first(floats), std::shared_ptr<void>(&block, [](void* of) {
                                --static_cast<Mapped::Block*>(of)->mappings;
                              }));
  }

 private:
  [[nodiscard]] core::MemorySpace space() const noexcept override { return core::MemorySpace::host; }
  [[nodiscard]] core::Result<void*> allocate(std::size_t bytes) override {
    auto memory = core::Buffer::allocate(host_, bytes / sizeof(float));
    if (!memory) return tl::unexpected(memory.error());
    void* const begin = memory->data();
    all_.blocks[key_of(begin)] = {.memory = std::move(*memory), .owner = owner_};
    return begin;
  }
  void deallocate(void* /*memory*/, std::size_t /*bytes*/) noexcept override {}
  [[nodiscard]] static std::string key_of(const void* begin) {
    return std::to_string(reinterpret_cast<std::uintptr_t>(begin));
  }

  static inline core::HostAllocator host_;
  Mapped& all_;
  const std::size_t owner_;
};

/// Two members. Calls of either wait until the test answers them.
class Farewell : public ::testing::TestWithParam<transport::testing::EndpointKind> {
 protected:
  void SetUp() override { meet(); }
  void TearDown() override {
    end();
    EXPECT_EQ(mapped_.wrongs, 0U);
  }
  void meet() {
    end();
    group_.emplace(GetParam(), 2);
    for (std::size_t r = 0; r < 2; ++r) {
      arenas_[r] = Arenas::create(std::make_shared<RecordedMemory>(mapped_, r));
      calls_[r] = std::make_unique<Rpc>(
          group_->endpoint(r), group_->operations(r), core::host_kernels(), allocator_, kMostFloats, 1,
          [this, r](Rpc::Incoming incoming) { waiting_[r].push_back(std::move(incoming)); },
          [this, r](Peer, const core::Error& error) { lost_[r].push_back(error); }, PieceOptions{}, arenas_[r].get());
      calls_[r]->listen(peer_of(r));
      vectors_[r] = core::Buffer::allocate(*arenas_[r], kVectorFloats).value();
    }
  }
  void end() {
    for (std::size_t r = 0; r < 2; ++r) {
      close(r);
      free(r);
      lost_[r].clear();
    }
    group_.reset();
  }
  void close(std::size_t r) {
    if (group_) group_->endpoint(r).close();
    if (group_) group_->poll();
    waiting_[r].clear();
  }
  /// Frees the memory of `r`, if nobody may use it.
  void free(std::size_t r) {
    if (!calls_[r]) return;
    const auto users = calls_[r]->users();
    vectors_[r] = {};
    others_[r].clear();
    if (users != Rpc::Users::none) return kept_.push_back(std::move(arenas_[r]));  // as an exchanger does
    arenas_[r].reset();
  }
  /// A vector is lent to one call at a time.
  [[nodiscard]] core::Span another_vector(std::size_t r) {
    return others_[r].emplace_back(core::Buffer::allocate(*arenas_[r], kVectorFloats).value()).view();
  }
  [[nodiscard]] Peer peer_of(std::size_t r) const { return group_->group(r).peers[1 - r]; }
  [[nodiscard]] Rpc& calls(std::size_t r) { return *calls_[r]; }

  void offer(std::size_t r) {
    std::optional<core::Result<void>> taken;
    calls(r).offer(peer_of(r), [&](const core::Result<void>& result) { taken = result; });
    group_->drive([&] { return taken.has_value(); });
    ASSERT_TRUE(*taken) << taken->error().message;
  }
  void offer_both() {
    offer(0);
    offer(1);
    group_->drive([&] { return mapped_.mappings_of(0) == 1 && mapped_.mappings_of(1) == 1; });
  }
  void call(std::size_t r, core::Span vector) {
    calls(r).call(
        peer_of(r), {.header = "x", .vector = vector, .lend = vector.empty() ? Lend::nothing : Lend::both},
        [this, r](const auto& result) { answers_[r].push_back(result ? core::Errc::internal : result.error().code); });
  }
  /// A call that lends in place and is not answered: the callee has it.
  void lend(std::size_t r) {
    call(r, vectors_[r].view());
    group_->drive([&] { return !waiting_[1 - r].empty(); });
    ASSERT_EQ(waiting_[1 - r].front().vector.data(), vectors_[r].data());
  }
  /// All envelopes that `r` has sent were handled: they come in order.
  void catch_up(std::size_t r) {
    const auto before = waiting_[1 - r].size();
    call(r, {});
    group_->drive([&] { return waiting_[1 - r].size() > before; });
    waiting_[1 - r].pop_back();
  }
  void answer_all(std::size_t r) {
    for (auto& incoming : std::exchange(waiting_[r], {})) incoming.reply("");
  }
  [[nodiscard]] std::uint64_t messages(std::size_t r) { return group_->endpoint(r).traffic(peer_of(r)).messages_sent; }

  Mapped mapped_;
  core::HostAllocator allocator_;
  std::vector<std::shared_ptr<Arenas>> kept_;
  std::optional<ConnectedGroup> group_;
  std::shared_ptr<Arenas> arenas_[2];
  std::deque<Rpc::Incoming> waiting_[2];
  std::unique_ptr<Rpc> calls_[2];
  core::Buffer vectors_[2];
  std::vector<core::Buffer> others_[2];
  std::vector<core::Error> lost_[2];
  std::vector<core::Errc> answers_[2];  // internal: no error
};

INSTANTIATE_TEST_SUITE_P(Endpoints, Farewell, ::testing::ValuesIn([] {
                           auto kinds = transport::testing::endpoint_kinds();
                           std::erase_if(kinds, [](const auto& kind) { return kind.on_device; });
                           return kinds;
                         }()),
                         transport::testing::kind_name);

TEST_P(Farewell, BothMembersUnmapBeforeEitherEnds) {
  offer_both();
  lend(0);
  answer_all(1);
  group_->drive([&] { return answers_[0].size() == 1; });
  EXPECT_EQ(mapped_.mappings_of(0), 2) << "the trial and the vector stay mapped for later calls";
  EXPECT_EQ(calls(0).users(), Rpc::Users::connected);
  calls(0).part();
  group_->drive([&] { return calls(0).parted(); });
  EXPECT_EQ(calls(0).users(), Rpc::Users::none);
  EXPECT_EQ(mapped_.mappings_of(0), 0);
  EXPECT_EQ(mapped_.mappings_of(1), 0);
  EXPECT_TRUE(lost_[0].empty() && lost_[1].empty());
  close(0);
  free(0);
  EXPECT_TRUE(
      std::ranges::all_of(mapped_.blocks, [](const auto& of) { return of.second.freed == (of.second.owner == 0); }));
  group_->drive([&] { return lost_[1].size() == 1; });
  EXPECT_EQ(calls(1).users(), Rpc::Users::none) << "it has heard the other one's farewell";
}

TEST_P(Farewell, NothingIsSaidAndNothingWaitedForWhereNothingIsMapped) {
  call(0, vectors_[0].view());
  group_->drive([&] { return waiting_[1].size() == 1; });
  answer_all(1);
  group_->drive([&] { return answers_[0].size() == 1; });
  const auto before = messages(0);
  calls(0).part();
  EXPECT_TRUE(calls(0).parted());
  EXPECT_EQ(calls(0).users(), Rpc::Users::none);
  catch_up(0);
  EXPECT_LE(messages(0), before + 1) << "the call alone";
  EXPECT_LE(messages(1), 2U) << "vector and answer of the first call";
}

TEST_P(Farewell, AMemberWithAVectorInUseAnswersWhenItIsFree) {
  for (const bool replies : {true, false}) {
    SCOPED_TRACE(replies);
    meet();
    offer_both();
    lend(0);
    calls(0).part();
    catch_up(0);
    EXPECT_FALSE(calls(0).parted());
    EXPECT_GT(mapped_.mappings_of(0), 0);
    EXPECT_EQ(mapped_.mappings_of(1), 0) << "the one that ends uses nothing";
    if (replies) answer_all(1);
    waiting_[1].clear();
    if (!replies) calls(1).advance_farewells();  // a call that is dropped, as one of a lost member, tells nobody
    group_->drive([&] { return calls(0).parted(); });
    EXPECT_EQ(calls(0).users(), Rpc::Users::none);
    EXPECT_EQ(mapped_.mappings_of(0), 0);
  }
}

TEST_P(Farewell, ALostMemberIsNotWaitedForAndItsUseIsNotForgotten) {
  offer_both();
  lend(0);
  calls(0).part();
  catch_up(0);
  group_->endpoint(1).close();
  group_->drive([&] { return lost_[0].size() == 1; });
  EXPECT_TRUE(calls(0).parted());
  EXPECT_EQ(calls(0).users(), Rpc::Users::lost);
}

TEST_P(Farewell, VectorsInPlaceThatCrossAFarewellAreRefusedAndTheConnectionStays) {
  offer_both();
  calls(1).part();
  call(0, vectors_[0].view());  // it has not heard of it
  group_->drive([&] { return answers_[0].size() == 1 && calls(1).parted(); });
  EXPECT_EQ(answers_[0].front(), core::Errc::peer_lost);
  call(0, vectors_[0].view());
  group_->drive([&] { return waiting_[1].size() == 1; });
  EXPECT_NE(waiting_[1].front().vector.data(), vectors_[0].data()) << "it travels";
  std::optional<core::Result<void>> taken;
  calls(0).offer(peer_of(0), [&](const core::Result<void>& result) { taken = result; });
  group_->drive([&] { return taken.has_value(); });
  EXPECT_FALSE(*taken);
  EXPECT_TRUE(lost_[0].empty() && lost_[1].empty());
  EXPECT_EQ(mapped_.mappings_of(0), 0);
}

TEST_P(Farewell, AMemberThatIsLeftHearsItFirst) {
  offer_both();
  calls(1).leave(peer_of(1), "it is no longer a member");
  group_->drive([&] { return lost_[0].size() == 1 && lost_[1].size() == 1; });
  EXPECT_EQ(calls(0).users(), Rpc::Users::none);
  EXPECT_EQ(mapped_.mappings_of(0), 0);
}

// A reduction may use the memory and wait for the peer.
TEST_P(Farewell, AMemberWhoseMemoryIsInUseIsLeftAtOnce) {
  offer_both();
  lend(0);
  calls(1).leave(peer_of(1), "it is no longer a member");
  group_->drive([&] { return lost_[0].size() == 1; });
  EXPECT_EQ(calls(0).users(), Rpc::Users::lost);
  EXPECT_GT(mapped_.mappings_of(0), 0);
}

// Whatever is under way when one or both end, and however long the callee keeps it: the memory of a member that is told `none` is not mapped.
TEST_P(Farewell, NoMemoryIsFreedWhileItIsMapped) {
  std::size_t all_parted = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    meet();
    core::Random random(seed, core::Purpose::test, 7);
    const auto chance = [&](std::uint64_t in) { return random.below(in) == 0; };
    if (!chance(4)) offer(0);
    if (!chance(4)) offer(1);
    bool parts[2]{}, ended[2]{};
    for (int event = 0; event < 200 && !(ended[0] && ended[1]); ++event) {
      const auto r = static_cast<std::size_t>(random.below(2));
      if (ended[r]) continue;
      if (!parts[r] && lost_[r].empty() && chance(2)) call(r, chance(3) ? core::Span{} : another_vector(r));
      if (!waiting_[r].empty() && chance(3)) {
        const auto which = static_cast<std::ptrdiff_t>(random.below(waiting_[r].size()));
        if (!chance(4)) waiting_[r][static_cast<std::size_t>(which)].reply("");
        waiting_[r].erase(waiting_[r].begin() + which);  // or it is dropped
      }
      if (chance(20)) calls(r).part(), parts[r] = true;
      if (chance(300)) group_->endpoint(r).disconnect(peer_of(r), "the test wants it");
      if (chance(3)) calls(r).advance_farewells();
      if (chance(2)) group_->poll();
      if (parts[r] && calls(r).parted()) {
        all_parted += calls(r).users() == Rpc::Users::none ? 1 : 0;
        close(r);
        free(r);
        ended[r] = true;
      }
    }
    if (seed % 2 == 0) {  // the rest ends in order; what is not answered is dropped
      for (std::size_t r = 0; r < 2; ++r)
        if (!ended[r]) calls(r).part();
      group_->drive([&] {
        bool all = true;
        for (std::size_t r = 0; r < 2; ++r) {
          if (ended[r]) continue;
          waiting_[r].clear();
          calls(r).advance_farewells();
          all = all && calls(r).parted();
        }
        return all;
      });
      for (std::size_t r = 0; r < 2; ++r) all_parted += !ended[r] && calls(r).users() == Rpc::Users::none ? 1U : 0U;
    }
    // And else in any state.
    const auto first = static_cast<std::size_t>(random.below(2));
    for (const auto r : {first, 1 - first}) {
      if (ended[r]) continue;
      close(r);
      free(r);
    }
    ASSERT_EQ(mapped_.wrongs, 0U);
  }
  EXPECT_GT(all_parted, 10U);
}

}  // namespace
}  // namespace troupe::exchange::testing
