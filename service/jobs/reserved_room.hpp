/// Room on a disk that is kept for what must be stored also when the disk is full: a file that is given up then. Thread rule: one thread at a
/// time. Nothing fails: where there is no room to keep, there is none to give up.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::service {

class ReservedRoom {
 public:
  static constexpr std::int64_t kBytes = 1 << 20;  // some fifty changes of a job, in a log that grows with each

  /// `path`: of the file; empty: no room is kept.
  explicit ReservedRoom(std::string path) : path_(std::move(path)) {}

  /// Makes the file if it is missing and there is room.
  void keep();
  /// Removes the file. False: it was not there.
  [[nodiscard]] bool give_up();

 private:
  std::string path_;
  bool kept_ = false;
};

}  // namespace troupe::service
