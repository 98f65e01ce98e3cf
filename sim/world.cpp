#include "sim/world.hpp"

#include "core/buffer.hpp"
#include "sim/coordinator.hpp"
#include "sim/failures.hpp"
#include "sim/server.hpp"
#include "sim/worker.hpp"

namespace troupe::sim {

using core::slice_of;

World::World(const SimulatedRun& run, const Cluster& cluster)
    : run(run),
      cluster(cluster),
      network(queue, cluster),
      collectives(queue, cluster, run.algorithm),
      steps(run, cluster),
      peers(run.workers) {}
World::~World() = default;

bool World::good(core::Result<void> result) {
  if (!result && !error) error = std::move(result.error());
  return result.has_value();
}

std::uint64_t World::floats(strategies::Shards shards) const {
  if (shards.all()) return run.floats;
  const auto last = slice_of(run.floats, shards.first + shards.count - 1, run.servers);
  return last.offset + last.count - slice_of(run.floats, shards.first, run.servers).offset;
}

std::uint64_t World::bucket_floats(int bucket) const {
  if (bucket < 0) return run.floats;
  const auto buckets = static_cast<std::size_t>(cluster.buckets);
  return slice_of(run.floats, buckets - 1 - static_cast<std::size_t>(bucket), buckets).count;
}

std::uint64_t World::shard_floats(strategies::ShardId shard) const {
  return slice_of(run.floats, shard, run.servers).count;
}

}  // namespace troupe::sim
