#include "actors/exchanger/measuring.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/requests/deadlines.hpp"

namespace troupe::actors {

namespace {

/// Above the exchange ids at a run's beginning. No other exchange is in flight during the measurement.
constexpr std::uint32_t kFirstExchange = 1U << 23;

}  // namespace

core::Duration measure_deadline(const MeasureOrder& order) {
  constexpr double kSlowestLink = 1 << 10;  // bytes/s; a slower one is taken for broken
  constexpr double kMost = 30.0 * 24 * 3600;
  double bytes = 0;  // a reduction sends and receives the vector, at worst once per member of the site
  for (const auto floats : order.floats)
    bytes += 2.0 * sizeof(float) * static_cast<double>(floats) * static_cast<double>(order.worker_sites.size());
  bytes *= static_cast<double>(order.algorithms.size()) * (static_cast<double>(order.rounds) + 1);
  const std::chrono::duration<double> transfer(std::min(bytes / kSlowestLink, kMost));
  return std::chrono::duration_cast<core::Duration>(transfer) + kMeasureSilence + kMargin;
}

Measuring::Measuring(const Means& means, exchange::Group group, MeasureOrder order, core::Buffer vector, Done done)
    : means_(means),
      group_(std::move(group)),
      order_(std::move(order)),
      vector_(std::move(vector)),
      done_(std::move(done)) {}

core::Result<std::unique_ptr<Measuring>> Measuring::create(const Means& means, exchange::Group group,
                                                           MeasureOrder order, Done done) {
  auto vector = core::Buffer::allocate(means.arenas ? *means.arenas : means.memory, std::ranges::max(order.floats));
  if (!vector) return tl::unexpected(vector.error());
  means.kernels.fill(vector->view(), 0.F);
  return std::unique_ptr<Measuring>(
      new Measuring(means, std::move(group), std::move(order), std::move(*vector), std::move(done)));
}

bool Measuring::go_on() {
  const std::size_t rounds = order_.rounds + 1;  // the first one warms up
  while (over_) {
    running_.reset();
    const auto which = next_ / rounds;
    if (error_ || which == order_.floats.size() * order_.algorithms.size()) {
      Measured measured;
      for (std::size_t first = 0; first < all_.size() && !error_; first += rounds) {
        const auto begin = all_.begin() + static_cast<std::ptrdiff_t>(first);
        // The shortest time: other load on the machine only adds time, unevenly.
        measured.seconds.push_back(*std::min_element(begin + 1, begin + static_cast<std::ptrdiff_t>(rounds)));
      }
      const auto done = std::exchange(done_, {});
      if (done) error_ ? done(tl::unexpected(*error_)) : done(std::move(measured));
      return false;
    }
    exchange::CollectiveTask task{
        .algorithm = exchange::algorithm_of(order_.algorithms[which % order_.algorithms.size()]),
        .vector = vector_.view().subspan(0, order_.floats[which / order_.algorithms.size()]),
        .arenas = means_.arenas,
        .scratch = means_.scratch,
        .tag = {.exchange = kFirstExchange + static_cast<std::uint32_t>(next_)}};
    ++next_;
    over_ = false;
    began_ = means_.clock.now();
    running_ = exchange::make_collective(means_.operations, means_.kernels, group_, task,
                                         [this](const core::Result<void>& result) { ended(result); });
    running_->start();
    means_.operations.flush();
  }
  return true;
}

void Measuring::ended(const core::Result<void>& result) {
  over_ = true;
  all_.push_back(core::seconds(means_.clock.now() - began_));
  if (!result && !error_) error_ = result.error();
}

void Measuring::give_up(const core::Error& why) {
  if (!error_) error_ = why;
  if (!over_) running_->cancel();
}

}  // namespace troupe::actors
