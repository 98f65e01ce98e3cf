/// The disk writer actor, one per run, spawned detached: it waits for the disk, so that the recorder does not (disk.hpp).
#pragma once

#include <functional>

#include <caf/all.hpp>

#include "actors/protocol/messages.hpp"
#include "core/error.hpp"

namespace troupe::actors {

/// Executed on the writer's thread. Answered when it has ended.
struct DiskJob {
  std::function<core::Result<void>()> run;
};
struct DiskJobDone {
  core::Result<void> result;
};

using DiskWriterActor = caf::typed_actor<caf::replies_to<DiskJob>::with<DiskJobDone>, caf::reacts_to<Halt>>;

[[nodiscard]] DiskWriterActor::behavior_type disk_writer(DiskWriterActor::pointer self);

}  // namespace troupe::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DiskJob)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::DiskJobDone)
