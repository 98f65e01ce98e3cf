/// The loader actor: turns its worker's leases into batches, ahead of time, as far as it has staging buffers; the worker
/// gives each buffer back. Never more than prefetch + 1 batches exist. Batches reach the worker in the order of its leases,
/// however many decoders work on them. Leases it holds as far ahead as its grants take: on a link that vectors fill a worker does not
/// stand still for the next one.
#pragma once

#include <memory>

#include "actors/protocol/handles.hpp"
#include "core/clock.hpp"
#include "data/batch_builder.hpp"

namespace troupe::actors {

/// What a loader is spawned with.
struct LoaderSetup {
  std::uint32_t worker = 0;
  std::shared_ptr<const data::BatchBuilder> builder;
  std::int64_t batch = 64;
  std::int64_t prefetch = 4;
  std::int64_t decode_threads = 1;     // 1: the loader decodes; more: that many decoders
  const core::Clock* clock = nullptr;  // outlives the actor
};

class LoaderBody;
struct LoaderState {
  std::unique_ptr<LoaderBody> body;
  static inline const char* name = "loader";
  LoaderState();
  ~LoaderState();
};

[[nodiscard]] LoaderActor::behavior_type loader(LoaderActor::stateful_pointer<LoaderState> self, LoaderSetup setup);

}  // namespace troupe::actors
