#include "experiment/bad_updates.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

/// Two buckets whose gradients the test sets; the other functions do nothing.
class Fake final : public nn::Replica {
 public:
  const nn::Graph& graph() const noexcept override { std::abort(); }
  std::int64_t batch() const noexcept override { return 1; }
  const std::shared_ptr<const nn::Layout>& layout() const noexcept override { std::abort(); }
  core::Span parameters() noexcept override { return {}; }
  core::Span gradients() noexcept override { return gradients_.view(); }
  core::Span statistics() noexcept override { return {}; }
  void parameters_written() noexcept override {}
  std::uint64_t parameters_version() const noexcept override { return 0; }
  const std::vector<nn::Bucket>& buckets() const noexcept override { return buckets_; }
  core::Result<nn::StepResult> step(const nn::Batch&, const std::function<void(int)>& ready) override {
    if (fails) return core::fail(core::Errc::data, "sample 7");
    for (int bucket = 0; bucket < 2; ++bucket) {
      std::ranges::fill(gradients().subspan(buckets_[static_cast<std::size_t>(bucket)].offset, 16), 0.5F);
      if (bad_at >= buckets_[static_cast<std::size_t>(bucket)].offset &&
          bad_at < buckets_[static_cast<std::size_t>(bucket)].offset + 16)
        gradients()[bad_at] = bad;
      ready(bucket);
    }
    return nn::StepResult{.loss = 0.5, .samples = 1};
  }
  void apply(const core::OptimizerStep&, core::OptimizerState) override {}
  core::Result<nn::StepResult> evaluate(const nn::Batch&) override { return nn::StepResult{}; }
  std::span<const float> outputs() const noexcept override { return {}; }
  const nn::Plan& plan() const noexcept override { return plan_; }
  std::size_t workspace_bytes() const noexcept override { return 0; }

  std::size_t bad_at = 100;  // in no bucket
  float bad = 0;
  bool fails = false;

 private:
  core::HostAllocator memory_;
  core::Buffer gradients_ = core::Buffer::allocate(memory_, 32).value();
  std::vector<nn::Bucket> buckets_{{16, 16}, {0, 16}};  // backward order
  nn::Plan plan_;
};

TEST(GuardedStep, ABadBucketBecomesZerosBeforeItIsUsed) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e38F, -1e16F}) {
    for (const std::size_t at : {0U, 15U, 16U, 31U}) {
      Fake replica;
      replica.bad_at = at;
      replica.bad = bad;
      const auto bad_bucket = at < 16 ? 1 : 0;
      std::vector<int> ready;
      const auto step = guarded_step(replica, core::host_kernels(), core::kLargestUsable, {}, [&](int bucket) {
        ready.push_back(bucket);
        const auto& range = replica.buckets()[static_cast<std::size_t>(bucket)];
        for (const float g : replica.gradients().subspan(range.offset, range.count))
          ASSERT_EQ(g, bucket == bad_bucket ? 0.F : 0.5F) << bucket;
      });
      ASSERT_TRUE(step);
      EXPECT_TRUE(step->refused);
      EXPECT_EQ(step->result.loss, 0.5);
      EXPECT_EQ(ready, (std::vector<int>{0, 1}));
    }
  }
}

/// 32 elements of 0.5: √(32 · 0.25). A bucket that became zeros has no part in the norm.
TEST(GuardedStep, HasTheNormOfTheGradient) {
  Fake replica;
  replica.bad_at = 3;
  replica.bad = 0.5F;
  EXPECT_DOUBLE_EQ(guarded_step(replica, core::host_kernels(), core::kLargestUsable, {}, {})->gradient_norm,
                   std::sqrt(8.0));
  replica.bad = std::numeric_limits<float>::infinity();
  EXPECT_DOUBLE_EQ(guarded_step(replica, core::host_kernels(), core::kLargestUsable, {}, {})->gradient_norm, 2);
}

