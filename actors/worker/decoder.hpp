/// The decoder actor: builds one batch at a time for the loaders of its site. Spawned detached: decoding takes long, and the scheduler's few
/// threads serve the coordinator and the servers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "actors/protocol/handles.hpp"
#include "data/batch_builder.hpp"

namespace troupe::actors {

[[nodiscard]] Decoded decode(const data::BatchBuilder& builder, const DecodeOrder& order, const BorrowedBatch& space);

[[nodiscard]] DecoderActor::behavior_type decoder(DecoderActor::pointer self,
                                                  std::shared_ptr<const data::BatchBuilder> builder);

/// The decoders of a site: `threads` of them, or none where each loader decodes for itself, because its data are in memory and one thread is
/// enough.
[[nodiscard]] std::vector<DecoderActor> spawn_decoders(caf::actor_system& system,
                                                       const std::shared_ptr<const data::BatchBuilder>& builder,
                                                       std::int64_t threads);

}  // namespace troupe::actors
