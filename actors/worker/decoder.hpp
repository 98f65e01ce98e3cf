/// The decoder actor: builds one batch at a time for the loaders of its site. Spawned detached: decoding takes long, and the scheduler's few
/// threads serve the coordinator and the servers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "actors/protocol/handles.hpp"
#include "core/affinity/binding.hpp"
#include "core/clock.hpp"
#include "data/batch_builder.hpp"

namespace troupe::actors {

/// Keeps the thread that decodes off the workers' cores, as long as it has others to itself.
class DecodingThread {
 public:
  /// Without cpus the thread may run on any. `clock` outlives it.
  DecodingThread(core::Cpus cpus, const core::Clock& clock);
  /// Call it in the thread, before each batch.
  void stay_off_workers();

 private:
  core::Cpus cpus_;
  const core::Clock& clock_;
  std::optional<core::ThreadBinding> binding_;
};

/// Never throws: an exception becomes an error with the code of failure_of().
[[nodiscard]] Decoded decode(const data::BatchBuilder& builder, const DecodeOrder& order, const BorrowedBatch& space);

/// The arguments of a site's decoders.
struct DecoderSetup {
  std::shared_ptr<const data::BatchBuilder> builder;
  core::Cpus cpus{};                   // of all of them; empty: any
  const core::Clock* clock = nullptr;  // outlives the actors
};

[[nodiscard]] DecoderActor::behavior_type decoder(DecoderActor::pointer self, const DecoderSetup& setup);

/// The decoders of a site: `threads` of them, or none where each loader decodes for itself, because its data are in memory and one thread is
/// enough.
[[nodiscard]] std::vector<DecoderActor> spawn_decoders(caf::actor_system& system, const DecoderSetup& setup,
                                                       std::int64_t threads);

}  // namespace troupe::actors