TEST(GuardedStep, LeavesGoodBucketsUnchanged) {
  Fake replica;
  replica.bad_at = 3;
  replica.bad = core::kLargestUsable;  // just usable
  const auto step = guarded_step(replica, core::host_kernels(), core::kLargestUsable, {}, {});
  ASSERT_TRUE(step);
  EXPECT_FALSE(step->refused);
  EXPECT_EQ(replica.gradients()[3], core::kLargestUsable);
  replica.fails = true;
  const auto failed = guarded_step(replica, core::host_kernels(), core::kLargestUsable, {}, {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "sample 7");
}

/// Many usable numbers may have a norm above the largest usable one.
TEST(GuardedStep, ALargeNormOfUsableNumbersIsNotRefused) {
  for (const float limit : {0.5F, 0.49F}) {
    Fake replica;
    const auto step = guarded_step(replica, core::host_kernels(), limit, {}, {});
    EXPECT_EQ(step->refused, limit < 0.5F);
    EXPECT_DOUBLE_EQ(step->gradient_norm, limit < 0.5F ? 0 : std::sqrt(8.0));
  }
}

TEST(BadUpdates, LimitOfConsecutiveBadUpdatesIsReached) {
  BadUpdates bad(3);
  for (int round = 0; round < 2; ++round) {
    bad.bad();
    EXPECT_TRUE(bad.worth_a_warning());
    bad.bad();
    EXPECT_FALSE(bad.too_many());
    bad.good();
  }
  for (int i = 0; i < 3; ++i) bad.bad();
  EXPECT_TRUE(bad.too_many());
  EXPECT_FALSE(bad.worth_a_warning()) << "of three the first two were";
  EXPECT_EQ(bad_gradient(1, 7, bad),
            "worker 1, step 7: its gradient held numbers that are not finite, or too large to be of use, and was not "
            "applied (3 in a "
            "row; train.max_bad_updates = 3 end the run)");
  EXPECT_NE(bad_push(2, 1, bad).find("worker 2: what it pushed to shard 1"), std::string::npos);
}

// ---- losses

TEST(LossWatch, LossThatIsNoNumberEndsTheRunAtOnce) {
  LossWatch losses;
  EXPECT_FALSE(losses.diverged(0, 2.3));
  EXPECT_TRUE(losses.diverged(1, -std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(losses.text(3), "worker 3: diverged: the loss is not a number since step 1") << "without the NaN's sign";
  LossWatch first;
  EXPECT_TRUE(first.diverged(0, std::numeric_limits<double>::infinity()));
  EXPECT_EQ(first.text(0), "worker 0: diverged: the loss is infinite since step 0");
}

// A finite loss can be as hopeless: it must stay for 16 steps above 1000 times the mean of the first 16.
TEST(LossWatch, LossThatStaysAThousandTimesTheFirstEndsTheRun) {
  LossWatch losses;
  for (std::uint64_t step = 0; step < 16; ++step) EXPECT_FALSE(losses.diverged(step, step % 2 ? 3 : 1));
  for (std::uint64_t step = 16; step < 31; ++step) EXPECT_FALSE(losses.diverged(step, 2001)) << step;
  EXPECT_FALSE(losses.diverged(31, 1999)) << "it comes back";
  for (std::uint64_t step = 32; step < 47; ++step) EXPECT_FALSE(losses.diverged(step, 3e9)) << step;
  EXPECT_TRUE(losses.diverged(47, 3.14e9));
  EXPECT_EQ(losses.text(1), "worker 1: diverged: the loss is 3.14e+09 since step 32, and was 2 at first");
}

TEST(LossWatch, RemedyNamesTheRate) {
  EXPECT_EQ(against_divergence(0.05), "; try a smaller train.lr (it is 0.05)");
  EXPECT_EQ(against_divergence(1, true), "; try a smaller learning rate in the program");
}

}  // namespace
}  // namespace troupe::experiment
