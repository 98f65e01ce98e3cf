// Every algorithm over every endpoint: 1 to 8 ranks, lengths around slice and chunk borders. Results equal plain loops in the documented
// order bit for bit; the bytes sent equal collective_bytes().
#include "transport/exchange/collectives/collective.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "tests/transport/exchange/connected_group.hpp"

namespace troupe::exchange::testing {
namespace {

constexpr std::size_t kMostRanks = 8;
constexpr Chunking kSmall{.floats = 48, .window = 3};

using Floats = std::vector<float>;

/// Adds up the element's parts, one per rank, in this order.
float sum(const Floats& parts, const std::vector<std::size_t>& order) {
  float total = parts[order.front()];
  for (std::size_t i = 1; i < order.size(); ++i) total = total + parts[order[i]];
  return total;
}

struct Expectation {
  CollectiveTask task;
  Group group;

  Floats of(const std::vector<core::Buffer>& vectors) const {
    Floats result(task.vector.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      Floats parts;
      for (const auto& vector : vectors) parts.push_back(vector.view()[i]);
      result[i] = task.root ? parts[*task.root] : element(parts, owner(i));
    }
    return result;
  }

 private:
  std::size_t owner(std::size_t i) const {
    std::size_t rank = 0;
    while (true) {
      const auto slice = core::slice_of(task.vector.size(), rank, group.size());
      if (i < slice.offset + slice.count) return rank;
      ++rank;
    }
  }

  float element(const Floats& parts, std::size_t owner) const {
    const std::size_t n = parts.size();
    std::vector<std::size_t> order;
    for (std::size_t r = 0; r < n; ++r) order.push_back(task.algorithm == Algorithm::ring ? (owner + r) % n : r);
    if (task.algorithm == Algorithm::hierarchical) {
      Floats hosts;
      std::vector<std::uint32_t> seen;
      for (std::size_t r = 0; r < n; ++r) {
        const auto host = std::ranges::find(seen, group.hosts[r]) - seen.begin();
        if (host == static_cast<std::ptrdiff_t>(seen.size())) {
          seen.push_back(group.hosts[r]);
          hosts.push_back(parts[r]);
        } else {
          hosts[static_cast<std::size_t>(host)] = hosts[static_cast<std::size_t>(host)] + parts[r];
        }
      }
      float total = hosts[0];
      for (std::size_t h = 1; h < hosts.size(); ++h) total = total + hosts[h];
      return total * task.scale;
    }
    if (task.algorithm != Algorithm::asa16 || n == 1) return sum(parts, order) * task.scale;
    Floats rounded = parts;
    for (std::size_t r = 0; r < n; ++r)
      if (r != owner) rounded[r] = core::from_half(core::to_half(parts[r], task.half), task.half);
    return core::from_half(core::to_half(sum(rounded, order) * task.scale, task.half), task.half);
  }
};

class CollectiveOver : public ::testing::TestWithParam<transport::testing::EndpointKind> {
 protected:
  void check(ConnectedGroup& connected, CollectiveTask task, std::vector<std::uint32_t> hosts = {}) {
    auto vectors = connected.vectors(task.vector.size());
    std::vector<std::uint64_t> before, planned;
    Floats wanted;
    for (std::size_t r = 0; r < connected.size(); ++r) {
      auto group = connected.group(r);
      group.hosts = hosts;
      if (wanted.empty()) wanted = Expectation{task, group}.of(vectors);
      before.push_back(connected.bytes_sent(r));
      planned.push_back(collective_bytes(task, group, task.vector.size()));
    }
    std::vector<std::size_t> runs;
    for (std::size_t r = connected.size(); r-- > 0;) {
      auto group = connected.group(r);
      group.hosts = hosts;
      runs.push_back(connected.start(r, group, task, vectors));
    }
    connected.finish();
    for (const auto run : runs) ASSERT_TRUE(connected.ended(run)->has_value()) << connected.ended(run)->error().message;
    for (std::size_t r = 0; r < connected.size(); ++r) {
      const auto result = vectors[r].view().first(wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i)
        ASSERT_EQ(result[i], wanted[i]) << "rank " << r << " of " << connected.size() << ", element " << i << " of "
                                        << wanted.size();
      EXPECT_EQ(connected.bytes_sent(r) - before[r], planned[r]) << "rank " << r << " of " << connected.size();
    }
  }

  /// A task over `floats` floats; ConnectedGroup sets its memory.
  CollectiveTask task(Algorithm algorithm, std::size_t floats) {
    return {.algorithm = algorithm,
            .scale = 0.25f,
            .vector = core::Span(lengths_).first(floats),
            .tag = {.run = 1, .exchange = ++exchange_},
            .chunks = kSmall};
  }

