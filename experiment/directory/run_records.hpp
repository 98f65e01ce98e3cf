/// The journal records that do not belong to a rule: leases and snapshots (docs/formats/journal.md, "Records of the run"). Little-endian;
/// kinds are only added; fixed size except `lost`. Pure functions.
#pragma once

#include <vector>

#include "core/journal.hpp"
#include "data/order/lease.hpp"
#include "strategies/host/types.hpp"

namespace troupe::experiment {

enum class RunRecordKind : std::uint16_t {
  lease_granted = 0x0301,
  snapshot = 0x0302,
  plan = 0x0303,
  end = 0x0304,
  absent = 0x0305,
  lost = 0x0306,
  lease_with_factor = 0x0307,
};

/// The coordinator granted `lease` to `worker`: lease_granted, or lease_with_factor where Lease::lr_factor is not 1.
struct LeaseGranted {
  std::uint32_t worker = 0;
  data::Lease lease;
  bool operator==(const LeaseGranted&) const = default;
};
/// A member's vector was copied at this place in the order of its inputs; `hash` is XXH3-64 of the bytes.
struct SnapshotRecord {
  bool server = false;  // else a worker
  std::uint32_t member = 0;
  strategies::Slot slot;
  std::uint64_t hash = 0;
  bool operator==(const SnapshotRecord&) const = default;
};

/// The choices that determine the backend's numbers: `hash` is XXH3-64 of plan.json without the newline.
struct PlanRecord {
  std::uint64_t hash = 0;
  bool operator==(const PlanRecord&) const = default;
};

/// `worker` was absent at the run's begin. When it joins, the next segment begins.
struct AbsentRecord {
  std::uint32_t worker = 0;
  bool operator==(const AbsentRecord&) const = default;
};

/// `worker` was lost before it finished `leases`. `again`: their samples are granted again under other numbers; else this epoch omits them.
/// Later records of `worker` belong to a new member.
struct LostRecord {
  std::uint32_t worker = 0;
  bool again = false;
  std::vector<data::LeftLease> leases;
  bool operator==(const LostRecord&) const = default;
};

/// The writer closed the segment: it contains every record of every member.
struct EndRecord {};

[[nodiscard]] core::JournalRecord encode(const EndRecord& record);
[[nodiscard]] core::JournalRecord encode(const PlanRecord& record);
[[nodiscard]] core::JournalRecord encode(const AbsentRecord& record);
[[nodiscard]] core::JournalRecord encode(const LostRecord& record);
[[nodiscard]] core::JournalRecord encode(const LeaseGranted& record);
[[nodiscard]] core::JournalRecord encode(const SnapshotRecord& record);

/// Errc::corrupt when kind or length differ from encode()'s.
[[nodiscard]] core::Result<PlanRecord> decode_plan(const core::JournalRecord& record);
[[nodiscard]] core::Result<AbsentRecord> decode_absent(const core::JournalRecord& record);
[[nodiscard]] core::Result<LostRecord> decode_lost(const core::JournalRecord& record);
[[nodiscard]] core::Result<LeaseGranted> decode_lease(const core::JournalRecord& record);
[[nodiscard]] core::Result<SnapshotRecord> decode_snapshot(const core::JournalRecord& record);

}  // namespace troupe::experiment
