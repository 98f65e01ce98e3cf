#include "guest/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "core/open_files.hpp"
#include "tests/wait.hpp"

namespace troupe::guest {
namespace {

using namespace std::chrono_literals;

/// HeardLines as they come.
class HeardLines {
 public:
  GuestProcess::OnLine taker() {
    return [this](const std::string& line) {
      const std::scoped_lock lock(mutex_);
      lines_.push_back(line);
    };
  }
  [[nodiscard]] std::vector<std::string> all() {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }
  [[nodiscard]] std::string await_first() {
    EXPECT_TRUE(tests::eventually([this] { return !all().empty(); }));
    return all().empty() ? "0" : all().front();
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

std::unique_ptr<GuestProcess> shell(const std::string& text, GuestProcess::OnLine on_line = {},
                                    const GuestProcess::Variables& variables = {}) {
  auto process = GuestProcess::start({"sh", "-c", text}, variables, std::move(on_line));
  EXPECT_TRUE(process) << process.error().message;
  return process ? std::move(*process) : nullptr;
}

/// No process, or a zombie of somebody else's.
bool is_gone(pid_t process) {
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string word;
  for (int k = 0; k < 3; ++k)
    if (!(stat >> word)) return true;
  return word == "Z";
}

TEST(GuestProcess, TellsItsExitCode) {
  const auto process = shell("exit 3");
  EXPECT_EQ(process->ending(tests::kPatience), "ended with exit code 3");
  EXPECT_EQ(process->ending(0ms), "ended with exit code 3");  // again
}

TEST(GuestProcess, TellsTheSignalThatKilledIt) {
  const auto process = shell("kill -9 $$");
  EXPECT_EQ(process->ending(tests::kPatience), "was killed by signal 9 (Killed)");
}

TEST(GuestProcess, RunsUntilItIsKilled) {
  pid_t id = 0;
  {
    HeardLines lines;
    const auto process = shell("echo $$; exec sleep 1000", lines.taker());
    EXPECT_EQ(process->ending(0ms), std::nullopt);
    id = static_cast<pid_t>(std::stol(lines.await_first()));
    EXPECT_FALSE(is_gone(id));
  }
  EXPECT_TRUE(is_gone(id));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(GuestProcess, AProgramThatIsNotThereIsAnErrorOfTheCommand) {
  const auto process = GuestProcess::start({"/nonexistent/program", "x"}, {}, {});
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, core::Errc::config);
  EXPECT_EQ(process.error().message,
            "model.command: /nonexistent/program cannot be started: No such file or directory");
  EXPECT_EQ(GuestProcess::start({"train.py", "x"}, {}, {}).error().message,
            "model.command: train.py cannot be started: No such file or directory; write its interpreter before it, as "
            "in python3 train.py");
}

TEST(GuestProcess, HasItsVariablesAndTheOthersOnce) {
  ::setenv("TROUPE_TEST_KEPT", "kept", 1);
  ::setenv("TROUPE_TEST_REPLACED", "old", 1);
  HeardLines lines;
  const auto process =
      shell("echo $TROUPE_TEST_KEPT $TROUPE_TEST_REPLACED; env | grep -c TROUPE_TEST_REPLACED=", lines.taker(),
            {{"TROUPE_TEST_REPLACED", "new"}});
  EXPECT_TRUE(process->ending(tests::kPatience));
  EXPECT_EQ(lines.all(), (std::vector<std::string>{"kept new", "1"}));
}

// It may use select(2), which fails for descriptors above 1,024.
TEST(GuestProcess, HasTheSoftLimitOfOpenFilesThatTroupeBeganWith) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  auto low = before;
  low.rlim_cur = 200;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  core::raise_open_files_limit();
  EXPECT_GT(core::open_files_limit(), 200U);
  HeardLines lines;
  const auto process = shell("ulimit -n", lines.taker());
  EXPECT_TRUE(process->ending(tests::kPatience));
  EXPECT_EQ(lines.all(), std::vector<std::string>{"200"});
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

// The end of the process is told after its output: an error has its last lines.
TEST(GuestProcess, AllItsOutputIsThereWhenItHasEnded) {
  for (int round = 0; round < 20; ++round) {
    HeardLines lines;
    const auto process =
        shell("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo $i; done; printf cut >&2; exit 1", lines.taker());
    ASSERT_TRUE(process->ending(tests::kPatience));
    ASSERT_EQ(lines.all().size(), 16U);
    EXPECT_EQ(lines.all().back(), "cut");
    const auto last = process->last_lines();
    ASSERT_EQ(last.size(), 12U);
    EXPECT_EQ(last.front(), "5");
    EXPECT_EQ(last.back(), "cut");
  }
}

TEST(GuestProcess, LinesAreCutAndCleaned) {
  HeardLines lines;
  const auto process =
      shell(R"(printf 'a\033[2Jb\r50%%\r100%%\n\n\377x\n'; head -c 5000 /dev/zero | tr '\0' y; echo)", lines.taker());
  ASSERT_TRUE(process->ending(tests::kPatience));
  const auto all = lines.all();
  ASSERT_GE(all.size(), 6U);
  EXPECT_EQ(all[0], "a?[2Jb");
  EXPECT_EQ(all[1], "50%");
  EXPECT_EQ(all[2], "100%");
  EXPECT_EQ(all[3], "?x");
  std::size_t rest = 0;
  for (std::size_t k = 4; k < all.size(); ++k) {
    EXPECT_LE(all[k].size(), 2004U);
    rest += all[k].size();
  }
  EXPECT_EQ(rest, 5000U);
}

TEST(GuestProcess, ALongLineIsNotCutWithinACharacter) {
  HeardLines lines;
  const auto process = shell("i=0; while [ $i -lt 1500 ]; do printf '\\303\\274'; i=$((i+1)); done; echo",
                             lines.taker());  // 1500 times ü
  ASSERT_TRUE(process->ending(tests::kPatience));
  std::string whole;
  for (const auto& line : lines.all()) whole += line;
  EXPECT_EQ(whole.size(), 3000U);
  EXPECT_EQ(whole.find('?'), std::string::npos);
}

TEST(GuestProcess, ItsChildrenDieWithIt) {
  HeardLines lines;
  auto process = shell("sleep 1000 & echo $!; wait", lines.taker());
  const auto child = static_cast<pid_t>(std::stol(lines.await_first()));
  EXPECT_FALSE(is_gone(child));
  process.reset();
  EXPECT_TRUE(tests::eventually([&] { return is_gone(child); }));
}

TEST(GuestProcess, ItsChildrenDieAlsoWhenItHasEnded) {
  HeardLines lines;
  auto process = shell("sleep 1000 & echo $!", lines.taker());
  EXPECT_EQ(process->ending(tests::kPatience), "ended with exit code 0");  // though the child has its output
  const auto child = static_cast<pid_t>(std::stol(lines.await_first()));
  process.reset();
  EXPECT_TRUE(tests::eventually([&] { return is_gone(child); }));
}

// Out of its group, and printing without end.
TEST(GuestProcess, AChildThatLeavesItsGroupDiesWithIt) {
  HeardLines lines;
  auto process = shell("setsid sh -c 'echo $$; exec yes' & sleep 1000", lines.taker());
  const auto child = static_cast<pid_t>(std::stol(lines.await_first()));
  process.reset();
  EXPECT_TRUE(is_gone(child));
}

TEST(GuestProcess, DiesWithTheThreadThatStartedIt) {
  std::unique_ptr<GuestProcess> process;
  std::thread([&] { process = shell("sleep 1000"); }).join();
  EXPECT_EQ(process->ending(tests::kPatience), "was killed by signal 9 (Killed)");
}

TEST(GuestProcess, CtrlCDoesNotReachIt) {
  HeardLines lines;
  const auto process = shell("echo $$; sleep 1000", lines.taker());
  const auto program = static_cast<pid_t>(std::stol(lines.await_first()));
  EXPECT_EQ(::getpgid(program), program);
  EXPECT_EQ(::getpgid(process->id()), process->id());  // nor its keeper
}

TEST(GuestProcess, GetsNoDescriptorThatIsNotItsOwn) {
  const int leaky = ::open("/dev/null", O_RDONLY);  // as a library leaves one: not closed at exec
  HeardLines lines;
  const auto process = shell("exec 9</dev/null; ls /proc/self/fd | tr '\\n' ' '", lines.taker());
  ASSERT_TRUE(process->ending(tests::kPatience));
  ::close(leaky);
  EXPECT_EQ(lines.all(), (std::vector<std::string>{"0 1 2 3 9 "}));  // 3: the folder that ls reads
}

TEST(GuestProcess, SignalsAreAsAtAStart) {
  sigset_t block, before;
  ::sigemptyset(&block);
  ::sigaddset(&block, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &block, &before);
  const auto process = shell("kill -15 $$; exit 3");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(process->ending(tests::kPatience), "was killed by signal 15 (Terminated)");
}

}  // namespace
}  // namespace troupe::guest
