#include "service/jobs/job_state.hpp"

#include <array>
#include <csignal>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace troupe::service {
namespace {

using Kind = JobEvent::Kind;
using State = JobState;

/// "-": refused. Otherwise the state, and an effect behind a blank.
std::string text_of(const core::Result<JobTransition>& next) {
  if (!next) return "-";
  constexpr std::array kEffects{"", " spawn", " interrupt", " kill", " save", " forget"};
  return std::string(name(next->state)) + kEffects[static_cast<std::size_t>(next->effect)];
}

struct TableRow {
  Kind kind;
  std::array<std::string, 7> next;  // by state, in the order of kJobStates
};

// queued, running, stopping, stopped, done, failed, lost
const std::array<TableRow, 11> kTable{{
    {Kind::start, {"-", "-", "-", "queued", "queued", "queued", "queued"}},
    {Kind::resume, {"-", "-", "-", "queued", "-", "queued", "queued"}},
    {Kind::stop, {"stopped", "stopping interrupt", "stopping kill", "-", "-", "-", "-"}},
    {Kind::kill, {"stopped", "stopping kill", "stopping kill", "-", "-", "-", "-"}},
    {Kind::save, {"-", "running save", "-", "-", "-", "-", "-"}},
    {Kind::remove, {"queued forget", "-", "-", "stopped forget", "done forget", "failed forget", "lost forget"}},
    {Kind::begin, {"running spawn", "running", "stopping", "stopped", "done", "failed", "lost"}},
    {Kind::not_started, {"queued", "failed", "failed", "stopped", "done", "failed", "lost"}},
    {Kind::ended, {"queued", "done", "done", "stopped", "done", "failed", "lost"}},  // with code 0
    {Kind::never_began, {"queued", "queued", "stopped", "stopped", "done", "failed", "lost"}},
    {Kind::vanished, {"queued", "lost", "stopped", "stopped", "done", "failed", "lost"}},
}};

TEST(JobStateTest, EveryStateAnswersEveryEventAsTheTableSays) {
  std::set<Kind> kinds;
  for (const auto& row : kTable) {
    kinds.insert(row.kind);
    for (std::size_t s = 0; s < kJobStates.size(); ++s)
      EXPECT_EQ(text_of(next_state(kJobStates[s], {.kind = row.kind})), row.next[s])
          << name(kJobStates[s]) << ", event " << static_cast<int>(row.kind);
  }
  EXPECT_EQ(kinds, std::set<Kind>(kJobEvents.begin(), kJobEvents.end()));
}

struct EndCase {
  State before;
  int code, signal;
  State after;
};

TEST(JobStateTest, TheEndOfAProcessDecidesTheStateByItsExitCodeAndSignal) {
  for (const auto& end :
       {EndCase{State::running, 0, 0, State::done}, EndCase{State::stopping, 0, 0, State::done},
        EndCase{State::running, 130, 0, State::stopped}, EndCase{State::stopping, 130, 0, State::stopped},
        EndCase{State::running, 78, 0, State::failed}, EndCase{State::stopping, 74, 0, State::failed},
        EndCase{State::running, 0, SIGINT, State::stopped}, EndCase{State::running, 0, SIGTERM, State::stopped},
        EndCase{State::running, 0, SIGKILL, State::failed}, EndCase{State::stopping, 0, SIGKILL, State::stopped},
        EndCase{State::running, 0, SIGSEGV, State::failed}})
    EXPECT_EQ(next_state(end.before, {.kind = Kind::ended, .code = end.code, .signal = end.signal})->state, end.after)
        << name(end.before) << " " << end.code << " " << end.signal;
}

TEST(JobStateTest, RefusalsAreUsageErrorsThatNameTheState) {
  for (const auto state : kJobStates)
    for (const auto kind : kJobEvents)
      if (const auto next = next_state(state, {.kind = kind}); !next) {
        EXPECT_EQ(next.error().code, core::Errc::usage);
        EXPECT_NE(next.error().message.find(name(state)), std::string::npos) << next.error().message;
      }
}

TEST(JobStateTest, NamesAreReadBack) {
  for (const auto state : kJobStates) EXPECT_EQ(job_state(name(state)), state);
  EXPECT_EQ(job_state("paused"), std::nullopt);
}

}  // namespace
}  // namespace troupe::service
