// Allgather and reduce-scatter over parts of any lengths, over every endpoint: empty parts, parts of one float, fewer summands than ranks.
#include "transport/exchange/collectives/parts.hpp"

#include <gtest/gtest.h>

#include "tests/transport/exchange/connected_group.hpp"

namespace troupe::exchange::testing {
namespace {

using Floats = std::vector<float>;
using transport::testing::EndpointKind;

std::vector<core::Slice> parts_of(const std::vector<std::size_t>& lengths) {
  std::vector<core::Slice> parts;
  std::size_t offset = 0;
  for (const auto length : lengths) {
    parts.push_back({offset, length});
    offset += length;
  }
  return parts;
}

/// A number that rounds when it is added to others, different for each rank and place.
float value(std::size_t rank, std::size_t i) { return 1.0F / static_cast<float>(3 + 7 * rank + i); }

Floats vector_of(std::size_t rank, const std::vector<core::Slice>& parts) {
  Floats vector(parts.back().offset + parts.back().count);
  for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = value(rank, i);
  return vector;
}

class PartsOver : public ::testing::TestWithParam<EndpointKind> {
 protected:
  /// Runs one collective at all ranks; summands 0: an allgather.
  static std::vector<Floats> run(const std::vector<std::size_t>& lengths, std::size_t summands) {
    ConnectedGroup group(GetParam(), lengths.size());
    const auto parts = parts_of(lengths);
    std::vector<Floats> vectors;
    for (std::size_t rank = 0; rank < lengths.size(); ++rank) vectors.push_back(vector_of(rank, parts));
    std::size_t ended = 0;
    std::vector<std::unique_ptr<Collective>> collectives;
    for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
      const PartsTask task{.vector = vectors[rank], .parts = parts, .summands = summands};
      const auto done = [&](const core::Result<void>& result) {
        EXPECT_TRUE(result.has_value());
        ++ended;
      };
      collectives.push_back(summands == 0 ? make_allgather(group.operations(rank), group.group(rank), task, done)
                                          : make_reduce_scatter(group.operations(rank), group.group(rank), task, done));
    }
    for (const auto& collective : collectives) collective->start();
    group.drive([&] { return ended == lengths.size(); });
    return vectors;
  }
};

const std::vector<std::vector<std::size_t>>& cases() {
  static const std::vector<std::vector<std::size_t>> all{{5},          {1, 1},    {7, 6, 6},
                                                         {1, 1, 0, 0}, {0, 9, 0}, {3000, 2999, 2999, 2999}};
  return all;
}

TEST_P(PartsOver, AllgatherGivesEveryRankEveryPart) {
  for (const auto& lengths : cases()) {
    const auto parts = parts_of(lengths);
    for (const auto& vector : run(lengths, 0))
      for (std::size_t owner = 0; owner < parts.size(); ++owner)
        for (std::size_t i = parts[owner].offset; i < parts[owner].offset + parts[owner].count; ++i)
          ASSERT_EQ(vector[i], value(owner, i));
  }
}

TEST_P(PartsOver, ReduceScatterSumsTheSummandsInRankOrder) {
  for (const auto& lengths : cases()) {
    const auto parts = parts_of(lengths);
    for (std::size_t summands = 1; summands <= lengths.size(); ++summands) {
      const auto vectors = run(lengths, summands);
      for (std::size_t rank = 0; rank < parts.size(); ++rank)
        for (std::size_t i = 0; i < vectors[rank].size(); ++i) {
          const bool own = i >= parts[rank].offset && i < parts[rank].offset + parts[rank].count;
          float expected = value(own ? 0 : rank, i);
          for (std::size_t r = 1; own && r < summands; ++r) expected += value(r, i);
          ASSERT_EQ(vectors[rank][i], expected) << rank << ' ' << i << " of " << summands;
        }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Endpoints, PartsOver, ::testing::ValuesIn(transport::testing::endpoint_kinds()),
                         transport::testing::kind_name);

TEST(Parts, RefusesWhatDoesNotFit) {
  ConnectedGroup group(transport::testing::endpoint_kinds().front(), 2);
  Floats vector(4);
  const std::vector<core::Slice> one{{0, 4}};
  const auto two = parts_of({2, 2});
  EXPECT_THROW(make_allgather(group.operations(0), group.group(0), {.vector = vector, .parts = one}, {}),
               std::invalid_argument);
  for (const std::size_t summands : {0u, 3u})
    EXPECT_THROW(make_reduce_scatter(group.operations(0), group.group(0),
                                     {.vector = vector, .parts = two, .summands = summands}, {}),
                 std::invalid_argument);
}

}  // namespace
}  // namespace troupe::exchange::testing
