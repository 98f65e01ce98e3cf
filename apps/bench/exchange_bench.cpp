#include "apps/bench/exchange_bench.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <thread>
#include <vector>

#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "transport/exchange/reduce.hpp"

namespace troupe::transport {
namespace {

double median_ms(std::vector<core::Duration> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return core::seconds(times[times.size() / 2]) * 1e3;
}

}  // namespace

core::Result<ExchangeBench> run_exchange_bench(const core::Kernels& kernels, int ranks, std::size_t floats,
                                               int rounds) {
  core::HostAllocator allocator;
  std::vector<core::Buffer> arenas;
  std::vector<core::Buffer> copies;
  for (int rank = 0; rank < ranks; ++rank) {
    for (auto* buffers : {&arenas, &copies}) {
      auto buffer = core::Buffer::allocate(allocator, core::align_floats(floats));
      if (!buffer) return tl::unexpected(buffer.error());
      buffers->push_back(std::move(*buffer));
    }
  }
  std::vector<core::Span> views;
  for (auto& arena : arenas) views.push_back(arena.view().first(floats));

  const core::SteadyClock clock;
  std::vector<core::Duration> exchanges;
  std::vector<core::Duration> memcpys;
  core::Duration began{0};
  bool copying = false;                  // the current part: each round copies, then exchanges
  const auto between = [&]() noexcept {  // one thread runs it while all others wait
    const auto now = clock.now();
    if (began.count() > 0) (copying ? memcpys : exchanges).push_back(now - began);
    copying = !copying;
    began = clock.now();
  };
  exchanges.reserve(static_cast<std::size_t>(rounds) + 1);
  memcpys.reserve(static_cast<std::size_t>(rounds) + 1);
  std::barrier everyone(ranks, between);
  const auto work = [&](int rank) {
    const auto self = static_cast<std::size_t>(rank);
    kernels.fill(views[self], static_cast<float>(rank + 1));  // the rank's own thread touches its pages first
    kernels.fill(copies[self].view(), 0);
    for (int round = 0; round <= rounds; ++round) {  // the first round warms up
      everyone.arrive_and_wait();
      kernels.copy(copies[self].view().first(floats), views[self]);
      everyone.arrive_and_wait();
      exchange::reduce_slice(kernels, views, self, 1.0F / static_cast<float>(ranks));
    }
    everyone.arrive_and_wait();
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < ranks; ++rank) threads.emplace_back(work, rank);
    work(0);
  }
  const float mean = static_cast<float>(ranks + 1) / 2;
  for (const auto& view : views) {
    for (const float value : {view.front(), view[floats / 2], view.back()}) {
      if (std::abs(value - mean) > 1e-3F * mean)
        return core::fail(core::Errc::internal, "the exchange computed a wrong mean");
    }
  }
  exchanges.erase(exchanges.begin());
  memcpys.erase(memcpys.begin());
  const double ms = median_ms(std::move(exchanges));
  const double bytes = 2.0 * sizeof(float) * static_cast<double>(floats) * ranks;
  return ExchangeBench{.ms = ms, .gb_per_s = bytes / ms / 1e6, .memcpy_ms = median_ms(std::move(memcpys))};
}

}  // namespace troupe::transport
