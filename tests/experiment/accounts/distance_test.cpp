#include "experiment/accounts/distance.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "core/buffer.hpp"
#include "core/random.hpp"

namespace troupe::experiment {
namespace {

using namespace std::chrono_literals;
using strategies::kAnchor, strategies::kCenter, strategies::kParams, strategies::kPayload, strategies::staged;
using strategies::Transfer;

class Vectors {
 public:
  explicit Vectors(std::size_t floats) : a_(make(floats)), b_(make(floats)) {
    core::Random random(7, core::Purpose::strategy, floats);
    for (std::size_t i = 0; i < floats; ++i) {
      a_.view()[i] = static_cast<float>(random.uniform() - 0.5);
      b_.view()[i] = static_cast<float>(random.uniform() - 0.5);
    }
  }
  [[nodiscard]] core::Span a() { return a_.view(); }
  [[nodiscard]] core::Span b() { return b_.view(); }

 private:
  core::Buffer make(std::size_t floats) {
    auto buffer = core::Buffer::allocate(memory_, floats, "a test's vector");
    if (!buffer) throw std::bad_alloc();
    return std::move(*buffer);
  }
  core::HostAllocator memory_;
  core::Buffer a_, b_;
};

TEST(Distance, IsTheEuclideanNormWhateverTheLength) {
  for (const std::size_t floats : {1, 15, 16, 4095, 4096, 4097, 3 * 4096 + 5}) {
    Vectors v(floats);
    double sum = 0;  // of the float32 differences, in float64
    for (std::size_t i = 0; i < floats; ++i) sum += std::pow(static_cast<double>(v.a()[i] - v.b()[i]), 2);
    EXPECT_NEAR(squared_distance(core::host_kernels(), v.a(), v.b()), sum, 1e-12 * sum) << floats;
    EXPECT_EQ(squared_distance(core::host_kernels(), v.a(), v.a()), 0);
  }
}

TEST(Distance, SameBitsOnEveryCpuAndNoVectorIsWritten) {
  Vectors v(2 * 4096 + 100), same(2 * 4096 + 100);
  EXPECT_EQ(squared_distance(core::host_kernels(), v.a(), v.b()),
            squared_distance(core::reference_kernels(), v.a(), v.b()));
  EXPECT_TRUE(std::ranges::equal(v.a(), same.a()));
  EXPECT_TRUE(std::ranges::equal(v.b(), same.b()));
}

TEST(DistanceMeter, MeasuresInHostMemoryWithoutScratchMemory) {
  Vectors v(3 * 4096 + 5);
  DistanceMeter meter(core::host_kernels());
  const auto expected = squared_distance(core::reference_kernels(), v.a(), v.b());
  EXPECT_EQ(meter.squared(v.a(), v.b()), expected);
  EXPECT_EQ(meter.squared_from_host(v.a(), v.b()), expected);
}

TEST(Distance, ServersMeetTheWorkerWhereTheCallHasBothVectors) {
  const Ends ends{kPayload, kCenter};
  using namespace strategies;
  EXPECT_EQ(ends_at_server(elastic_pair(kPayload, kCenter, 0.5F, 0.5F), Transfer::push_pull), ends);
  EXPECT_EQ(ends_at_server(elastic_delta(kPayload, kCenter, 0.5F, 0.5F), Transfer::push_pull), ends);
  EXPECT_EQ(ends_at_server(scale_add(kPayload, 0.5F, 0.5F, kCenter), Transfer::push_pull), ends);
  EXPECT_EQ(ends_at_server(copy(kPayload, kCenter), Transfer::pull), ends);
  // What is pushed is a change, not x; and a late change is answered by the centre.
  EXPECT_FALSE(ends_at_server(axpy(kCenter, 1, kPayload), Transfer::push));
  EXPECT_FALSE(ends_at_server(copy(kPayload, kCenter), Transfer::push_pull));
  EXPECT_FALSE(ends_at_server(scale_add(kCenter, 0.5F, 0.5F, server_state(0)), Transfer::push_pull));
}

TEST(Distance, WorkersMeetTheCentreInTheirAnchorAndInWhatTheyFetched) {
  using namespace strategies;
  EXPECT_EQ(ends_at_worker(difference(staged(0), kAnchor, kParams)), (Ends{kParams, kAnchor}));
  EXPECT_EQ(ends_at_worker(copy(kParams, staged(1))), (Ends{kParams, staged(1)}));
  EXPECT_FALSE(ends_at_worker(copy(kAnchor, kParams)));
  EXPECT_FALSE(ends_at_worker(copy(kParams, kGrads)));
  EXPECT_FALSE(ends_at_worker(axpy(kParams, 1, kGrads)));
}

TEST(DistanceGauge, PartsMakeADistanceWhenAllAreThere) {
  DistanceGauge gauge;
  EXPECT_FALSE(gauge.lacks(0)) << "nothing has begun";
  ASSERT_TRUE(gauge.begin_if_due(0s, 0s, 0, 100));
  EXPECT_FALSE(gauge.add(60, 40, 16));
  EXPECT_FALSE(gauge.lacks(60));
  EXPECT_FALSE(gauge.add(60, 40, 16)) << "the same part again";
  EXPECT_EQ(gauge.add(0, 60, 9), 5);  // √(9 + 16)
  EXPECT_FALSE(gauge.lacks(0)) << "it is complete";
}

TEST(DistanceGauge, MeasuresForAThousandthOfTheTimeOfComputing) {
  DistanceGauge gauge;
  ASSERT_TRUE(gauge.begin_if_due(1s, 0s, 0, 1));
  // 100 ms in own kernels over 100 steps: 1 ms each, so a measurement is taken for 1.25 ms, due after 1,250 ms.
  EXPECT_FALSE(gauge.begin_if_due(2249ms, 100ms, 100, 1));
  EXPECT_TRUE(gauge.begin_if_due(2251ms, 100ms, 100, 1));
  EXPECT_FALSE(gauge.begin_if_due(2252ms, 100ms, 100, 1));
}

TEST(DistanceGauge, MeasurementsWithACopyAreHalfAsOften) {
  DistanceGauge gauge;
  const auto due = [&](core::Duration compute, core::Duration local, std::size_t floats) {
    return gauge.begin_if_due(compute, local, 100, floats, DistanceGauge::kLengthWithCopy);
  };
  ASSERT_TRUE(due(1s, 0s, 1));
  EXPECT_FALSE(due(3499ms, 100ms, 1));  // 2.5 times the 1 ms of a step's kernels
  ASSERT_TRUE(due(3501ms, 100ms, 1));
  EXPECT_FALSE(due(5500ms, 0s, 1'000'000));  // 2 ms for a million floats
  EXPECT_TRUE(due(5502ms, 0s, 1'000'000));
}

TEST(DistanceGauge, MeasuresAsRarelyWhereTheOptimizerIsAProgramsOwn) {
  DistanceGauge gauge;
  ASSERT_TRUE(gauge.begin_if_due(1s, 0s, 1, 1'000'000));
  // Its own kernels take no time: 1 ms for a million floats, due after a second.
  EXPECT_FALSE(gauge.begin_if_due(1999ms, 0s, 100, 1'000'000));
  EXPECT_TRUE(gauge.begin_if_due(2001ms, 0s, 101, 1'000'000));
}

TEST(DistanceGauge, AnIncompleteMeasurementIsForgottenAndWhatIsNotFiniteIsNone) {
  DistanceGauge gauge;
  ASSERT_TRUE(gauge.begin_if_due(0s, 0s, 0, 10));
  EXPECT_FALSE(gauge.add(0, 5, 1));
  ASSERT_TRUE(gauge.begin_if_due(1s, 0s, 1, 10));
  EXPECT_TRUE(gauge.lacks(0));
  EXPECT_FALSE(gauge.add(0, 10, std::numeric_limits<double>::infinity()));
  ASSERT_TRUE(gauge.begin_if_due(2s, 0s, 2, 10));
  EXPECT_FALSE(gauge.add(0, 11, 1)) << "more than there is";
}

}  // namespace
}  // namespace troupe::experiment
