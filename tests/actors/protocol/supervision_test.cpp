#include "actors/protocol/supervision.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"

namespace troupe::actors {
namespace {

TEST(Supervision, OutOfMemoryIsNoBug) {
  const auto told =
      failure_of("worker 1", std::make_exception_ptr(MemoryRanOut("a peer message: cannot allocate 8 bytes")));
  EXPECT_EQ(told.code, core::Errc::out_of_memory);
  EXPECT_EQ(told.message, "worker 1: a peer message: cannot allocate 8 bytes");
  const auto untold = failure_of("worker 1", std::make_exception_ptr(std::bad_alloc()));
  EXPECT_EQ(untold.code, core::Errc::out_of_memory);
  EXPECT_EQ(untold.message, "worker 1: memory ran out: use a smaller data.batch or fewer workers");
}

TEST(Supervision, OtherErrorsAreBugs) {
  const auto bug = failure_of("worker 1", std::make_exception_ptr(std::logic_error("no such slot")));
  EXPECT_EQ(bug.code, core::Errc::internal);
  EXPECT_EQ(bug.message, "worker 1: no such slot");
  EXPECT_EQ(failure_of("worker 1", std::make_exception_ptr(3)).message, "worker 1: unknown exception");
}

/// The handler of an actor throws; the test plays the coordinator and receives the error.
TEST(Supervision, TheCoordinatorReceivesTheKindOfError) {
  SystemConfig config;
  caf::actor_system system(config);
  caf::scoped_actor self(system);
  ActorDirectory actors;
  actors.coordinator = caf::actor_cast<CoordinatorActor>(caf::actor_cast<caf::strong_actor_ptr>(self));
  actors.site = 3;
  const auto failing = system.spawn([&actors](caf::event_based_actor* actor) -> caf::behavior {
    report_exceptions(actor, "loader 2", actors);
    return {[](int) { throw std::bad_alloc(); }};
  });
  self->send(failing, 1);
  bool heard = false;
  self->receive(
      [&](const RunError& run_error) {
        heard = true;
        EXPECT_EQ(run_error.code, core::Errc::out_of_memory);
        EXPECT_EQ(run_error.text, "loader 2: memory ran out: use a smaller data.batch or fewer workers");
        EXPECT_EQ(run_error.site, 3U);
      },
      caf::after(std::chrono::seconds(60)) >> [] {});
  EXPECT_TRUE(heard);
}

TEST(Supervision, EndsAreAwaitedAndThoseThatDoNotComeAreSaid) {
  SystemConfig config;
  caf::actor_system system(config);
  caf::scoped_actor self(system);
  std::vector<caf::error> reasons;
  const auto on_end = [&](const caf::down_msg& message) { reasons.push_back(message.reason); };
  const auto failing = system.spawn([](caf::event_based_actor* actor) { actor->quit(program_failure("why")); });
  self->monitor(failing);
  EXPECT_TRUE(await_ends(self, 1, std::chrono::hours(1), on_end));
  ASSERT_EQ(reasons.size(), 1U);
  EXPECT_EQ(program_failure_of(reasons[0]), "why");
  self->monitor(failing);  // the end of one that has ended before comes at once
  EXPECT_FALSE(await_ends(self, 2, core::Duration::zero(), on_end));
  EXPECT_EQ(reasons.size(), 2U);
}

TEST(Supervision, OnlyTheFailureOfAProgramIsOne) {
  EXPECT_EQ(program_failure_of(program_failure("worker 1: its program\nended")), "worker 1: its program ended");
  EXPECT_EQ(program_failure_of({}), std::nullopt);
  EXPECT_EQ(program_failure_of(caf::exit_reason::user_shutdown), std::nullopt);
  EXPECT_EQ(program_failure_of(caf::make_error(caf::sec::runtime_error, "a device failed")), std::nullopt);
}

}  // namespace
}  // namespace troupe::actors
