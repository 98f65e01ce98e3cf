#include "actors/requests/helping.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "actors/run/assembly.hpp"

namespace troupe::actors {
namespace {

using std::chrono::seconds;

/// Receives the id of the thread that carried out an order.
struct Trace {
  std::promise<std::thread::id> done;
};
using TracePtr = std::shared_ptr<Trace>;

}  // namespace
}  // namespace troupe::actors
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::TracePtr)
namespace troupe::actors {
namespace {

/// What the receiver does after reporting its thread. (An argument, because CAF 0.17 dereferences null for functions without arguments.)
enum class After { go_on, quit };
caf::behavior pooled_receiver(caf::event_based_actor* self, After after) {
  return {[self, after](const TracePtr& trace) {
    trace->done.set_value(std::this_thread::get_id());
    if (after == After::quit) self->quit();
  }};
}

class Helping : public ::testing::Test {
 protected:
  /// Runs `body` in a handler of a detached actor, as a worker does, and waits for it.
  void on_an_actor(const std::function<void(caf::event_based_actor*)>& body) {
    std::promise<void> done;
    const auto actor = system_.spawn<caf::detached>(
        [](caf::event_based_actor* self, decltype(&body) run, decltype(&done) over) -> caf::behavior {
          return {[=](int) {
            (*run)(self);
            over->set_value();
            self->quit();
          }};
        },
        &body, &done);
    caf::anon_send(actor, 1);
    ASSERT_EQ(done.get_future().wait_for(seconds(60)), std::future_status::ready);
    system_.await_all_actors_done();
  }
  /// A receiver that no thread executes before it has a message.
  caf::actor idle(After after = After::go_on) { return system_.spawn<caf::lazy_init>(pooled_receiver, after); }
  static std::thread::id place(const TracePtr& trace) {
    auto where = trace->done.get_future();
    return where.wait_for(seconds(60)) == std::future_status::ready ? where.get() : std::thread::id{};
  }

  SystemConfig config_;
  caf::actor_system system_{config_};
};

TEST_F(Helping, ExecutesAnIdleReceiverOnTheSendersThread) {
  on_an_actor([&](caf::event_based_actor* self) {
    HelpingUnit helping(system_);
    const auto receiver = idle();
    for (int i = 0; i < 3; ++i) {  // repeated: the receiver is idle after each
      const auto trace = std::make_shared<Trace>();
      helping.send(self, receiver, trace);
      helping.help();
      EXPECT_EQ(place(trace), std::this_thread::get_id());
    }
    self->send_exit(receiver, caf::exit_reason::user_shutdown);
  });
}

TEST_F(Helping, LeavesAllReceiversButTheLastToThePool) {
  on_an_actor([&](caf::event_based_actor* self) {
    HelpingUnit helping(system_);
    std::vector<caf::actor> receivers;
    std::vector<TracePtr> traces;
    for (int i = 0; i < 3; ++i) {
      receivers.push_back(idle());
      traces.push_back(std::make_shared<Trace>());
    }
    for (int i = 0; i < 3; ++i) helping.send(self, receivers[i], traces[i]);
    EXPECT_NE(place(traces[0]), std::this_thread::get_id());  // before help()
    EXPECT_NE(place(traces[1]), std::this_thread::get_id());
    helping.help();
    EXPECT_EQ(place(traces[2]), std::this_thread::get_id());
    for (const auto& receiver : receivers) self->send_exit(receiver, caf::exit_reason::user_shutdown);
  });
}

TEST_F(Helping, ThePoolExecutesTheRestOfTheMailbox) {
  on_an_actor([&](caf::event_based_actor* self) {
    HelpingUnit helping(system_);
    const auto receiver = idle();
    const auto first = std::make_shared<Trace>();
    const auto second = std::make_shared<Trace>();
    helping.send(self, receiver, first);
    self->send(receiver, second);  // the receiver is awake already: the message waits
    helping.help();
    EXPECT_EQ(place(first), std::this_thread::get_id());
    EXPECT_NE(place(second), std::thread::id{});
    self->send_exit(receiver, caf::exit_reason::user_shutdown);
  });
}

TEST_F(Helping, ExecutesAllThatWasSentThroughIt) {
  on_an_actor([&](caf::event_based_actor* self) {
    HelpingUnit helping(system_);
    const auto receiver = idle();
    const auto first = std::make_shared<Trace>();
    const auto second = std::make_shared<Trace>();
    helping.send(self, receiver, first);
    helping.send(self, receiver, second);
    helping.help();
    EXPECT_EQ(place(first), std::this_thread::get_id());
    EXPECT_EQ(place(second), std::this_thread::get_id());
    self->send_exit(receiver, caf::exit_reason::user_shutdown);
  });
}

TEST_F(Helping, MessagesAreDeliveredWithoutAHelper) {
  on_an_actor([&](caf::event_based_actor* self) {
    const auto receiver = idle();
    const auto trace = std::make_shared<Trace>();
    {
      HelpingUnit helping(system_);
      helping.send(self, receiver, trace);
    }
    EXPECT_NE(place(trace), std::thread::id{});
    self->send_exit(receiver, caf::exit_reason::user_shutdown);
  });
}

TEST_F(Helping, AReceiverMayEndWhileItIsHelped) {
  on_an_actor([&](caf::event_based_actor* self) {
    HelpingUnit helping(system_);
    const auto receiver = idle(After::quit);
    const auto trace = std::make_shared<Trace>();
    helping.send(self, receiver, trace);
    helping.help();
    helping.help();  // the unit keeps no actor any more
    EXPECT_EQ(place(trace), std::this_thread::get_id());
  });  // returns when the actor has ended
}

}  // namespace
}  // namespace troupe::actors
