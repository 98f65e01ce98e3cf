#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "tests/cpu/model.hpp"

namespace troupe::cpu::testing {
namespace {

std::vector<float> train(std::uint64_t first_lease, int threads) {
  Model model(lenet(), {.batch = 8, .threads = threads, .seed = 3});
  for (std::uint64_t lease = first_lease; lease < first_lease + 8; ++lease) {
    model.images = random_floats(model.images.size(), 1.0, lease);
    model.momentum_step(lease);
  }
  return model.canonical_parameters();
}

TEST(Concurrency, TwoReplicasOnTwoThreadsEqualSerialOnesBitForBit) {
  const auto serial_a = train(0, 1);
  const auto serial_b = train(100, 1);
  std::vector<float> a, b;
  std::jthread one([&] { a = train(0, 1); });
  std::jthread two([&] { b = train(100, 1); });
  one.join();
  two.join();
  EXPECT_EQ(a, serial_a);
  EXPECT_EQ(b, serial_b);
  EXPECT_NE(a, b);
}

TEST(Concurrency, TwoOpenMpThreadsGiveTheSameBitsEveryTime) { EXPECT_EQ(train(0, 2), train(0, 2)); }

}  // namespace
}  // namespace troupe::cpu::testing
