/// Lines that a worker's program prints, on their way to the recorder. Thread-safe: the replica's reader thread calls line().
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "actors/protocol/handles.hpp"
#include "actors/protocol/vocabulary.hpp"

namespace troupe::actors {

class ProgramOutput {
 public:
  /// Lines go to `recorder` from now on, and those kept before it was known. `worker` is their sender: a message without one ends a
  /// connection.
  void to(const RecorderActor& recorder, const WorkerActor& worker);
  /// The worker ends: later lines, of a program that goes on after its last batch, go to this process's standard error.
  void close();
  /// `line` begins with the worker's name. Beyond kMostKept, lines that come before to() are dropped.
  void line(std::string line);

 private:
  static constexpr std::size_t kMostKept = 1000;  // lines before there is a recorder

  std::mutex mutex_;  // guards the others
  RecorderActor recorder_;
  WorkerActor worker_;
  bool closed_ = false;
  std::vector<Note> kept_;
};

}  // namespace troupe::actors
