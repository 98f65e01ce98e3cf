#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "tests/nn/backend_contract/backends.hpp"
#include "tests/nn/backend_contract/model.hpp"

namespace troupe::nn::testing {
namespace {

std::vector<float> train(Backend& backend, std::uint64_t first_lease, int threads) {
  Model model(backend, lenet(), {.batch = 8, .threads = threads, .seed = 3});
  for (std::uint64_t lease = first_lease; lease < first_lease + 8; ++lease) {
    model.images = random_floats(model.images.size(), 1.0, lease);
    model.momentum_step(lease);
  }
  return model.canonical_parameters();
}

class ReplicaThreads : public BackendTest {};
TROUPE_OVER_BACKENDS(ReplicaThreads);

// Each thread compiles its own replica, at the same time, and trains it.
TEST_P(ReplicaThreads, TwoReplicasOnTwoThreadsEqualSerialOnesBitForBit) {
  const auto serial_a = train(backend(), 0, 1);
  const auto serial_b = train(backend(), 100, 1);
  std::vector<float> a, b;
  std::jthread one([&] { a = train(backend(), 0, 1); });
  std::jthread two([&] { b = train(backend(), 100, 1); });
  one.join();
  two.join();
  EXPECT_EQ(a, serial_a);
  EXPECT_EQ(b, serial_b);
  EXPECT_NE(a, b);
}

TEST_P(ReplicaThreads, AReplicaOfTwoThreadsGivesTheSameBitsEveryTime) {
  EXPECT_EQ(train(backend(), 0, 2), train(backend(), 0, 2));
}

}  // namespace
}  // namespace troupe::nn::testing
