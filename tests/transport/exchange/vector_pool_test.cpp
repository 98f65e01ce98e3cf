#include "transport/exchange/vector_pool.hpp"

#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace troupe::exchange {
namespace {

core::HostAllocator memory;

TEST(VectorPool, AReturnedVectorIsLentAgain) {
  VectorPool pool(memory);
  const float* first = nullptr;
  for (int k = 0; k < 10; ++k) {
    auto loan = pool.take(k % 2 == 0 ? 1000 : 990).value();
    EXPECT_EQ(loan.view().size(), k % 2 == 0 ? 1000U : 990U);
    if (k == 0) first = loan.view().data();
    EXPECT_EQ(loan.view().data(), first);
  }
  EXPECT_EQ(pool.made(), 1U);
}

TEST(VectorPool, NoTwoLoansShareAVector) {
  VectorPool pool(memory);
  auto a = pool.take(64).value(), b = pool.take(64).value();
  EXPECT_NE(a.view().data(), b.view().data());
  const auto* const of_b = b.view().data();
  a = std::move(b);  // returns a's own
  EXPECT_EQ(a.view().data(), of_b);
  EXPECT_NE(pool.take(64)->view().data(), of_b);
  EXPECT_EQ(pool.made(), 2U);
}

TEST(VectorPool, AShortVectorDoesNotOccupyALongOne) {
  VectorPool pool(memory);
  (void)pool.take(1000).value();
  auto small = pool.take(499).value();
  EXPECT_EQ(pool.made(), 2U);
  EXPECT_LE(pool.floats(), 1000U);
}

// A peer that asks for ever other lengths must not make this process keep all of them.
TEST(VectorPool, KeepsNoMoreThanWasLentAtOnce) {
  VectorPool pool(memory);
  for (std::size_t floats = 1; floats < 5000; floats = floats * 3 / 2 + 1) (void)pool.take(floats).value();
  for (std::size_t floats = 5000; floats > 10; floats = floats * 2 / 3) (void)pool.take(floats).value();
  EXPECT_LE(pool.floats(), 5000U);
  std::vector<VectorPool::Loan> many;
  for (int k = 0; k < 8; ++k) many.push_back(pool.take(100).value());
  EXPECT_LE(pool.floats(), 5000U);
}

TEST(VectorPool, LoanOfNoFloatsTakesNoVector) {
  VectorPool pool(memory);
  EXPECT_TRUE(pool.take(0)->view().empty());
  EXPECT_EQ(pool.made(), 0U);
}

TEST(VectorPool, ALoanOutlivesThePoolAndEndsOnAnyThread) {
  auto pool = std::make_unique<VectorPool>(memory);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([loan = pool->take(100).value()]() mutable {
      for (float& x : loan.view()) x = 1;
      loan = {};
    });
  pool.reset();
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe::exchange
