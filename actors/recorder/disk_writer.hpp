/// The disk writer actor, one per run, spawned detached: it waits for the disk, so that nobody else does (disk.hpp).
#pragma once

#include <functional>

#include <caf/all.hpp>

#include "actors/protocol/messages.hpp"
#include "core/error.hpp"

namespace troupe::actors {

/// Carried out on the writer's thread; answered when it has ended.
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
