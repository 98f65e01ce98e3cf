#include "actors/recorder/disk.hpp"

#include <utility>

#include <fmt/format.h>

#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"

namespace troupe::actors {

namespace {

constexpr SilenceDeadlines::Source kCalls = 0;

}  // namespace

Disk::Disk(RecorderActor::pointer self, std::shared_ptr<nn::MeteredFiles> files)
    : self_(self), files_(std::move(files)), writer_(self->spawn<caf::detached + caf::linked>(disk_writer)) {}

void Disk::write(Job job, Done done) {
  // A job queued behind one that hangs would only hold memory.
  if (overdue_ > 0) return done(core::fail(core::Errc::timeout, "the disk has not ended an earlier job"));
  ++waits_;
  const auto wait = silences_.begin({kCalls}, kDiskSilence, [this, done] {
    --waits_;
    ++overdue_;
    done(core::fail(core::Errc::timeout,
                    fmt::format("the disk has not ended a call for {:g} s", core::seconds(kDiskSilence))));
  });
  const auto ended = [this, wait, done](const core::Result<void>& result) {
    const bool in_time = silences_.end(wait);
    --(in_time ? waits_ : overdue_);
    if (in_time) done(result);
  };
  // The wait above ends after kDiskSilence; the request ends with the job, or with the writer, which is linked to this actor.
  self_->request(writer_, kNoDeadline, DiskJob{std::move(job)})
      .then([ended](const DiskJobDone& told) { ended(told.result); },
            [this, ended](const caf::error& error) {
              ended(core::fail(core::Errc::internal, "disk: " + self_->system().render(error)));
            });
}

bool Disk::look(core::Duration now) {
  silences_.check(now);
  const std::uint64_t calls = files_->calls();
  if (std::exchange(calls_, calls) == calls) return false;
  silences_.moved(kCalls);
  return waits_ > 0;
}

void Disk::halt() { self_->send(writer_, Halt{}); }

}  // namespace troupe::actors
