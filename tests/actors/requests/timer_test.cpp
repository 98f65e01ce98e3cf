#include "actors/requests/timer.hpp"

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "tests/wait.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using Timed = caf::typed_actor<caf::reacts_to<Tick>, caf::reacts_to<Halt>>;

struct TimedState {
  std::optional<Timer> timer;
};
using Self = Timed::stateful_pointer<TimedState>;

class Timers : public ::testing::Test {
 protected:
  SystemConfig config_;
  caf::actor_system system_{config_};
  std::size_t detached_before_ = system_.detached_actors();
};

TEST_F(Timers, MessagesComeFromTheActorItself) {
  std::atomic<int> own = 0, others = 0;
  const auto timed = system_.spawn<caf::detached>([&](Self self) -> Timed::behavior_type {
    self->state.timer.emplace(self);
    self->state.timer->send(0ms, Tick{});
    self->state.timer->send(1ms, Tick{});
    return {[&, self](const Tick&) { ++(self->current_sender() == self->ctrl() ? own : others); }, [](const Halt&) {}};
  });
  EXPECT_TRUE(tests::eventually([&] { return own + others == 2; }));
  EXPECT_EQ(own, 2);
  EXPECT_EQ(others, 0);
}

/// With a message that would be due long after the test.
TEST_F(Timers, TheThreadOfAnActorEndsBeforeItsMessagesAreDue) {
  const auto actor = [](Self self) -> Timed::behavior_type {
    self->state.timer.emplace(self);
    self->state.timer->send(24h, Tick{});
    return {[](const Tick&) {}, [self](const Halt&) { self->quit(); }};
  };
  auto timed = system_.spawn<caf::detached>(actor);
  EXPECT_GT(system_.detached_actors(), detached_before_);
  caf::anon_send(timed, Halt{});
  timed = nullptr;
  EXPECT_TRUE(tests::eventually([&] { return system_.detached_actors() == detached_before_; }));
}

/// The clock may pass a message on while the actor is destroyed.
TEST_F(Timers, MessagesThatAreDueAtTheEndAreDropped) {
  for (int round = 0; round < 200; ++round) {
    auto timed = system_.spawn<caf::detached>([](Self self) -> Timed::behavior_type {
      self->state.timer.emplace(self);
      for (int k = 0; k < 20; ++k) self->state.timer->send(std::chrono::microseconds(20 * k), Tick{});
      return {[](const Tick&) {}, [self](const Halt&) { self->quit(); }};
    });
    caf::anon_send(timed, Halt{});
  }
  EXPECT_TRUE(tests::eventually([&] { return system_.detached_actors() == detached_before_; }));
}

}  // namespace
}  // namespace troupe::actors
