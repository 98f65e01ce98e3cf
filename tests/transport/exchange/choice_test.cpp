#include "transport/exchange/collectives/choice.hpp"

#include <gtest/gtest.h>

namespace troupe::exchange {
namespace {

using enum Algorithm;
using Algorithms = std::vector<Algorithm>;
using Lengths = std::vector<std::size_t>;
using Choices = std::vector<Choice>;

TEST(Choice, CandidatesAreTheAlgorithmsThatCanDiffer) {
  EXPECT_EQ(candidates(1, {}, true), Algorithms{asa});
  EXPECT_EQ(candidates(2, {}, false), Algorithms{asa});
  EXPECT_EQ(candidates(2, {}, true), (Algorithms{asa, shm}));
  EXPECT_EQ(candidates(3, {}, false), (Algorithms{asa, ring}));
  EXPECT_EQ(candidates(3, {}, true), (Algorithms{asa, shm, ring}));
  const std::vector<std::uint32_t> two{7, 7, 9, 9}, each{1, 2, 3}, one{4, 4, 4};
  EXPECT_EQ(candidates(4, two, false), (Algorithms{asa, ring, hierarchical}));
  EXPECT_EQ(candidates(3, each, false), (Algorithms{asa, ring}));
  EXPECT_EQ(candidates(3, one, false), (Algorithms{asa, ring}));
}

TEST(Choice, MeasuredLengthsEndAtTheLongestVector) {
  EXPECT_EQ(lengths_to_measure(100), Lengths{100});
  EXPECT_EQ(lengths_to_measure(4096), Lengths{4096});
  EXPECT_EQ(lengths_to_measure(5000), (Lengths{4096, 5000}));
  EXPECT_EQ(lengths_to_measure(61'000'000), (Lengths{4096, 65536, 1048576}));
}

TEST(Choice, FastestIsChosenIfItIsMuchFasterThanAsa) {
  EXPECT_EQ(choose({}), Choices{{}});
  const std::vector<Timing> close{{100, asa, 1.0}, {100, ring, 0.81}};
  EXPECT_EQ(choose(close), (Choices{{{}, asa}}));
  const std::vector<Timing> clear{{100, asa, 1.0}, {100, ring, 0.79}, {100, hierarchical, 0.78}};
  EXPECT_EQ(choose(clear), (Choices{{{}, hierarchical}}));
}

TEST(Choice, BordersLieBetweenMeasuredLengths) {
  const std::vector<Timing> timings{{100, asa, 1},        {100, ring, 2},        {10'000, asa, 10},
                                    {10'000, ring, 5},    {40'000, asa, 40},     {40'000, ring, 20},
                                    {1'000'000, asa, 90}, {1'000'000, ring, 100}};
  EXPECT_EQ(choose(timings), (Choices{{1000, asa}, {200'000, ring}, {{}, asa}}));
}

TEST(Choice, DescriptionHasTheChoiceAndItsMeasurements) {
  const std::vector<Timing> timings{{100, asa, 0.001}, {100, ring, 0.002}, {400, asa, 0.02}, {400, ring, 0.0105}};
  EXPECT_EQ(describe(choose(timings), timings),
            "asa up to 200 floats, then ring (100 floats: asa 1 ms, ring 2 ms; 400 floats: asa 20 ms, ring 10.5 ms)");
  EXPECT_EQ(describe(choose({}), {}), "asa");
}

}  // namespace
}  // namespace troupe::exchange
