// Collectives among members in one process: messages in random orders, compared with a serial sum in rank order.
#include "actors/worker/rendezvous.hpp"

#include <gtest/gtest.h>

#include "core/buffer.hpp"
#include "core/random.hpp"

namespace troupe::actors {
namespace {

using strategies::ReduceOp;
using strategies::WorkerId;

struct Member {
  explicit Member(WorkerId self) : rendezvous(self) {}
  Rendezvous rendezvous;
  std::shared_ptr<core::Buffer> arena;
  bool begun = false;
  std::optional<Rendezvous::Finished> finished;
};

/// Runs one collective with messages delivered in a random order. Returns each member's result.
std::vector<std::vector<float>> play(std::size_t members, std::size_t floats, std::optional<WorkerId> root, ReduceOp op,
                                     std::uint64_t seed) {
  core::HostAllocator memory;
  core::Random random(seed, core::Purpose::test, 0);
  std::vector<Member> actors;
  strategies::Group group;
  for (WorkerId w = 0; w < members; ++w) {
    actors.emplace_back(w);
    group.push_back(w);
    actors[w].arena = std::make_shared<core::Buffer>(std::move(*core::Buffer::allocate(memory, floats)));
    for (std::size_t i = 0; i < floats; ++i)
      actors[w].arena->data()[i] = static_cast<float>(w + 1) * 0.1F + static_cast<float>(i);
  }
  const Rendezvous::Key key{7, 3};
  struct Message {
    WorkerId to = 0;
    WorkerId from = 0;
    int what = 0;  // 0: begin, 1: offer, 2: share done
  };
  std::vector<Message> in_flight;
  for (WorkerId w = 0; w < members; ++w) in_flight.push_back({w, w, 0});
  const core::Duration now{1};
  const auto advance = [&](WorkerId w) {
    if (actors[w].rendezvous.work(key, core::reference_kernels())) {
      for (WorkerId other = 0; other < members; ++other) {
        if (other != w) in_flight.push_back({other, w, 2});
      }
    }
    if (auto finished = actors[w].rendezvous.finish(key)) actors[w].finished = finished;
  };
  while (!in_flight.empty()) {
    const auto at = static_cast<std::ptrdiff_t>(random.below(in_flight.size()));
    const auto message = in_flight[static_cast<std::size_t>(at)];
    in_flight.erase(in_flight.begin() + at);
    auto& member = actors[message.to];
    if (message.what == 0) {
      member.rendezvous.begin(key, {group, root, op, strategies::kGrads}, {member.arena->view(), member.arena}, now);
      for (WorkerId other = 0; other < members; ++other) {
        if (other != message.to) in_flight.push_back({other, message.to, 1});
      }
    } else if (message.what == 1) {
      member.rendezvous.offered(key, message.from, {actors[message.from].arena->view(), actors[message.from].arena},
                                now);
    } else {
      member.rendezvous.share_done(key, message.from);
    }
    advance(message.to);
  }
  std::vector<std::vector<float>> result;
  for (auto& member : actors) {
    EXPECT_TRUE(member.finished.has_value());
    EXPECT_FALSE(member.rendezvous.oldest().has_value());
    result.emplace_back(member.arena->data(), member.arena->data() + floats);
  }
  return result;
}

TEST(Rendezvous, EveryMemberGetsTheSameMeanInEveryOrder) {
  for (std::size_t members = 1; members <= 5; ++members) {
    std::vector<float> expected(100);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      float sum = 0.1F + static_cast<float>(i);
      for (std::size_t w = 1; w < members; ++w) sum += static_cast<float>(w + 1) * 0.1F + static_cast<float>(i);
      expected[i] = sum * (1 / static_cast<float>(members));
    }
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      for (const auto& held : play(members, 100, {}, ReduceOp::mean, seed))
        ASSERT_EQ(held, expected) << members << " members, seed " << seed;
    }
  }
}

TEST(Rendezvous, BroadcastGivesEveryMemberTheRootsVector) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto held = play(4, 70, 2, ReduceOp::sum, seed);
    for (const auto& vector : held) {
      for (std::size_t i = 0; i < vector.size(); ++i) ASSERT_EQ(vector[i], 3 * 0.1F + static_cast<float>(i));
    }
  }
}

TEST(Rendezvous, NamesTheMissingMember) {
  core::HostAllocator memory;
  const auto arena = std::make_shared<core::Buffer>(std::move(*core::Buffer::allocate(memory, 16)));
  Rendezvous rendezvous(0);
  rendezvous.begin({1, 0}, {{0, 1, 2}, {}, ReduceOp::sum, strategies::kGrads}, {arena->view(), arena},
                   core::Duration{5});
  rendezvous.offered({1, 0}, 2, {arena->view(), arena}, core::Duration{6});
  EXPECT_EQ(rendezvous.oldest(), core::Duration{5});
  EXPECT_EQ(rendezvous.missing(), (std::vector<WorkerId>{0, 1, 2}));  // 1 offered no part, and no share is done
  EXPECT_FALSE(rendezvous.work({1, 0}, core::reference_kernels()));
}

}  // namespace
}  // namespace troupe::actors
