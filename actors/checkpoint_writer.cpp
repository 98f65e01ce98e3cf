#include "actors/checkpoint_writer.hpp"

namespace troupe::actors {

CheckpointWriterActor::behavior_type checkpoint_writer(CheckpointWriterActor::pointer self,
                                                       std::shared_ptr<nn::CheckpointStore> store) {
  return {
      [store = std::move(store)](const CheckpointOrder&, const CheckpointCargo& cargo) -> CheckpointWritten {
        auto path = experiment::save(*store, *cargo.checkpoint);
        if (!path) return {.path = {}, .error = path.error().message, .code = path.error().code};
        return {.path = std::move(*path)};
      },
      [self](const Halt&) { self->quit(); },
  };
}

}  // namespace troupe::actors
