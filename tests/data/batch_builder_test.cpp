#include "data/batch_builder.hpp"

#include <cmath>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/numbered_dataset.hpp"

namespace troupe::data {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

struct Arrays {
  explicit Arrays(const BatchBuilder& builder, std::int64_t count)
      : images(static_cast<std::size_t>(count * builder.image_shape().size()), -1),
        labels(static_cast<std::size_t>(count), -1) {}
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  bool operator==(const Arrays&) const = default;
};

BatchBuilder builder_of(std::int64_t size, ImageShape shape, const PreprocessOptions& options,
                        Order order = Order::shuffled, std::int64_t broken = -1) {
  return {std::make_shared<NumberedDataset>(size, shape, broken), Preprocess::create(options, shape, {}).value(), 11,
          order};
}

constexpr PreprocessOptions kPlain{Mean::none, false, 0, 0, false};

TEST(BatchBuilderTest, FollowsTheEpochsPermutationAndWrapsAround) {
  const auto builder = builder_of(7, {1, 1, 2}, kPlain);
  for (const std::uint32_t epoch : {0u, 1u}) {
    const auto order = epoch_permutation(11, epoch, 7);
    Arrays out(builder, 4);
    ASSERT_TRUE(builder.build({0, epoch, 5, 4, 0}, out.images, out.labels).has_value());
    for (std::size_t i = 0; i < 4; ++i) {
      const auto sample = order[(5 + i) % 7];
      EXPECT_EQ(out.labels[i], static_cast<std::int32_t>(sample));
      EXPECT_EQ(std::lround(out.images[2 * i] * 255), 7 * sample);
      EXPECT_EQ(std::lround(out.images[2 * i + 1] * 255), 7 * sample + 1);
    }
  }
}

TEST(BatchBuilderTest, SequentialOrderIsTheDataSets) {
  const auto builder = builder_of(20, {1, 1, 1}, kPlain, Order::sequential);
  Arrays out(builder, 3);
  ASSERT_TRUE(builder.build({0, 4, 18, 3, 0}, out.images, out.labels).has_value());
  EXPECT_THAT(out.labels, ElementsAre(8, 9, 0));
}

TEST(BatchBuilderTest, TrainingIsAugmentedByEpochAndSampleAlone) {
  const auto builder = builder_of(50, {1, 6, 6}, {Mean::none, false, 4, 1, true});
  const auto preprocess = Preprocess::create({Mean::none, false, 4, 1, true}, {1, 6, 6}, {}).value();
  Arrays out(builder, 50);
  ASSERT_TRUE(builder.build({0, 2, 0, 50, 0}, out.images, out.labels).has_value());
  const auto order = epoch_permutation(11, 2, 50);
  std::vector<std::uint8_t> pixels(36);
  std::vector<float> expected(16);
  for (std::size_t i = 0; i < 50; ++i) {
    (void)builder.dataset().read(order[i], pixels);
    preprocess.apply(pixels, preprocess.train_view(11, 2, order[i]), expected);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), out.images.begin() + static_cast<std::ptrdiff_t>(16 * i)));
  }
}

/// Also where a sample is unreadable and another one stands for it.
TEST(BatchBuilderTest, PreparedBytesAreTheFloats) {
  for (const std::int64_t broken : {-1, 17}) {
    const BatchBuilder builder(std::make_shared<NumberedDataset>(50, ImageShape{2, 6, 5}, broken),
                               Preprocess::create({Mean::none, false, 4, 1, true}, {2, 6, 5}, {}).value(), 11,
                               Order::shuffled, {.window = 0, .max_bad = 1});
    Arrays floats(builder, 50);
    const Lease lease{0, 2, 9, 50, 0};
    const auto replaced = builder.build(lease, floats.images, floats.labels);
    std::vector<std::uint8_t> bytes(50 * 60);
    std::vector<View> views(50);
    std::vector<std::int32_t> labels(50);
    EXPECT_EQ(builder.build_bytes(lease, bytes, views, labels).value(), replaced.value());
    EXPECT_EQ(labels, floats.labels);
    std::vector<float> prepared(32);
    for (std::size_t i = 0; i < 50; ++i) {
      builder.preprocess().apply(std::span(bytes).subspan(60 * i, 60), views[i], prepared);
      EXPECT_TRUE(
          std::equal(prepared.begin(), prepared.end(), floats.images.begin() + static_cast<std::ptrdiff_t>(32 * i)));
    }
    EXPECT_THROW((void)builder.build_bytes(lease, std::span(bytes).first(59), views, labels), std::invalid_argument);
    EXPECT_THROW((void)builder.build_bytes(lease, bytes, std::span(views).first(49), labels), std::invalid_argument);
  }
}

