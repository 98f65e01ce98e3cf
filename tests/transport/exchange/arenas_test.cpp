// Arenas of members, over every endpoint that maps memory: their size, the place of a vector, and what another member sees of it.
#include "transport/exchange/arenas.hpp"

#include <algorithm>
#include <optional>

#include "tests/transport/exchange/connected_group.hpp"

namespace troupe::exchange::testing {
namespace {

constexpr std::size_t kFloats = 5000;

std::vector<transport::testing::EndpointKind> kinds() {
  std::vector<transport::testing::EndpointKind> all;
  for (const auto& kind : transport::testing::endpoint_kinds())
    if (!kind.on_device && (kind.name == "inproc" || kind.name == "shm")) all.push_back(kind);
  return all;
}

class ArenasOver : public ::testing::TestWithParam<transport::testing::EndpointKind> {
 protected:
  void SetUp() override {
    group_.emplace(GetParam(), 2);
    ASSERT_TRUE(group_->maps_memory());
  }
  /// What rank 0 sees of a vector of rank 1.
  [[nodiscard]] core::Result<transport::Mapping> seen(const ArenaPlace& place, std::size_t floats) {
    return group_->arenas(0).vector_at(group_->group(0).peers[1], place, floats);
  }
  [[nodiscard]] core::Errc refusal(const ArenaPlace& place, std::size_t floats) {
    const auto vector = seen(place, floats);
    return vector ? core::Errc::internal : vector.error().code;
  }

  std::optional<ConnectedGroup> group_;
};

INSTANTIATE_TEST_SUITE_P(Endpoints, ArenasOver, ::testing::ValuesIn(kinds()), transport::testing::kind_name);

TEST_P(ArenasOver, WritesAreVisibleToTheOtherMember) {
  auto arenas = group_->vectors(kFloats);
  auto& own = group_->arenas(1);
  const auto part = arenas[1].view().subspan(160, 100);
  EXPECT_TRUE(own.contains(part));
  const auto place = own.place_of(part);
  EXPECT_EQ(place.arena_floats, kFloats);
  EXPECT_EQ(place.offset, 160U);
  const auto there = seen(place, part.size()).value();
  EXPECT_TRUE(std::ranges::equal(there.view(), part));
  there.view()[7] = 42;
  EXPECT_EQ(arenas[1].view()[167], 42);
  // Another part of the arena that is already attached.
  const auto all = seen(own.place_of(arenas[1].view()), kFloats).value();
  EXPECT_EQ(all.view()[167], 42);
}

TEST_P(ArenasOver, MemoryOutsideArenasHasNoPosition) {
  auto arenas = group_->vectors(kFloats);
  auto& own = group_->arenas(0);
  std::vector<float> elsewhere(16);
  EXPECT_FALSE(own.contains(elsewhere));
  EXPECT_FALSE(own.contains(arenas[1].view()));
  EXPECT_FALSE(own.contains(core::ConstSpan(arenas[0].data(), kFloats + 1)));
  EXPECT_TRUE(own.contains(core::ConstSpan(arenas[0].data() + kFloats, 0)));
  EXPECT_THROW((void)own.place_of(elsewhere), std::invalid_argument);
  arenas[0] = core::Buffer();
  EXPECT_THROW((void)own.place_of(arenas[0].view()), std::invalid_argument);
}

TEST_P(ArenasOver, InvalidPlacesAreCorrupt) {
  auto arenas = group_->vectors(kFloats);
  const auto place = group_->arenas(1).place_of(arenas[1].view());
  const auto with = [&](auto field, std::uint64_t value) {
    auto wrong = place;
    wrong.*field = value;
    return wrong;
  };
  using enum core::Errc;
  EXPECT_EQ(refusal(place, kFloats + 1), corrupt);
  EXPECT_EQ(refusal(with(&ArenaPlace::offset, 16), kFloats), corrupt);
  EXPECT_EQ(refusal(with(&ArenaPlace::offset, ~std::uint64_t{15}), 16), corrupt);
  EXPECT_EQ(refusal(with(&ArenaPlace::offset, 1), 16), corrupt);
  EXPECT_EQ(refusal(with(&ArenaPlace::arena_floats, 4096), 4096), corrupt);
  ASSERT_TRUE(seen(place, kFloats));
  EXPECT_EQ(refusal(with(&ArenaPlace::arena_floats, 4096), 4096), corrupt);
  auto unknown = place;
  std::ranges::fill(unknown.key, 'x');
  EXPECT_EQ(refusal(unknown, kFloats), peer_lost);
  std::ranges::fill(unknown.key, '\0');
  EXPECT_EQ(refusal(unknown, kFloats), peer_lost);
}

TEST_P(ArenasOver, AMappingStaysAfterItsOwnerEnds) {
  auto arenas = group_->vectors(kFloats);
  const float first = arenas[1].view()[0];
  const auto place = group_->arenas(1).place_of(arenas[1].view());
  const auto there = seen(place, kFloats).value();
  arenas[1] = core::Buffer();
  group_->endpoint(1).close();
  EXPECT_EQ(there.view()[0], first);
  EXPECT_TRUE(seen(place, kFloats)) << "it is attached";
  group_->arenas(0).forget(group_->group(0).peers[1]);
  EXPECT_EQ(there.view()[0], first);
  EXPECT_EQ(refusal(place, kFloats), core::Errc::peer_lost);
}

TEST_P(ArenasOver, LiveUntilTheirMemoryIsFreed) {
  auto arenas = group_->vectors(kFloats);
  auto more = group_->vectors(16);
  const auto alive = group_->arenas(0).weak_from_this();
  group_.reset();
  arenas.clear();
  EXPECT_FALSE(alive.expired());
  more[0].view()[0] = 1;
  more.clear();
  EXPECT_TRUE(alive.expired());
}

TEST(Arenas, NeedAnEndpointThatMaps) {
  ConnectedGroup connected({"tcp", [] { return transport::EndpointOptions{}; }}, 2);
  EXPECT_FALSE(connected.maps_memory());
  EXPECT_THROW((void)Arenas::create({std::shared_ptr<void>(), &connected.endpoint(0)}), std::invalid_argument);
}

/// A device's memory: what is freed is allocated again under its key, also with another length.
class KeptMemory final : public transport::MappedMemory {
 public:
  core::Allocator& allocator() noexcept override { return host_; }
  core::Result<transport::Exposure> expose(std::shared_ptr<core::Buffer> arena) override {
    return transport::Exposure({"kept"}, std::move(arena));
  }
  core::Result<transport::Mapping> attach(const transport::ArenaKey& /*key*/, std::size_t floats) override {
    attached.push_back(floats);
    return transport::Mapping({block.data(), floats}, nullptr);
  }
  std::vector<float> block = std::vector<float>(1024);
  std::vector<std::size_t> attached;

