/// Encodes the events of rules as records of a core journal, and decodes them. Format: docs/formats/journal.md, "Records of the
/// rules". Little-endian on every machine. Kinds are append-only: a changed layout is a new kind, so records carry no version. Pure
/// functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal.hpp"
#include "strategies/host/events.hpp"

namespace troupe::strategies {

/// Kinds 0x01xx are events of worker rules, 0x02xx of server rules; other modules use other hundreds.
enum class EventKind : std::uint16_t {
  started = 0x0101,
  bucket_ready = 0x0102,
  step_done = 0x0103,
  stopped = 0x0104,
  replied = 0x0105,
  exchange_done = 0x0106,
  peer_message_arrived = 0x0107,
  send_skipped = 0x0108,
  worker_membership = 0x0109,
  worker_deadline = 0x010a,
  request = 0x0201,
  server_membership = 0x0202,
  server_deadline = 0x0203,
};

/// An event and the member whose rule consumed it: one journal holds the events of many.
struct WorkerRecord {
  WorkerId worker = 0;
  WorkerEvent event;
  bool operator==(const WorkerRecord&) const = default;
};
struct ServerRecord {
  ShardId shard = 0;
  ServerEvent event;
  bool operator==(const ServerRecord&) const = default;
};

[[nodiscard]] bool is_worker_event(std::uint16_t kind) noexcept;
[[nodiscard]] bool is_server_event(std::uint16_t kind) noexcept;

[[nodiscard]] core::JournalRecord encode(WorkerId worker, const WorkerEvent& event);
[[nodiscard]] core::JournalRecord encode(ShardId shard, const ServerEvent& event);

/// Errc::corrupt if the kind is not one of these, if bytes are missing or left over, or if a value is one that encode() never
/// writes (an unknown enumerator, a membership that is not ascending).
[[nodiscard]] core::Result<WorkerRecord> decode_worker_event(const core::JournalRecord& record);
[[nodiscard]] core::Result<ServerRecord> decode_server_event(const core::JournalRecord& record);

/// Events as one word of text, for the state() of a rule that keeps events for later. Not part of any file format.
[[nodiscard]] std::string to_text(const std::vector<WorkerEvent>& events);
[[nodiscard]] core::Result<std::vector<WorkerEvent>> events_from_text(std::string_view text);

}  // namespace troupe::strategies
