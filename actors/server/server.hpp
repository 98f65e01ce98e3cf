/// The server actor: pooled, it owns one shard of the centre and is the port of a ServerHost. In one process it works in place on the
/// slices that workers lend: one pass, no copy. A worker that waits for it executes it (actors/requests/helping.hpp). Kernels do the
/// arithmetic.
#pragma once

#include <memory>

#include "actors/protocol/handles.hpp"
#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "core/kernels.hpp"
#include "strategies/strategy.hpp"

namespace troupe::actors {

/// What a server is spawned with.
struct ServerSetup {
  strategies::ShardId self = 0;
  std::uint32_t workers = 1;
  std::shared_ptr<const strategies::Strategy> strategy;
  const core::Kernels* kernels = nullptr;  // of the arenas' memory space
  core::Allocator* scratch = nullptr;      // of this memory, to measure on a device; null: it does not measure there
  std::shared_ptr<ShardMemory> memory;     // the shard, filled, and the server's states, zero or restored
  strategies::Version version = 0;         // of the shard at the start
  bool journal = true;                     // keep one
  std::int64_t max_bad_updates = 10;       // of one worker, in a row
  const core::Clock* clock = nullptr;      // outlives the actor
};

class ServerBody;
struct ServerState {
  std::unique_ptr<ServerBody> body;
  static inline const char* name = "server";
  ServerState();
  ~ServerState();
};

[[nodiscard]] ServerActor::behavior_type server(ServerActor::stateful_pointer<ServerState> self, ServerSetup setup);

}  // namespace troupe::actors
