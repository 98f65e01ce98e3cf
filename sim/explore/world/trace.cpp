#include "sim/explore/world/trace.hpp"

namespace troupe::explore {

void Trace::consumed(WorkerId worker, const WorkerEvent& event, Duration now) {
  worker_events_.push_back({worker, event});
  mix(encode(worker, event), now);
}

void Trace::consumed(ShardId shard, const ServerEvent& event, Duration now) {
  server_events_.push_back({shard, event});
  mix(encode(shard, event), now);
}

void Trace::mix(std::uint64_t value) noexcept { hash_ = (hash_ ^ value) * 0x100000001b3u; }

void Trace::mix(const core::JournalRecord& record, Duration now) noexcept {
  mix(static_cast<std::uint64_t>(now.count()));
  mix(record.kind);
  for (const auto byte : record.payload) mix(static_cast<std::uint64_t>(byte));
}

}  // namespace troupe::explore
