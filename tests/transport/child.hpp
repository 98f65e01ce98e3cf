/// A forked process for tests of what survives whom. The child talks to its test through a pipe each way, one byte or one
/// string at a time; every read has a deadline. A child never returns into GoogleTest: it ends with _exit.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace troupe::transport::testing {

/// One end of the line. What waits longer than a minute ends the process (child) or throws (test).
class Line {
 public:
  explicit Line(int fd) noexcept : fd_(fd) {}
  void say(const std::string& text) const;
  [[nodiscard]] std::string hear() const;

 private:
  int fd_;
};

/// Fork before the test makes an endpoint: a child of a process with threads can do little.
class Child {
 public:
  explicit Child(const std::function<void(Line&)>& work);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();  // kills it
  [[nodiscard]] Line& line() noexcept { return line_; }
  [[nodiscard]] pid_t process() const noexcept { return process_; }
  void signal(int number) const;
  /// Stops it, and returns when none of its threads runs any more: on a busy host they do for a while after the signal.
  void stop() const;
  /// Kills it, and returns when it is gone.
  void kill();

 private:
  int fd_ = -1;
  pid_t process_ = -1;
  Line line_{-1};
};

/// How many descriptors this process has open.
[[nodiscard]] std::size_t open_descriptors();
/// Whether `name` stands in the list of sockets, or of named shared memory, of this host.
[[nodiscard]] bool is_listed(const std::string& name);

}  // namespace troupe::transport::testing
