/// Child processes of this executable: several at once, each in a process group of its own, so that a Ctrl-C on the terminal
/// reaches them through their parent only. One thread: the one that lives as long as the children do, as they are told to end
/// when the thread that started them does.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::grid {

class Children {
 public:
  /// How a child ended. A signal's number counts as 128 + signal, as in a shell.
  struct End {
    std::size_t id = 0;
    int exit_code = 0;
    std::string out;
    std::string err;
  };

  /// `executable`: a path. What children print is kept in `scratch`, a directory, until they end.
  Children(std::string executable, std::string scratch);
  /// Kills those that are left.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Errc::io.
  [[nodiscard]] core::Result<void> start(std::size_t id, const std::vector<std::string>& arguments);
  [[nodiscard]] std::size_t count() const noexcept { return running_.size(); }
  /// Those that have ended, after waiting for the first of them; none when `patience` is over or `wake_fd` is readable first.
  /// REQUIRES count() > 0.
  [[nodiscard]] std::vector<End> wait(std::chrono::milliseconds patience, int wake_fd);
  void signal(int number) const;

 private:
  struct Child;
  std::string executable_;
  std::string scratch_;
  std::map<std::size_t, std::unique_ptr<Child>> running_;
};

/// This executable's path. Errc::io.
[[nodiscard]] core::Result<std::string> this_executable();

}  // namespace troupe::grid
