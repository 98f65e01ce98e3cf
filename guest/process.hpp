/// A program of the user's: started with variables that tell it how to join; its output is read line by line; it is killed with all processes
/// that it has started, also if this process is killed (keeper.hpp). Thread rule: the thread that starts it ends it, and must live as long: the
/// program is killed when that thread ends. Output lines come on a thread of their own.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"

namespace troupe::guest {

class GuestProcess {
 public:
  using Variables = std::vector<std::pair<std::string, std::string>>;
  using OnLine = std::function<void(const std::string&)>;

  /// Errc::config: the command cannot be executed. Errc::timeout: it was not executed within 60 s. Errc::io.
  [[nodiscard]] static core::Result<std::unique_ptr<GuestProcess>> start(const std::vector<std::string>& command,
                                                                         const Variables& variables, OnLine on_line);
  /// Kills it, and all processes that it has started. Waits 15 s at most for those that the kernel does not let die.
  ~GuestProcess();
  GuestProcess(const GuestProcess&) = delete;
  GuestProcess& operator=(const GuestProcess&) = delete;

  /// The outer keeper's (keeper.hpp), an ancestor of the program.
  [[nodiscard]] pid_t id() const noexcept { return id_; }
  /// Readable when the program has ended, and its children have been killed; -1: the kernel has no such descriptors.
  [[nodiscard]] int watch() const noexcept { return watch_.get(); }
  /// "ended with exit code 3", "was killed by signal 9 (Killed)"; nothing while it runs after `patience`. Then all that it has printed has
  /// been read, and no more is.
  [[nodiscard]] std::optional<std::string> ending(std::chrono::milliseconds patience);
  /// Whether it has ended, and not by a signal: a shell's exit code of a program that was killed (128 and the signal) counts as one.
  [[nodiscard]] bool ended_by_itself() const;
  /// Its last lines of output, for an error: the newest last.
  [[nodiscard]] std::vector<std::string> last_lines() const;

 private:
  GuestProcess() = default;
  /// How it has ended, unless it runs after `patience`.
  [[nodiscard]] std::optional<siginfo_t> has_ended(std::chrono::milliseconds patience) const;
  void read_output();
  void finish_reading();

  pid_t id_ = -1;
  core::FileDescriptor life_;  // closing it kills the program
  core::FileDescriptor output_;
  core::FileDescriptor stop_;  // an eventfd: ends the reader
  OnLine on_line_;
  core::FileDescriptor watch_;
  mutable std::mutex mutex_;  // guards the lines
  std::deque<std::string> lines_;
  std::thread reader_;
};

}  // namespace troupe::guest
