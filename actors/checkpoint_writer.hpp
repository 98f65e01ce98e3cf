/// The checkpoint writer actor, one per run, spawned detached by the recorder: it waits for the disk, so that nobody else does. One
/// checkpoint at a time, in the order of the orders; each is answered when it is durable, or when it is known that it is not.
/// It holds a checkpoint, which is as large as the model and its optimizer state, until it is written.
#pragma once

#include <memory>

#include "actors/handles.hpp"

namespace troupe::actors {

using CheckpointWriterActor =
    caf::typed_actor<replies_to<CheckpointOrder, CheckpointCargo>::with<CheckpointWritten>, reacts_to<Halt>>;

/// `store`: the actor's from now on.
[[nodiscard]] CheckpointWriterActor::behavior_type checkpoint_writer(CheckpointWriterActor::pointer self,
                                                                     std::shared_ptr<nn::CheckpointStore> store);

}  // namespace troupe::actors
