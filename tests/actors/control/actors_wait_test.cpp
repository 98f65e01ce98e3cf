// The end of an actor system whose actors do not end.
#include <chrono>
#include <semaphore>
#include <vector>

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

TEST(ActorsWaitTest, TellsOfAnActorThatDoesNotEnd) {
  SystemConfig config;
  caf::actor_system system(config);
  std::binary_semaphore released(0);
  int told = 0;
  {
    const ActorsWait last(
        system, [&] { ++told; }, 50ms);
    spawn_waiting(system, released);
  }
  EXPECT_EQ(told, 1);
  released.release();  // or the system would never end
}

TEST(ActorsWaitTest, WaitsForAnActorThatEnds) {
  SystemConfig config;
  caf::actor_system system(config);
  std::binary_semaphore released(0);
  bool told = false;
  {
    const ActorsWait last(
        system, [&] { told = true; }, 1h);
    spawn_waiting(system, released);
    released.release();
  }
  EXPECT_FALSE(told);
}

TEST(ActorsWaitTest, WaitsAsLongAsItWasToldMeanwhile) {
  SystemConfig config;
  caf::actor_system system(config);
  std::binary_semaphore released(0);
  bool told = false;
  {
    ActorsWait last(
        system, [&] { told = true; }, 0s);
    spawn_waiting(system, released);
    last.allow(1h);
    last.allow(1s);  // of another run: the longest holds
    released.release();
  }
  EXPECT_FALSE(told);
}

/// A request that nobody answers keeps the actor that has it, also after its end.
TEST(ActorsWaitTest, TellsOfAnActorWithoutAThreadThatDoesNotEnd) {
  SystemConfig config;
  caf::actor_system system(config);
  int told = 0;
  caf::actor waiting;
  {
    const ActorsWait last(
        system, [&] { ++told; }, 50ms);
    waiting = system.spawn([](caf::event_based_actor* self) -> caf::behavior {
      return {[self, open = std::vector<caf::response_promise>()](int) mutable {
        open.push_back(self->make_response_promise());
        return open.back();
      }};
    });
    caf::anon_send(waiting, 1);
  }
  EXPECT_EQ(told, 1);
  caf::anon_send_exit(waiting, caf::exit_reason::kill);  // or the system would never end
}

TEST(ActorsWaitTest, AsksForNothingWithoutActors) {
  SystemConfig config;
  caf::actor_system system(config);
  bool told = false;
  {
    const ActorsWait last(
        system, [&] { told = true; }, 0s);
  }
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace troupe::actors
