/// Lines that a worker's program prints, on their way to the recorder. Thread-safe: the replica's reader thread calls line().
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "actors/protocol/handles.hpp"
#include "actors/protocol/program_lines.hpp"
#include "actors/protocol/token_bucket.hpp"
#include "actors/protocol/vocabulary.hpp"

namespace troupe::actors {

class ProgramOutput {
 public:
  /// `worker`: its name. `clock` lives until close().
  ProgramOutput(std::string worker, const core::Clock& clock) : worker_name_(std::move(worker)), clock_(clock) {}

  /// Lines go to `recorder` from now on, and those kept before it was known. `worker` is their sender: a message without one ends a
  /// connection.
  void to(const RecorderActor& recorder, const WorkerActor& worker);
  /// The worker ends: later lines, of a program that goes on after its last batch, go to this process's standard error.
  void close();
  /// Beyond kProgramLinesAtOnce and then kProgramLinesPerSecond, lines are left out; a line says how many.
  void line(const std::string& line);
  /// Called about ten times a second: after a second without a refused line it says how many were left out.
  void tell_left_out_if_quiet();

 private:
  void tell(std::string text);
  void tell_left_out();

  const std::string worker_name_;
  const core::Clock& clock_;
  std::mutex mutex_;  // guards the others
  TokenBucket bucket_{kProgramLinesAtOnce, kProgramLinesPerSecond};
  std::uint64_t left_out_ = 0;  // since the last line that was told
  core::Duration dropped_at_{0};
  RecorderActor recorder_;
  WorkerActor worker_;
  bool closed_ = false;
  std::vector<Note> kept_;
};

}  // namespace troupe::actors
