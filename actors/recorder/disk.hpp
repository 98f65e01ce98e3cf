/// What of a run waits for the disk: jobs that a thread of their own carries out, one after the other, in the order in which they come.
/// The recorder's, on whose thread all is said and heard. A job owns what it writes: it may run after `done` has heard of the timeout.
#pragma once

#include <functional>
#include <memory>

#include "actors/recorder/disk_writer.hpp"
#include "actors/protocol/handles.hpp"
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
  /// `done` hears what `job` came to, or Errc::timeout: the disk has ended no call for kDiskSilence, or hangs at an earlier job.
  void write(Job job, Done done);
  /// To be called often: it is what deadlines pass by. True: the disk has got ahead since the last call, and jobs still wait for it.
  bool look(core::Duration now);
  [[nodiscard]] bool idle() const noexcept { return waits_ == 0; }
  /// The thread ends when it has done what it was given.
  void halt();

 private:
  RecorderActor::pointer self_;
  std::shared_ptr<nn::MeteredFiles> files_;
  DiskWriterActor writer_;
  SilenceDeadlines silences_;
  std::size_t waits_ = 0;    // jobs whose end has not been said
  std::size_t overdue_ = 0;  // whose end was given up, and has not come
  std::uint64_t calls_ = 0;  // of files_, at the last look
};

}  // namespace troupe::actors
