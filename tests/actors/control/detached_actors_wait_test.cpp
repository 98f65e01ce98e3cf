// The end of an actor system whose actors do not end.
#include <chrono>
#include <semaphore>

#include <caf/all.hpp>
#include <gtest/gtest.h>

#include "actors/control/network.hpp"
#include "actors/control/system.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

/// A detached actor that waits for `released`, as one does in a call of a driver.
void spawn_waiting(caf::actor_system& system, std::binary_semaphore& released) {
  const auto waiting = system.spawn<caf::detached>([&released](caf::event_based_actor*) { released.acquire(); });
  static_cast<void>(waiting);
}

TEST(DetachedActorsWaitTest, TellsOfAnActorThatDoesNotEnd) {
  SystemConfig config;
  caf::actor_system system(config);
  std::binary_semaphore released(0);
  int told = 0;
  {
    const DetachedActorsWait last(
        system, [&] { ++told; }, 50ms);
    spawn_waiting(system, released);
  }
  EXPECT_EQ(told, 1);
  released.release();  // or the system would never end
}

TEST(DetachedActorsWaitTest, WaitsForAnActorThatEnds) {
  SystemConfig config;
  caf::actor_system system(config);
  std::binary_semaphore released(0);
  bool told = false;
  {
    const DetachedActorsWait last(
        system, [&] { told = true; }, 1h);
    spawn_waiting(system, released);
    released.release();
  }
  EXPECT_FALSE(told);
}

TEST(DetachedActorsWaitTest, WaitsAsLongAsItWasToldMeanwhile) {
  SystemConfig config;
  caf::actor_system system(config);
  std::binary_semaphore released(0);
  bool told = false;
  {
    DetachedActorsWait last(
        system, [&] { told = true; }, 0s);
    spawn_waiting(system, released);
    last.allow(1h);
    last.allow(1s);  // of another run: the longest holds
    released.release();
  }
  EXPECT_FALSE(told);
}

TEST(DetachedActorsWaitTest, AsksForNothingWithoutActors) {
  SystemConfig config;
  caf::actor_system system(config);
  bool told = false;
  {
    const DetachedActorsWait last(
        system, [&] { told = true; }, 0s);
  }
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace troupe::actors
