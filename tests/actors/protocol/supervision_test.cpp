#include "actors/protocol/supervision.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"

namespace troupe::actors {
namespace {

TEST(Supervision, MemoryThatRanOutIsNoBug) {
  const auto told = failure_of("worker 1", std::make_exception_ptr(MemoryRanOut("a letter: cannot allocate 8 bytes")));
  EXPECT_EQ(told.code, core::Errc::out_of_memory);
  EXPECT_EQ(told.message, "worker 1: a letter: cannot allocate 8 bytes");
  const auto untold = failure_of("worker 1", std::make_exception_ptr(std::bad_alloc()));
  EXPECT_EQ(untold.code, core::Errc::out_of_memory);
  EXPECT_EQ(untold.message, "worker 1: memory ran out: use a smaller data.batch or fewer workers");
}

TEST(Supervision, AnythingElseIs) {
  const auto bug = failure_of("worker 1", std::make_exception_ptr(std::logic_error("no such slot")));
  EXPECT_EQ(bug.code, core::Errc::internal);
  EXPECT_EQ(bug.message, "worker 1: no such slot");
  EXPECT_EQ(failure_of("worker 1", std::make_exception_ptr(3)).message, "worker 1: unknown exception");
}

/// An actor whose handler throws what it is told to, and one in the coordinator's place that hears of it.
TEST(Supervision, TheCoordinatorHearsTheKind) {
  SystemConfig config;
  caf::actor_system system(config);
  caf::scoped_actor self(system);
  Company company;
  company.coordinator = caf::actor_cast<CoordinatorActor>(caf::actor_cast<caf::strong_actor_ptr>(self));
  company.site = 3;
  const auto failing = system.spawn([&company](caf::event_based_actor* actor) -> caf::behavior {
    report_exceptions(actor, "loader 2", company);
    return {[](int) { throw std::bad_alloc(); }};
  });
  self->send(failing, 1);
  bool heard = false;
  self->receive(
      [&](const Trouble& trouble) {
        heard = true;
        EXPECT_EQ(trouble.code, core::Errc::out_of_memory);
        EXPECT_EQ(trouble.text, "loader 2: memory ran out: use a smaller data.batch or fewer workers");
        EXPECT_EQ(trouble.site, 3U);
      },
      caf::after(std::chrono::seconds(60)) >> [] {});
  EXPECT_TRUE(heard);
}

}  // namespace
}  // namespace troupe::actors
