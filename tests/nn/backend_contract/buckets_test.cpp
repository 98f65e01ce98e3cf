#include <algorithm>

#include <gtest/gtest.h>

#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

void expect_cover(const std::vector<Bucket>& buckets, std::size_t arena) {
  std::size_t end = arena;  // backward finishes the last layers first, which lie at the arena's tail
  for (const Bucket& bucket : buckets) {
    EXPECT_EQ(bucket.offset + bucket.count, end);
    EXPECT_EQ(bucket.offset % core::kAlignmentFloats, 0u);
    EXPECT_GT(bucket.count, 0u);
    end = bucket.offset;
  }
  EXPECT_EQ(end, 0u);
}

class Buckets : public BackendTest {};
TROUPE_OVER_BACKENDS(Buckets);

Graph deep() {
  return graph_of({64, 1, 1}, {LinearLayer{300, {}}, ActivationLayer{}, LinearLayer{400, {}}, ActivationLayer{},
                               LinearLayer{300, {}}, LinearLayer{10, {}}});
}

TEST_P(Buckets, CoverTheArenaOnceFromItsTail) {
  for (const Graph& graph : {lenet(), small_net(), deep()}) {
    Model model(backend(), graph, {.batch = 2});
    expect_cover(model.replica->buckets(), model.replica->parameters().size());
  }
}

class BucketOrder : public BackendTest {};
TROUPE_OVER_BACKENDS(BucketOrder);
TROUPE_OVER_PROGRAMS(BucketOrder, numpy_program(), torch_program(), overlapping_torch_program());

TEST_P(BucketOrder, IsBackwardsWithFinalGradients) {
  for (const Graph& graph : {lenet(), deep()}) {
    Model model(backend(), graph, {.batch = 3});
    expect_cover(model.replica->buckets(), model.replica->parameters().size());
    std::vector<int> order;
    std::vector<std::vector<float>> seen;
    auto result = model.replica->step(model.batch(), [&](int b) {
      const Bucket& bucket = model.replica->buckets().at(static_cast<std::size_t>(b));
      const auto gradients = model.replica->gradients().subspan(bucket.offset, bucket.count);
      order.push_back(b);
      seen.push_back(model.numbers(gradients));
      // The callback owns the bucket: an exchange may overwrite it while backward continues.
      model.replica->kernels().scale(gradients, -1);
    });
    ASSERT_TRUE(result.has_value());
    ASSERT_EQ(order.size(), model.replica->buckets().size());
    for (std::size_t b = 0; b < order.size(); ++b) EXPECT_EQ(order[b], static_cast<int>(b));
    for (std::size_t b = 0; b < seen.size(); ++b)  // and backward does not write to it again
      EXPECT_EQ(model.numbers(model.replica->gradients())[model.replica->buckets()[b].offset], -seen[b].front());

    (void)model.step();
    for (std::size_t b = 0; b < seen.size(); ++b) {
      const Bucket& bucket = model.replica->buckets()[b];
      EXPECT_EQ(seen[b], model.numbers(model.replica->gradients().subspan(bucket.offset, bucket.count)))
          << "bucket " << b;
    }
  }
}

}  // namespace
}  // namespace troupe::nn::testing
