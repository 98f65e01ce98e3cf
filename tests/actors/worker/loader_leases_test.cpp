// How many leases a loader asks for. The test plays the coordinator and the worker, in time of its own.
#include <algorithm>
#include <atomic>
#include <deque>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/worker/loader.hpp"
#include "tests/data/numbered_dataset.hpp"

namespace troupe::actors {
namespace {

/// Set by the test, read by the loader's thread.
class SharedClock final : public core::Clock {
 public:
  [[nodiscard]] core::Duration now() const noexcept override { return core::Duration(now_.load()); }
  void advance(core::Duration by) noexcept { now_ += by.count(); }

 private:
  std::atomic<core::Duration::rep> now_{0};
};

/// The most leases that a worker has in its first steps, that in computation included: when a run is stopped, these are computed.
std::size_t most_leases(core::Duration step, int steps) {
  constexpr std::chrono::seconds kPatience{60};
  SharedClock clock;
  SystemConfig config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  const auto preprocess = data::Preprocess::create({}, {1, 2, 2}, {{0}, {1}, {}}).value();
  const auto builder = std::make_shared<const data::BatchBuilder>(
      std::make_shared<data::NumberedDataset>(8, data::ImageShape{1, 2, 2}), preprocess, 1, data::Order::sequential);
  const auto loads = system.spawn(
      loader, LoaderSetup{.builder = builder, .batch = 2, .batches_ahead = 8, .decoders = {}, .clock = &clock});
  ActorDirectory actors;
  actors.coordinator = caf::actor_cast<CoordinatorActor>(self);
  actors.workers.push_back(caf::actor_cast<WorkerActor>(self));
  self->send(loads, actors);
  std::deque<std::uint32_t> ready;
  std::size_t has = 0, most = 0;
  for (int ended = 0; !::testing::Test::HasFailure(); ++ended) {
    self->receive(
        [&](const LeaseRequest& request) {
          has += request.count;
          self->send(loads, LeaseGrant{std::vector<data::Lease>(request.count, {.count = 2}), false});
        },
        caf::after(kPatience) >> [] { ADD_FAILURE() << "no lease is asked for"; });
    while (ready.size() < has && !::testing::Test::HasFailure())
      self->receive([&](const BatchReady& batch, const BorrowedBatch&) { ready.push_back(batch.buffer); },
                    caf::after(kPatience) >> [] { ADD_FAILURE() << "a batch is missing"; });
    most = std::max(most, has);
    if (ended == steps) break;
    clock.advance(step);
    self->send(loads, BatchReturn{ready.front()});
    ready.pop_front();
    --has;
  }
  self->send(loads, Halt{});
  return most;
}

TEST(LoaderLeases, WorkersHaveFewOfSlowSteps) {
  EXPECT_EQ(most_leases(std::chrono::seconds(2), 20), 2U);
  EXPECT_EQ(most_leases(std::chrono::milliseconds(300), 20), 5U);
  EXPECT_EQ(most_leases(std::chrono::milliseconds(1), 1), 2U) << "it is not known yet how fast the steps are";
  EXPECT_EQ(most_leases(std::chrono::milliseconds(1), 2), 9U);
}

}  // namespace
}  // namespace troupe::actors
