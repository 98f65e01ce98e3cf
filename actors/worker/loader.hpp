/// The loader actor: builds batches from its worker's leases ahead of time, as long as a staging buffer is free. The worker returns each
/// buffer. At most batches_ahead + 1 batches exist. Batches reach the worker in the order of its leases, with any number of decoders; a decoder
/// has at most one order of each loader, so that all loaders get their share. The loader asks for leases early enough to cover the time that a
/// grant takes: the worker does not wait for leases on a busy link.
#pragma once

#include <memory>
#include <vector>

#include "actors/protocol/handles.hpp"
#include "actors/worker/staging_buffer.hpp"
#include "core/affinity/machine.hpp"
#include "core/clock.hpp"
#include "data/batch_builder.hpp"

namespace troupe::actors {

/// The arguments of a loader.
struct LoaderSetup {
  std::uint32_t worker = 0;
  std::shared_ptr<const data::BatchBuilder> builder;
  std::int64_t batch = 64;
  std::int64_t batches_ahead = 4;      // data::DataConfig::batches_ahead()
  std::vector<DecoderActor> decoders;  // of the site; none: the loader itself decodes
  std::size_t loaders = 1;             // that share them
  core::Cpus cpus{};                   // for a loader that decodes, which is then spawned detached; empty: any
  const core::Clock* clock = nullptr;  // outlives the actor
  BatchForm form{};
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
