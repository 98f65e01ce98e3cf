/// Disk jobs of a run: a thread of their own executes them in order. Owned by the recorder: all calls and callbacks are on its thread. A
/// job owns what it writes: it may run after `done` has received the timeout.
#pragma once

#include <functional>
#include <memory>

#include "actors/protocol/handles.hpp"
#include "actors/recorder/disk_writer.hpp"
#include "actors/requests/silence.hpp"
#include "nn/checkpoint/metered_files.hpp"

namespace troupe::actors {

class Disk {
 public:
  using Job = std::function<core::Result<void>()>;
  using Done = std::function<void(const core::Result<void>&)>;

  /// Jobs write to `files`. The thread ends with `self`.
  Disk(RecorderActor::pointer self, std::shared_ptr<nn::MeteredFiles> files);

  [[nodiscard]] const std::shared_ptr<nn::MeteredFiles>& files() const noexcept { return files_; }
  /// Calls `done` with the job's result, or with Errc::timeout: the disk has ended no call for kDiskSilence, or an earlier job is overdue.
  void write(Job job, Done done);
  /// Checks the deadlines: call it often. True: the disk has advanced since the last call, and jobs still wait for it.
  bool look(core::Duration now);
  [[nodiscard]] bool idle() const noexcept { return waits_ == 0; }
  /// The thread ends after the jobs that it already has.
  void halt();

 private:
  RecorderActor::pointer self_;
  std::shared_ptr<nn::MeteredFiles> files_;
  DiskWriterActor writer_;
  SilenceDeadlines silences_;
  std::size_t waits_ = 0;    // jobs without a reported result
  std::size_t overdue_ = 0;  // jobs that timed out and have not ended
  std::uint64_t calls_ = 0;  // of files_, at the last look()
};

}  // namespace troupe::actors