 private:
  core::HostAllocator host_;
};

TEST(ArenasOfKeptMemory, AnArenaThatIsLongerThanTheOneBeforeItIsAttachedAnew) {
  const auto memory = std::make_shared<KeptMemory>();
  const auto owner = Arenas::create(memory), peer = Arenas::create(memory);
  for (const std::size_t floats : {128U, 512U, 512U, 64U}) {
    SCOPED_TRACE(floats);
    const auto arena = core::Buffer::allocate(*owner, floats).value();
    const auto seen = peer->vector_at(transport::Peer{1}, owner->place_of(arena.view()), floats);
    ASSERT_TRUE(seen) << seen.error().message;
    EXPECT_EQ(seen->view().size(), floats);
  }
  EXPECT_EQ(memory->attached, (std::vector<std::size_t>{128, 512, 64}));
}

TEST(ArenasOfKeptMemory, LengthsWhoseBytesCannotBeCountedAreRefused) {
  const auto memory = std::make_shared<KeptMemory>();
  const auto peer = Arenas::create(memory);
  ArenaPlace place{.arena_floats = (std::uint64_t{1} << 62) + 64, .offset = std::uint64_t{1} << 40};
  place.key[0] = 'k';
  EXPECT_EQ(peer->vector_at(transport::Peer{1}, place, 64).error().code, core::Errc::corrupt);
  EXPECT_TRUE(memory->attached.empty());
}

}  // namespace
}  // namespace troupe::exchange::testing
