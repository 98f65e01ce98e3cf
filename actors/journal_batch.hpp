/// Journal records of one half on their way to the recorder: collected where they arise, sent now and then in one message,
/// so that a step does not pay for a message. One thread.
#pragma once

#include "actors/messages.hpp"
#include "core/journal.hpp"
#include "strategies/host/events.hpp"

namespace troupe::actors {

class JournalBatch {
 public:
  void add(strategies::WorkerId worker, const strategies::WorkerEvent& event);
  void add(strategies::ShardId shard, const strategies::ServerEvent& event);
  void add(const core::JournalRecord& record);

  [[nodiscard]] bool empty() const noexcept { return records_.kinds.empty(); }
  [[nodiscard]] bool large() const noexcept { return records_.kinds.size() >= 4096; }
  /// What has been collected; the batch is empty afterwards.
  [[nodiscard]] JournalRecords take();

 private:
  JournalRecords records_;
};

}  // namespace troupe::actors
