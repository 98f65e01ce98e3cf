/// Journal records of one member: collected, then sent to the recorder in one message, so that a step does not pay for a message of its
/// own. Owned by one actor; not thread-safe.
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
  /// True long before the batch reaches the limit of a message between processes (FrameGuard::kMessageBytes).
  [[nodiscard]] bool large() const noexcept { return records_.kinds.size() >= 4096 || records_.bytes.size() >= kLarge; }
  /// Returns the collected records; the batch is empty afterwards.
  [[nodiscard]] JournalRecords take();

 private:
  static constexpr std::size_t kLarge = std::size_t{1} << 20;

  JournalRecords records_;
};

}  // namespace troupe::actors
