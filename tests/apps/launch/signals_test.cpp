// Signals to the launcher, its node and its guests. Launched::TearDown() checks that nothing remains.
#include <csignal>

#include "tests/apps/launch/launched.hpp"
#include "tests/wait.hpp"

namespace troupe::apps {
namespace {

class LaunchedSignals : public Launched {
 protected:
  /// A run that would take minutes.
  [[nodiscard]] Words long_run() const {
    return command({"--workers", "2", "--strategy", "easgd", "--set", "strategy.tau=2"},
                   {"samples=4000", "batch=4", "epochs=100", "pause_ms=20", log_word()});
  }
  /// Blocks until both workers have computed.
  [[nodiscard]] bool trains() const {
    return tests::eventually([this] { return steps_of("0").size() > 2 && steps_of("1").size() > 2; });
  }
};

TEST_F(LaunchedSignals, CtrlCEndsTheRunAfterACheckpoint) {
  nodes::Process run(long_run());
  ASSERT_TRUE(trains()) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_TRUE(saved_after_step_0(this->run())) << run.err();
  EXPECT_NE(folder_.read("log.0").find("END "), std::string::npos);
}

TEST_F(LaunchedSignals, AnInterruptedRunGoesOn) {
  {
    nodes::Process first(command({"--workers", "2", "--strategy", "easgd", "--set", "strategy.tau=2"},
                                 {"samples=40", "batch=4", "epochs=20", "pause_ms=20", log_word()}));
    ASSERT_TRUE(trains()) << first.err();
    first.signal(SIGINT);
    ASSERT_EQ(first.wait(), 130) << first.err();
  }
  const auto outcome = run_program({TROUPE_BINARY, "launch", "--resume", run(), "--plain", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"samples\":800"), std::string::npos) << outcome.out;
  expect_replays();
}

TEST_F(LaunchedSignals, AKilledLauncherLeavesNothing) {
  nodes::Process run(long_run());
  ASSERT_TRUE(trains()) << run.err();
  run.signal(SIGKILL);
  EXPECT_EQ(run.wait(), -1);
}

TEST_F(LaunchedSignals, AKilledLauncherLeavesNothingThatIsStopped) {
  nodes::Process run(long_run());
  ASSERT_TRUE(trains()) << run.err();
  for (const auto& line : remaining())
    if (line.find("scripted_guest") != std::string::npos && line.find("launch") == std::string::npos)
      ::kill(static_cast<pid_t>(std::stol(line)), SIGSTOP);
  run.signal(SIGKILL);
  EXPECT_EQ(run.wait(), -1);
}

}  // namespace
}  // namespace troupe::apps
