// Gradient accumulation: a batch in parts comes to the numbers of the whole batch.
#include "experiment/state/accumulation.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "cpu/backend.hpp"

namespace troupe::experiment {
namespace {

using nn::ActivationLayer, nn::Conv2dLayer, nn::DropoutLayer, nn::LinearLayer;

constexpr std::int64_t kBatch = 24;
constexpr nn::Shape kImage{1, 6, 6};

nn::Backend& backend() {
  static const auto backend = cpu::make_backend();
  return *backend;
}

/// With dropout: a part must drop the units that the whole batch drops there.
nn::Graph graph() {
  const std::vector<nn::Layer> layers{Conv2dLayer{5, 3, 1, 0, {}}, ActivationLayer{nn::Activation::relu},
                                      LinearLayer{15, {}}, DropoutLayer{0.5}, LinearLayer{4, {}}};
  return nn::Graph::sequential("net", kImage, layers, nn::Loss::softmax_cross_entropy).value();
}

struct Worker {
  explicit Worker(std::int64_t micro_batches, std::int64_t batch = kBatch) {
    replica = compile_worker(backend(), graph(), {.batch = batch, .arenas = &allocator}, micro_batches).value();
    std::vector<float> canonical(replica->layout()->canonical_floats());
    core::Random random(3, core::Purpose::test, 0);
    for (auto& value : canonical) value = static_cast<float>(0.3 * random.normal());
    replica->import_canonical(canonical);
  }
  core::Result<nn::StepResult> step(const std::function<void(int)>& ready = {}) {
    return replica->step({images, labels, 7, kBatch}, ready);
  }
  std::vector<float> gradient() {
    std::vector<float> canonical(replica->layout()->canonical_floats());
    replica->layout()->to_canonical(replica->gradients(), canonical);
    return canonical;
  }
  static std::vector<float> some_images() {
    core::Random random(3, core::Purpose::test, 1);
    std::vector<float> images(static_cast<std::size_t>(kBatch * kImage.size()));
    for (auto& pixel : images) pixel = static_cast<float>(random.normal());
    return images;
  }

  core::HostAllocator allocator;
  std::unique_ptr<nn::Replica> replica;
  std::vector<float> images = some_images();
  std::vector<std::int32_t> labels = [] {
    std::vector<std::int32_t> all(kBatch);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i * 7 % 4);
    return all;
  }();
};

// The mean of equal parts' means is the mean of all; float32 sums in another order differ in their last bits.
TEST(Accumulation, PartsComeToTheGradientOfTheWholeBatch) {
  Worker whole(1);
  const auto expected = whole.step().value();
  const auto gradient = whole.gradient();
  const auto largest = std::abs(*std::ranges::max_element(gradient, {}, [](float v) { return std::abs(v); }));
  for (const std::int64_t parts : {2, 3, 24}) {
    SCOPED_TRACE(parts);
    Worker worker(parts);
    EXPECT_EQ(worker.replica->batch(), kBatch);
    for (int step = 0; step < 2; ++step) {  // nothing stays from one step to the next
      const auto result = worker.step();
      ASSERT_TRUE(result) << result.error().message;
      EXPECT_NEAR(result->loss, expected.loss, 1e-6);
      EXPECT_EQ(result->top1, expected.top1);
      EXPECT_EQ(result->samples, kBatch);
      const auto sum = worker.gradient();
      for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], gradient[i], 2e-6 * largest) << i;
    }
    ASSERT_EQ(worker.replica->outputs().size(), whole.replica->outputs().size());
    for (std::size_t i = 0; i < whole.replica->outputs().size(); ++i)
      ASSERT_NEAR(worker.replica->outputs()[i], whole.replica->outputs()[i], 1e-5) << i;
  }
}

TEST(Accumulation, BucketIsReadyOnceAndWithItsFinalNumbers) {
  Worker worker(3);
  std::vector<int> ready;
  std::vector<float> seen(worker.replica->gradients().size());
  const auto look = [&](int bucket) {
    ready.push_back(bucket);
    const auto& [offset, count] = worker.replica->buckets()[static_cast<std::size_t>(bucket)];
    std::ranges::copy(worker.replica->gradients().subspan(offset, count),
                      seen.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  ASSERT_TRUE(worker.step(look));
  std::vector<int> all;
  for (int bucket = 0; bucket < static_cast<int>(worker.replica->buckets().size()); ++bucket) all.push_back(bucket);
  EXPECT_EQ(ready, all);
  EXPECT_TRUE(std::ranges::equal(seen, worker.replica->gradients()));
}

TEST(Accumulation, OnePartIsTheBackendsOwnReplica) {
  core::HostAllocator allocator;
  const auto plain = backend().compile(graph(), {.batch = kBatch, .arenas = &allocator}).value();
  Worker worker(1);
  EXPECT_EQ(worker.replica->workspace_bytes(), plain->workspace_bytes());
  EXPECT_LT(Worker(24).replica->workspace_bytes(), plain->workspace_bytes()) << "a part needs less memory";
}

TEST(Accumulation, UnequalPartsAreRefused) {
  core::HostAllocator allocator;
  const auto refused = compile_worker(backend(), graph(), {.batch = kBatch, .arenas = &allocator}, 5);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::experiment