TEST(BatchBuilderTest, EvaluationIsInOrderAndCentred) {
  const auto builder = builder_of(20, {1, 4, 4}, {Mean::none, false, 2, 0, true});
  Arrays out(builder, 5);
  ASSERT_TRUE(builder.build_range(17, 3, out.images, out.labels).has_value());
  EXPECT_THAT(out.labels, ElementsAre(7, 8, 9, -1, -1));  // labels beyond the count stay unchanged
  // Pixels 5 6 / 9 10 of sample 17: 7 · 17 = 119.
  std::vector<long> bytes;
  for (std::size_t p = 0; p < 4; ++p) bytes.push_back(std::lround(out.images[p] * 255));
  EXPECT_THAT(bytes, ElementsAre(124, 125, 128, 129));
  EXPECT_THAT(std::vector<float>(out.images.begin() + 12, out.images.end()), Each(-1.0f));
  EXPECT_THROW((void)builder.build_range(18, 3, out.images, out.labels), std::out_of_range);
}

TEST(BatchBuilderTest, ResultsDoNotDependOnTheNumberOfThreads) {
  constexpr std::int64_t kBatch = 16, kLeases = 40;
  const auto build_all = [](std::size_t threads) {
    const auto builder = builder_of(100, {3, 8, 8}, {Mean::none, false, 8, 2, true});
    std::vector<Arrays> batches(kLeases, Arrays(builder, kBatch));
    std::vector<char> built(kLeases);
    {
      std::vector<std::jthread> workers;
      for (std::size_t t = 0; t < threads; ++t)
        workers.emplace_back([&, t] {
          for (std::size_t k = t; k < kLeases; k += threads) {
            // Leases of two epochs alternate, as at the border of two epochs.
            const Lease lease{k, static_cast<std::uint32_t>(k % 2), static_cast<std::int64_t>(k * 5 % 100), kBatch, 0};
            built[k] = builder.build(lease, batches[k].images, batches[k].labels).has_value();
          }
        });
    }
    EXPECT_THAT(built, Each(1));
    return batches;
  };
  EXPECT_EQ(build_all(1), build_all(4));
}

TEST(BatchBuilderTest, AnUnreadableSampleFailsTheBatchAndIsNamed) {
  const auto builder = builder_of(10, {1, 2, 2}, kPlain, Order::sequential, 6);
  Arrays out(builder, 4);
  EXPECT_TRUE(builder.build({0, 0, 0, 4, 0}, out.images, out.labels).has_value());
  const auto training = builder.build({0, 0, 4, 4, 0}, out.images, out.labels);
  const auto evaluation = builder.build_range(6, 1, out.images, out.labels);
  ASSERT_FALSE(training.has_value());
  ASSERT_FALSE(evaluation.has_value());
  for (const auto& error : {training.error(), evaluation.error()}) {
    EXPECT_EQ(error.code, core::Errc::data);
    EXPECT_THAT(error.message, HasSubstr("record 6"));
  }
}

TEST(BatchBuilderTest, TooLittleRoomIsABug) {
  const auto builder = builder_of(10, {1, 2, 2}, kPlain);
  Arrays out(builder, 4);
  EXPECT_THROW((void)builder.build({0, 0, 0, 5, 0}, out.images, out.labels), std::invalid_argument);
  EXPECT_THROW((void)builder.build_range(0, 5, out.images, out.labels), std::invalid_argument);
  EXPECT_THROW(BatchBuilder(std::make_shared<NumberedDataset>(1, ImageShape{1, 3, 3}),
                            Preprocess::create(kPlain, {1, 2, 2}, {}).value(), 1),
               std::invalid_argument);
}

}  // namespace
}  // namespace troupe::data
