/// A forked process for tests of process death and survival. The child talks to its test through one pipe each way, one
/// string at a time. Every read has a deadline. The child never returns into GoogleTest: it ends with _exit.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace troupe::transport::testing {

/// One end of the two pipes. A read that waits longer than a minute ends the process (child) or throws (test).
class Line {
 public:
  explicit Line(int fd) noexcept : fd_(fd) {}
  void say(const std::string& text) const;
  [[nodiscard]] std::string hear() const;

 private:
  int fd_;
};

/// Fork before the test makes an endpoint: a child forked from a process with threads can use few functions safely.
class Child {
 public:
  explicit Child(const std::function<void(Line&)>& work);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills it
  [[nodiscard]] Line& line() noexcept { return line_; }
  [[nodiscard]] pid_t process() const noexcept { return process_; }
  void signal(int number) const;
  /// Stops the process and returns when none of its threads runs. On a busy host threads run for a while after the signal.
  void stop() const;
  /// Kills the process and returns when it has ended.
  void kill();

 private:
  int fd_ = -1;
  pid_t process_ = -1;
  Line line_{-1};
};

/// The number of descriptors that this process has open.
[[nodiscard]] std::size_t open_descriptors();
/// Whether `name` is in this host's list of sockets or of named shared memory.
[[nodiscard]] bool is_listed(const std::string& name);

}  // namespace troupe::transport::testing
