#include "experiment/directory/directory_lock.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folder.hpp"
#include "tests/wait.hpp"

namespace troupe::experiment {
namespace {

using testing::HasSubstr;
using tests::Folder;

std::string name_of(pid_t process) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on host {}", process, host.data());
}

/// A process that holds the lock until it is killed. `and_then` runs in it once it holds the lock.
template <class Then>
class Holder {
 public:
  Holder(const std::string& directory, Then and_then) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    process_ = ::fork();
    if (process_ == 0) {
      const auto lock = DirectoryLock::take(directory);
      if (lock) and_then();
      const char good = lock ? 'y' : 'n';
      if (::write(pipe[1], &good, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    ::close(pipe[1]);
    char good = 'n';
    EXPECT_EQ(::read(pipe[0], &good, 1), 1);
    EXPECT_EQ(good, 'y');
    ::close(pipe[0]);
  }
  ~Holder() { kill(); }
  void kill() {
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  [[nodiscard]] pid_t process() const { return process_; }

 private:
  pid_t process_ = -1;
};

TEST(DirectoryLock, HasOneHolderAtATime) {
  const Folder folder;
  {
    const auto first = DirectoryLock::take(folder.path());
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(first->missing(), "");
    const auto second = DirectoryLock::take(folder.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, core::Errc::timeout);  // exit 75
    EXPECT_EQ(second.error().message, folder.path() + ": " + name_of(::getpid()) +
                                          " is at work in this directory: try again when it has ended");
  }
  EXPECT_TRUE(DirectoryLock::take(folder.path()));
}

TEST(DirectoryLock, EndsWithItsHolderHoweverThatEnds) {
  const Folder folder;
  Holder holder(folder.path(), [] {});
  const auto refused = DirectoryLock::take(folder.path());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(name_of(holder.process())));
  holder.kill();
  EXPECT_TRUE(DirectoryLock::take(folder.path()));
}

TEST(DirectoryLock, IsNotPassedOnToAProgramThatTheHolderStarts) {
  const Folder folder;
  std::array<int, 2> pipe{};  // `cat` runs until the writing end is closed
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  Holder holder(folder.path(), [&] {
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, pipe[0], 0);
    std::array<char, 4> cat{"cat"};
    const std::array<char*, 2> arguments{cat.data(), nullptr};
    pid_t child = 0;
    if (::posix_spawnp(&child, "cat", &files, nullptr, arguments.data(), environ) != 0) ::_exit(1);
  });
  holder.kill();
  // A program that begins has its parent's files for a moment longer than posix_spawn takes.
  EXPECT_TRUE(tests::eventually([&] { return DirectoryLock::take(folder.path()).has_value(); }));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(DirectoryLock, ReadingItsHolderChangesNothing) {
  const Folder folder;
  EXPECT_EQ(DirectoryLock::holder(folder.path()).value(), std::nullopt);
  EXPECT_EQ(folder.entries(), 0u) << "looking makes no file";
  {
    const auto lock = DirectoryLock::take(folder.path());
    ASSERT_TRUE(lock);
    EXPECT_EQ(DirectoryLock::holder(folder.path()).value(), name_of(::getpid()));
    ASSERT_EQ(::truncate(folder.file(".lock").c_str(), 0), 0);  // its name is not written yet
    EXPECT_EQ(DirectoryLock::holder(folder.path()).value(), "another process");
  }
  EXPECT_EQ(DirectoryLock::holder(folder.path()).value(), std::nullopt) << "the file stays, the holder does not";
  EXPECT_TRUE(std::filesystem::exists(folder.file(".lock")));
}

TEST(DirectoryLock, MovesWithItsOwner) {
  const Folder folder;
  auto lock = DirectoryLock::take(folder.path());
  ASSERT_TRUE(lock);
  {
    const DirectoryLock moved(std::move(*lock));
    EXPECT_FALSE(DirectoryLock::take(folder.path()));
  }
  EXPECT_TRUE(DirectoryLock::take(folder.path()));
}

TEST(DirectoryLock, FileSystemWithoutLocksIsAWarning) {
  const Folder folder;
  const auto no_locks = [](int, int, struct flock*) {
    errno = ENOLCK;
    return -1;
  };
  const auto lock = DirectoryLock::take(folder.path(), no_locks);
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->missing(), folder.path() +
                                 ": cannot lock .lock: No locks available: nothing keeps a second process from writing "
                                 "into this directory: start none");
  EXPECT_EQ(DirectoryLock::holder(folder.path(), no_locks).value(), std::nullopt);
}

TEST(DirectoryLock, FailuresNameTheFile) {
  const Folder folder;
  const auto none = folder.file("none");
  const auto missing = DirectoryLock::take(none);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, core::Errc::io);
  EXPECT_THAT(missing.error().message, HasSubstr(none + "/.lock"));
  const auto broken = DirectoryLock::take(folder.path(), [](int, int, struct flock*) {
    errno = EIO;
    return -1;
  });
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, core::Errc::io);
  EXPECT_THAT(broken.error().message, HasSubstr(folder.file(".lock")));
}

}  // namespace
}  // namespace troupe::experiment
