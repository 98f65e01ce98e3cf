// Sums by NCCL: the library's stand-in, and the host's device in several threads and processes.
#include "gpu/nccl/reduction.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include <gtest/gtest.h>

#include "gpu/device/host_device.hpp"

namespace troupe::gpu {
namespace {

constexpr std::size_t kFloats = 10'000;

std::shared_ptr<const NcclLibrary> library() { return NcclLibrary::open(TROUPE_FAKE_NCCL_LIBRARY).value(); }

/// The end of a call, for one thread to wait for.
class End {
 public:
  [[nodiscard]] core::DeviceReduction::Done done() {
    return [promise = promise_](const core::Result<void>& result) { promise->set_value(result); };
  }
  [[nodiscard]] core::Result<void> wait() { return promise_->get_future().get(); }
  [[nodiscard]] core::Errc code() {
    const auto result = wait();
    return result ? core::Errc::internal : result.error().code;
  }

 private:
  std::shared_ptr<std::promise<core::Result<void>>> promise_ = std::make_shared<std::promise<core::Result<void>>>();
};

/// One rank with a vector of its own: i · (rank + 1).
struct Rank {
  explicit Rank(std::size_t number) : rank(number) {
    for (std::size_t i = 0; i < kFloats; ++i) vector().data()[i] = static_cast<float>(i * (rank + 1));
  }
  [[nodiscard]] core::Span vector() const { return {data, kFloats}; }
  const std::size_t rank;
  std::shared_ptr<HostDevice> device = std::make_shared<HostDevice>();
  float* data = static_cast<float*>(device->memory().allocate(kFloats * sizeof(float)).value());
  NcclReduction reduction{device, library()};
};

/// Bundles have the tests without the stand-in.
class NcclReductionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto opened = NcclLibrary::open(TROUPE_FAKE_NCCL_LIBRARY); !opened)
      GTEST_SKIP() << "the stand-in for NCCL is not here: " << opened.error().message;
  }
};

class Fails {
 public:
  explicit Fails(const char* call) { ::setenv("TROUPE_FAKE_NCCL", call, 1); }
  ~Fails() { ::unsetenv("TROUPE_FAKE_NCCL"); }
};

TEST_F(NcclReductionTest, LibrarySaysWhatItIsAndWhatIsMissing) {
  EXPECT_EQ(library()->version(), "2.27.3");
  EXPECT_EQ(library()->path(), TROUPE_FAKE_NCCL_LIBRARY);
  const auto missing = NcclLibrary::open("libno-such-nccl.so.2");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, core::Errc::config);
  EXPECT_NE(missing.error().message.find("NCCL cannot be loaded"), std::string::npos) << missing.error().message;
  const auto other = NcclLibrary::open("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("ncclAllReduce"), std::string::npos) << other.error().message;
}

TEST(NcclLibrary, TheRealOneHasTheSameFunctions) {
  const auto real = NcclLibrary::open();
  if (!real) GTEST_SKIP() << real.error().message;
  EXPECT_EQ((*real)->version().substr(0, 2), "2.");
  EXPECT_NE((*real)->error(2, "a call").message.find("NCCL: a call: "), std::string::npos);
}

TEST_F(NcclReductionTest, RanksSumInPlaceOneAfterTheOther) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (std::size_t r = 0; r < 3; ++r) ranks.push_back(std::make_unique<Rank>(r));
  const auto group = ranks[0]->reduction.make_group().value();
  EXPECT_LE(group.size(), core::kMostGroupName);
  std::vector<End> ends(3);
  for (std::size_t r = 0; r < 3; ++r) ranks[r]->reduction.join(group, r, 3, ends[r].done());
  for (auto& end : ends) EXPECT_TRUE(end.wait());
  for (int round = 0; round < 2; ++round) {
    std::vector<End> sums(3);
    for (std::size_t r = 0; r < 3; ++r) ranks[r]->reduction.sum(ranks[r]->vector(), sums[r].done());
    for (auto& sum : sums) EXPECT_TRUE(sum.wait());
  }
  // Σ i · (1 + 2 + 3), then three times that.
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->reduction.members(), 3U);
    EXPECT_TRUE(rank->reduction.check());
    for (std::size_t i = 0; i < kFloats; ++i) ASSERT_EQ(rank->data[i], static_cast<float>(18 * i)) << i;
  }
}

