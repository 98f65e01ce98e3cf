/// The record of a virtual run: every consumed event as a journal record with its time, and every exchange's record.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/explore/world/memory.hpp"
#include "sim/explore/world/words.hpp"
#include "strategies/host/journal_codec.hpp"
#include "strategies/host/observer.hpp"

namespace troupe::explore {

class Trace {
 public:
  void consumed(WorkerId worker, const WorkerEvent& event, Duration now);
  void consumed(ShardId shard, const ServerEvent& event, Duration now);
  void exchanged(const ExchangeRecord& record) { exchanges_.push_back(record); }
  void dropped(const Request& request, const std::string& why) { drops_.emplace_back(request, why); }
  void result(core::ConstSpan numbers) { mix(checksum(numbers)); }

  /// Equal for equal runs: events, their order and times, and the final vectors.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] const std::vector<WorkerRecord>& worker_events() const noexcept { return worker_events_; }
  [[nodiscard]] const std::vector<ServerRecord>& server_events() const noexcept { return server_events_; }
  [[nodiscard]] const std::vector<ExchangeRecord>& exchanges() const noexcept { return exchanges_; }
  [[nodiscard]] const std::vector<std::pair<Request, std::string>>& drops() const noexcept { return drops_; }

 private:
  void mix(std::uint64_t value) noexcept;
  void mix(const core::JournalRecord& record, Duration now) noexcept;
  std::uint64_t hash_ = 0xcbf29ce484222325u;
  std::vector<WorkerRecord> worker_events_;
  std::vector<ServerRecord> server_events_;
  std::vector<ExchangeRecord> exchanges_;
  std::vector<std::pair<Request, std::string>> drops_;
};

}  // namespace troupe::explore
