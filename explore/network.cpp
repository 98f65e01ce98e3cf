#include "explore/network.hpp"

#include <algorithm>

namespace troupe::explore {
namespace {

using namespace std::chrono_literals;

Duration between(core::Random& random, Duration low, Duration high) {
  return low + Duration{static_cast<Duration::rep>(random.uniform() * static_cast<double>((high - low).count()))};
}

/// Streams of messages and of steps must not meet: bit 63 tells them apart.
constexpr std::uint64_t kSteps = std::uint64_t{1} << 63;

std::uint64_t stream(const Channel& c) {
  return (static_cast<std::uint64_t>(c.traffic) << 56) | (std::uint64_t{c.from} << 28) | c.to;
}

}  // namespace

void Network::send(const Channel& channel, Order order, EventQueue::Action deliver) {
  const auto place = channels_.try_emplace(channel, State{{seed_, core::Purpose::schedule, stream(channel)}}).first;
  auto& [random, last_arrival] = place->second;
  Duration delay = between(random, 10us, 20us);
  if (delays_ == Delays::extreme) {
    const double kind = random.uniform();
    delay = kind < 0.3 ? 0us : kind < 0.8 ? between(random, 0us, 2ms) : between(random, 0us, 60ms);
  }
  auto arrival = queue_.now() + delay;
  if (order == Order::fifo) arrival = last_arrival = std::max(arrival, last_arrival);
  queue_.at(arrival, std::move(deliver));
}

Duration compute_time(std::uint64_t seed, Delays delays, WorkerId worker, Step step) noexcept {
  core::Random random{seed, core::Purpose::schedule, kSteps | (std::uint64_t{worker} << 40) | step};
  if (delays == Delays::even) return between(random, 1ms, 2ms);
  const double kind = random.uniform();
  return kind < 0.2 ? 0us : kind < 0.9 ? between(random, 0us, 3ms) : between(random, 0us, 60ms);
}

}  // namespace troupe::explore
