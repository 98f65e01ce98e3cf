/// Journal records of one half on their way to the recorder: collected where they arise, sent now and then in one message,
/// so that a step does not pay for a message. One thread.
#pragma once

#include "actors/protocol/messages.hpp"
#include "core/journal.hpp"
#include "strategies/host/events.hpp"

namespace troupe::actors {

class JournalBatch {
 public:
  void add(strategies::WorkerId worker, const strategies::WorkerEvent& event);
  void add(strategies::ShardId shard, const strategies::ServerEvent& event);
  void add(const core::JournalRecord& record);

  [[nodiscard]] bool empty() const noexcept { return records_.kinds.empty(); }
  /// Far from what a message between processes may have (WireGuard::kMessageBytes).
  [[nodiscard]] bool large() const noexcept { return records_.kinds.size() >= 4096 || records_.bytes.size() >= kLarge; }
  /// What has been collected; the batch is empty afterwards.
  [[nodiscard]] JournalRecords take();

 private:
  static constexpr std::size_t kLarge = std::size_t{1} << 20;

  JournalRecords records_;
};

}  // namespace troupe::actors
