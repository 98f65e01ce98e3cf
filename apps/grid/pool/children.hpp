/// Child processes of this executable. Several run at once, each in its own process group, so a Ctrl-C on the terminal reaches them only
/// through their parent. One thread, which must live as long as the children: the kernel signals them to end when the thread that started
/// them ends.
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
  /// How a child ended. A signal counts as 128 + its number, as in a shell.
  struct End {
    std::size_t id = 0;
    int exit_code = 0;
    std::string out;
    std::string err;
  };

  /// `executable`: a path. `scratch`: a directory for the children's output until they end.
  Children(std::string executable, std::string scratch);
  /// Kills the running children.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Errc::io.
  [[nodiscard]] core::Result<void> start(std::size_t id, const std::vector<std::string>& arguments);
  [[nodiscard]] std::size_t count() const noexcept { return running_.size(); }
  /// Waits for the first child to end, and returns all that have ended; none when `patience` is over or `wake_fd` is readable first.
  /// REQUIRES count() > 0.
  [[nodiscard]] std::vector<End> wait(std::chrono::milliseconds patience, int wake_fd);
  void signal(int number) const;
  /// The end of a running child's standard error, a few lines of it.
  [[nodiscard]] std::string latest_error_output(std::size_t id) const;

 private:
  struct Child;
  std::string executable_;
  std::string scratch_;
  std::map<std::size_t, std::unique_ptr<Child>> running_;
};

/// This executable's path. Errc::io.
[[nodiscard]] core::Result<std::string> this_executable();

}  // namespace troupe::grid
