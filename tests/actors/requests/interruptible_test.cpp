#include "actors/requests/interruptible.hpp"

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/requests/asking.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;
using Asked = caf::typed_actor<caf::replies_to<AwaitEnd>::with<Halt>>;

class Interruptible : public ::testing::Test {
 protected:
  Interruptible() {
    asked_ = system_.spawn([](Asked::pointer self) -> Asked::behavior_type {
      // The first request is never answered.
      return {[self, any = false](const AwaitEnd&) mutable -> caf::result<Halt> {
        if (std::exchange(any, true)) return Halt{};
        return self->make_response_promise<Halt>();
      }};
    });
  }
  SystemConfig config_;
  caf::actor_system system_{config_};
  Asked asked_;
  caf::scoped_actor self_{system_};
  std::atomic<std::uint64_t> moves_ = 0;
};

TEST_F(Interruptible, AWaitEndsWhenNothingMoves) {
  auto never = self_->request(asked_, kNoDeadline, AwaitEnd{});
  caf::error why;
  receive(
      never, Movement{moves_, 10ms}, {}, [](const Halt&) { ADD_FAILURE(); },
      [&](const caf::error& error) { why = error; });
  EXPECT_EQ(why, caf::sec::request_timeout);
}

TEST_F(Interruptible, AnAnswerAndAnInterruptEndAWait) {
  auto never = self_->request(asked_, kNoDeadline, AwaitEnd{});
  auto at_once = self_->request(asked_, kNoDeadline, AwaitEnd{});
  bool answered = false;
  const Movement movement{moves_, 1h};
  receive(
      at_once, movement, {}, [&](const Halt&) { answered = true; }, [](const caf::error&) { ADD_FAILURE(); });
  EXPECT_TRUE(answered);
  std::stop_source stop;
  stop.request_stop();
  caf::error why;
  receive(
      never, movement, stop.get_token(), [](const Halt&) { ADD_FAILURE(); },
      [&](const caf::error& error) { why = error; });
  EXPECT_EQ(why, caf::exit_reason::user_shutdown);
}

}  // namespace
}  // namespace troupe::actors
