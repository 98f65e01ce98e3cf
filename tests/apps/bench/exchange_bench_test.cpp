#include "apps/bench/exchange_bench.hpp"

#include <gtest/gtest.h>

namespace troupe::transport {
namespace {

void expect_figures_that_agree(decltype(run_exchange_bench) run) {
  for (const int ranks : {1, 2, 3, 5}) {
    for (const std::size_t floats : {1U, 100U, 10'000U}) {
      const auto bench = run(core::host_kernels(), ranks, floats, 3);
      ASSERT_TRUE(bench) << bench.error().message;
      EXPECT_GT(bench->ms, 0);
      EXPECT_GT(bench->memcpy_ms, 0);
      EXPECT_NEAR(bench->gb_per_s * bench->ms * 1e6, 8.0 * static_cast<double>(floats) * ranks, 1e-3);
    }
  }
}

TEST(ExchangeBench, ItsFiguresAgreeForAnyNumberOfThreads) { expect_figures_that_agree(run_exchange_bench); }

TEST(ExchangeBench, ItsFiguresAgreeForAnyNumberOfProcesses) { expect_figures_that_agree(run_process_exchange_bench); }

}  // namespace
}  // namespace troupe::transport
