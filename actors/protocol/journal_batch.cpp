#include "actors/protocol/journal_batch.hpp"

#include "strategies/host/journal_codec.hpp"

namespace troupe::actors {

void JournalBatch::add(strategies::WorkerId worker, const strategies::WorkerEvent& event) {
  add(strategies::encode(worker, event));
}

void JournalBatch::add(strategies::ShardId shard, const strategies::ServerEvent& event) {
  add(strategies::encode(shard, event));
}

void JournalBatch::add(const core::JournalRecord& record) {
  const auto* bytes = reinterpret_cast<const char*>(record.payload.data());
  records_.kinds.push_back(record.kind);
  records_.sizes.push_back(static_cast<std::uint32_t>(record.payload.size()));
  records_.bytes.insert(records_.bytes.end(), bytes, bytes + record.payload.size());
}

JournalRecords JournalBatch::take() { return std::exchange(records_, {}); }

}  // namespace troupe::actors