 private:
  Floats lengths_ = Floats(5000);
  std::uint32_t exchange_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Endpoints, CollectiveOver, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

constexpr std::size_t kLengths[] = {0, 1, 15, 16, 17, 47, 48, 129, 1000, 4099};

TEST_P(CollectiveOver, SumsEqualTheDocumentedOrderBitForBit) {
  for (std::size_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    ConnectedGroup connected(GetParam(), ranks);
    for (const auto algorithm : {Algorithm::asa, Algorithm::ring, Algorithm::shm})
      for (const auto floats : kLengths) {
        if (algorithm == Algorithm::shm && !connected.maps_memory()) continue;
        SCOPED_TRACE(fmt::format("{} of {} floats over {} ranks", name(algorithm), floats, ranks));
        check(connected, task(algorithm, floats));
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
  }
}

TEST_P(CollectiveOver, RoundsOnTheWireOnly) {
  for (std::size_t ranks = 1; ranks <= kMostRanks; ++ranks) {
    ConnectedGroup connected(GetParam(), ranks);
    for (const auto half : {core::HalfKind::fp16, core::HalfKind::bf16})
      for (const auto floats : kLengths) {
        auto halves = task(Algorithm::asa16, floats);
        halves.half = half;
        check(connected, halves);
        if (HasFatalFailure() || HasNonfatalFailure()) return;
      }
  }
}

TEST_P(CollectiveOver, SumsHostByHost) {
  const std::vector<std::vector<std::uint32_t>> places = {
      {7, 7, 9}, {7, 9, 7, 9}, {1, 1, 1, 2, 2}, {3, 1, 1, 3, 2}, {0, 0, 0, 0, 1, 1, 1, 1}, {1, 2, 1, 2, 1, 3, 3}};
  for (const auto& hosts : places) {
    ConnectedGroup connected(GetParam(), hosts.size());
    for (const auto floats : kLengths) {
      check(connected, task(Algorithm::hierarchical, floats), hosts);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
}

TEST_P(CollectiveOver, BroadcastsFromAnyRank) {
  for (const std::size_t ranks : {1U, 2U, 5U}) {
    ConnectedGroup connected(GetParam(), ranks);
    for (std::size_t root = 0; root < ranks; ++root)
      for (const auto algorithm : {Algorithm::asa, Algorithm::shm})
        for (const auto floats : {0U, 1U, 129U, 4099U}) {
          if (algorithm == Algorithm::shm && !connected.maps_memory()) continue;
          auto broadcast = task(algorithm, floats);
          broadcast.root = root;
          check(connected, broadcast);
          if (HasFatalFailure() || HasNonfatalFailure()) return;
        }
  }
}

/// Credit for less than one chunk: every operation waits for its turn, and all complete.
TEST_P(CollectiveOver, GoesOnWithLittleCredit) {
  for (const std::size_t ranks : {2U, 5U}) {
    ConnectedGroup connected(GetParam(), ranks, {.messages = 2, .bytes = 100});
    for (const auto algorithm : {Algorithm::asa, Algorithm::asa16, Algorithm::ring})
      check(connected, task(algorithm, 4099));
    check(connected, task(Algorithm::hierarchical, 4099),
          ranks == 5 ? std::vector<std::uint32_t>{0, 0, 1, 1, 1} : std::vector<std::uint32_t>{0, 1});
  }
}

/// Several collectives at once, started in a different order by each rank: tags keep them apart.
TEST_P(CollectiveOver, ConcurrentCollectivesDoNotMix) {
  constexpr std::size_t kRanks = 3;
  ConnectedGroup connected(GetParam(), kRanks);
  std::vector<CollectiveTask> tasks = {task(Algorithm::asa, 1000), task(Algorithm::ring, 777),
                                       task(Algorithm::asa16, 130), task(Algorithm::asa, 1)};
  std::vector<std::vector<core::Buffer>> data;
  std::vector<Floats> wanted;
  for (const auto& t : tasks) {
    data.push_back(connected.vectors(t.vector.size()));
    wanted.push_back(Expectation{t, connected.group(0)}.of(data.back()));
  }
  for (std::size_t r = 0; r < kRanks; ++r)
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      const auto which = ((r % 2 == 0 ? k : tasks.size() - 1 - k) + r) % tasks.size();
      connected.start(r, tasks[which], data[which]);
      connected.poll();
    }
  connected.finish();
  for (std::size_t k = 0; k < tasks.size(); ++k)
    for (std::size_t r = 0; r < kRanks; ++r) {
      const auto result = data[k][r].view().first(wanted[k].size());
      EXPECT_TRUE(std::ranges::equal(result, wanted[k])) << "task " << k << ", rank " << r;
    }
}

TEST(Collective, InvalidTasksAreRefused) {
  ConnectedGroup connected(transport::testing::endpoint_kinds().front(), 2);
  const auto attempt = [&](const std::function<void(CollectiveTask&, Group&)>& change) {
    CollectiveTask task;
    Group group = connected.group(0);
    change(task, group);
    return make_collective(connected.operations(0), core::host_kernels(), group, task, [](auto) {});
  };
  EXPECT_NO_THROW((void)attempt([](auto&, auto&) {}));
  EXPECT_THROW((void)attempt([](auto& task, auto&) { task.algorithm = Algorithm::ar; }), std::invalid_argument);
  EXPECT_THROW((void)attempt([](auto& task, auto&) { task.algorithm = Algorithm::automatic; }), std::invalid_argument);
  EXPECT_THROW((void)attempt([](auto& task, auto&) { task.algorithm = Algorithm::shm; }), std::invalid_argument);
  EXPECT_THROW((void)attempt([](auto& task, auto&) { task.root = 2; }), std::invalid_argument);
  EXPECT_THROW((void)attempt([](auto& task, auto&) { task.chunks.floats = 17; }), std::invalid_argument);
  EXPECT_THROW((void)attempt([](auto&, auto& group) { group.rank = 2; }), std::invalid_argument);
  EXPECT_THROW((void)attempt([](auto&, auto& group) { group.hosts = {1}; }), std::invalid_argument);
}

}  // namespace
}  // namespace troupe::exchange::testing