TEST_F(NcclReductionTest, JoinsOneGroupOnly) {
  Rank alone(0);
  const auto group = alone.reduction.make_group().value();
  End first, second;
  alone.reduction.join(group, 0, 1, first.done());
  alone.reduction.join(group, 0, 1, second.done());
  EXPECT_TRUE(first.wait());
  EXPECT_EQ(second.code(), core::Errc::config);
  EXPECT_EQ(alone.reduction.members(), 1U);
}

TEST_F(NcclReductionTest, RanksMayBeProcesses) {
  const auto group = NcclReduction(std::make_shared<HostDevice>(), library()).make_group().value();
  const auto sum_as = [&](std::size_t r) {
    Rank rank(r);
    End joined, summed;
    rank.reduction.join(group, r, 2, joined.done());
    if (!joined.wait()) return false;
    rank.reduction.sum(rank.vector(), summed.done());
    return summed.wait() && rank.data[kFloats - 1] == static_cast<float>(3 * (kFloats - 1));
  };
  const pid_t other = ::fork();
  if (other == 0) ::_exit(sum_as(1) ? 0 : 1);
  EXPECT_TRUE(sum_as(0));
  int status = -1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(NcclReductionTest, AbortEndsASumThatWaitsForALostMemberAndAllThatFollow) {
  Rank first(0), second(1);
  const auto group = first.reduction.make_group().value();
  End joined[2];
  first.reduction.join(group, 0, 2, joined[0].done());
  second.reduction.join(group, 1, 2, joined[1].done());
  EXPECT_TRUE(joined[0].wait() && joined[1].wait());
  End sums[3];
  first.reduction.sum(first.vector(), sums[0].done());  // the second one never sums
  first.reduction.sum(first.vector(), sums[1].done());
  first.reduction.abort({core::Errc::peer_lost, "worker 1 is lost"});
  first.reduction.abort({core::Errc::io, "again"});
  first.reduction.sum(first.vector(), sums[2].done());
  for (auto& sum : sums) EXPECT_EQ(sum.code(), core::Errc::peer_lost);
}

TEST_F(NcclReductionTest, AMemberThatNeverJoinsDoesNotHoldTheOthersForEver) {
  End joined;
  {
    Rank first(0);
    first.reduction.join(first.reduction.make_group().value(), 0, 2, joined.done());
    first.reduction.abort({core::Errc::peer_lost, "worker 1 is lost"});
  }
  EXPECT_EQ(joined.code(), core::Errc::peer_lost);
}

TEST_F(NcclReductionTest, FailedCallsAreErrorsThatNameThem) {
  Rank rank(0);
  {
    const Fails call("ncclGetUniqueId");
    EXPECT_EQ(rank.reduction.make_group().error().code, core::Errc::io);
  }
  End nonsense;
  rank.reduction.join("nonsense", 0, 1, nonsense.done());
  EXPECT_EQ(nonsense.code(), core::Errc::config);
  {
    Rank other(0);
    const Fails call("ncclCommInitRank");
    End end;
    other.reduction.join(other.reduction.make_group().value(), 0, 1, end.done());
    EXPECT_EQ(end.code(), core::Errc::io);
    End sum;
    other.reduction.sum(other.vector(), sum.done());
    EXPECT_EQ(sum.code(), core::Errc::io);
  }
  End joined, sum, good;
  rank.reduction.join(rank.reduction.make_group().value(), 0, 1, joined.done());
  EXPECT_TRUE(joined.wait());
  {
    const Fails call("ncclAllReduce");
    rank.reduction.sum(rank.vector(), sum.done());
    const auto result = sum.wait();
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("ncclAllReduce: unhandled system error"), std::string::npos)
        << result.error().message;
  }
  {
    const Fails call("ncclCommGetAsyncError");
    EXPECT_EQ(rank.reduction.check().error().code, core::Errc::io);
  }
  rank.reduction.sum(rank.vector(), good.done());
  EXPECT_TRUE(good.wait());
}

}  // namespace
}  // namespace troupe::gpu
