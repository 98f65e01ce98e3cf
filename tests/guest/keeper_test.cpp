// Whichever process is killed, no process of a program remains: neither one that ignores signals nor one that has left its group and session.
#include "guest/keeper.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "guest/process.hpp"
#include "guest/process_tree.hpp"
#include "tests/wait.hpp"

namespace troupe::guest {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> words_of(const std::filesystem::path& process) {
  std::ifstream file(process / "cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

class Keeper : public testing::Test {
 protected:
  /// Prints "ready" when all its processes run. Each has mark_ as an argument.
  [[nodiscard]] std::vector<std::string> program() const {
    const std::string stubborn = "trap '' TERM HUP INT; echo stubborn; while :; do read x </dev/null; sleep 0.1; done";
    const std::string leaver = "echo leaver; sleep 1000; :";
    return {"sh",
            "-c",
            "sh -c \"$1\" x " + mark_ + " & setsid sh -c \"$2\" x " + mark_ + " & (setsid setsid sh -c \"$2\" x " +
                mark_ + " &) ; echo main; while :; do sleep 1000; done",
            mark_,
            stubborn,
            leaver};
  }
  /// Processes with the mark, ascending.
  [[nodiscard]] std::vector<pid_t> marked() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto words = words_of(entry.path());
      if (std::ranges::find(words, mark_) != words.end()) found.push_back(std::stoi(name));
    }
    std::ranges::sort(found);
    return found;
  }
  /// Two keepers, the program, and its three.
  [[nodiscard]] bool all_run() const {
    return tests::eventually([this] { return marked().size() == 6; });
  }
  [[nodiscard]] bool nothing_remains() const {
    return tests::eventually([this] { return marked().empty(); });
  }
  [[nodiscard]] std::unique_ptr<GuestProcess> start() const {
    auto process = GuestProcess::start(program(), {}, {});
    EXPECT_TRUE(process) << process.error().message;
    return process ? std::move(*process) : nullptr;
  }
  static pid_t only_child_of(pid_t process) {
    const auto children = children_of(process);
    return children.size() == 1 ? children.front() : -1;
  }

  const std::string mark_ = "keeper-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count_);

 private:
  static inline int count_ = 0;
};

TEST_F(Keeper, TheEndOfItsProcessEndsAll) {
  auto process = start();
  ASSERT_TRUE(all_run());
  process.reset();
  EXPECT_TRUE(marked().empty());  // at once
}

TEST_F(Keeper, AKilledProgramLeavesNothing) {
  const auto process = start();
  ASSERT_TRUE(all_run());
  const auto inner = only_child_of(process->id());
  // The program is the child of the inner keeper that is in a group of its own and has no parent among the others.
  const auto children = children_of(inner);
  const auto program = std::ranges::find_if(children, [](pid_t child) {
    return words_of("/proc/" + std::to_string(child)).size() == 6;  // as program() has them
  });
  ASSERT_NE(program, children.end());
  ::kill(*program, SIGKILL);
  EXPECT_EQ(process->ending(tests::kPatience), "was killed by signal 9 (Killed)");
  EXPECT_TRUE(marked().empty());
}

TEST_F(Keeper, AKilledOuterKeeperLeavesNothing) {
  const auto process = start();
  ASSERT_TRUE(all_run());
  ::kill(process->id(), SIGKILL);
  EXPECT_EQ(process->ending(tests::kPatience), "was killed by signal 9 (Killed)");
  EXPECT_TRUE(nothing_remains());
}

TEST_F(Keeper, AKilledInnerKeeperLeavesNothing) {
  const auto process = start();
  ASSERT_TRUE(all_run());
  const auto inner = only_child_of(process->id());
  ASSERT_GT(inner, 0);
  ::kill(inner, SIGKILL);
  EXPECT_EQ(process->ending(tests::kPatience), "was killed by signal 9 (Killed)");
  EXPECT_TRUE(marked().empty());
}

/// An engine in a process of its own. It has no part in what follows.
TEST_F(Keeper, AKilledEngineLeavesNothing) {
  const pid_t engine = ::fork();
  if (engine == 0) {
    const auto process = GuestProcess::start(program(), {}, {});
    for (;;) ::pause();
  }
  EXPECT_TRUE(all_run());
  ::kill(engine, SIGKILL);
  EXPECT_EQ(::waitpid(engine, nullptr, 0), engine);
  EXPECT_TRUE(nothing_remains());
}

TEST_F(Keeper, AKilledEngineLeavesNothingThatIsStopped) {
  const pid_t engine = ::fork();
  if (engine == 0) {
    const auto process = GuestProcess::start(program(), {}, {});
    for (;;) ::pause();
  }
  EXPECT_TRUE(all_run());
  for (const pid_t one : marked()) ::kill(one, SIGSTOP);
  ::kill(engine, SIGKILL);
  EXPECT_EQ(::waitpid(engine, nullptr, 0), engine);
  EXPECT_TRUE(nothing_remains());
}

TEST_F(Keeper, SignalsOfAServiceDoNotEndIt) {
  const auto process = start();
  ASSERT_TRUE(all_run());
  const auto inner = only_child_of(process->id());
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    for (const pid_t keeper : {process->id(), inner}) ::kill(keeper, number);
  EXPECT_EQ(process->ending(100ms), std::nullopt);
  EXPECT_TRUE(all_run());
  ::kill(process->id(), SIGKILL);
  EXPECT_TRUE(nothing_remains());
}

TEST_F(Keeper, EndsAsTheProgramDid) {
  for (const int number : {SIGTERM, SIGSEGV, SIGINT, SIGUSR1, SIGKILL}) {
    auto process = GuestProcess::start({"sh", "-c", "kill -" + std::to_string(number) + " $$", mark_}, {}, {});
    ASSERT_TRUE(process);
    EXPECT_TRUE((*process)
                    ->ending(tests::kPatience)
                    .value_or("still runs")
                    .starts_with("was killed by signal " + std::to_string(number) + " (" + ::strsignal(number)));
  }
  for (const int code : {0, 1, 75, 127, 128, 255}) {
    auto process = GuestProcess::start({"sh", "-c", "exit " + std::to_string(code), mark_}, {}, {});
    ASSERT_TRUE(process);
    EXPECT_EQ((*process)->ending(tests::kPatience), "ended with exit code " + std::to_string(code));
  }
  EXPECT_TRUE(marked().empty());
}

/// Children of a process, those too that have ended and were not waited for.
int children_and_zombies_of(pid_t parent) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string text;
    if (!std::getline(file, text) || text.find(") ") == std::string::npos) continue;
    std::istringstream rest(text.substr(text.rfind(") ") + 2));
    char state = 0;
    pid_t of = 0;
    count += rest >> state >> of && of == parent ? 1 : 0;
  }
  return count;
}

TEST_F(Keeper, WaitsForOrphansWhileTheProgramRuns) {
  std::atomic all_started = false;
  const auto process = GuestProcess::start(
      {"sh", "-c", "for i in 1 2 3 4 5; do (sleep 0 &); done; (sleep 1000 &); echo all; exec sleep 1000", mark_}, {},
      [&all_started](const std::string& line) { all_started = line == "all"; });
  ASSERT_TRUE(process);
  const auto inner = only_child_of((*process)->id());
  ASSERT_GT(inner, 0);
  ASSERT_TRUE(tests::eventually([&] { return all_started.load(); }));
  EXPECT_TRUE(tests::eventually([&] { return children_and_zombies_of(inner) == 2; }));  // those that sleep
}

}  // namespace
}  // namespace troupe::guest
