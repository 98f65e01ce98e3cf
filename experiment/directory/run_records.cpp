#include "experiment/directory/run_records.hpp"

#include <bit>

namespace troupe::experiment {

namespace {

constexpr std::size_t kLeaseBytes = 4 + 8 + 4 + 8 + 8 + 8;
constexpr std::size_t kSnapshotBytes = 1 + 4 + 1 + 1 + 8;
constexpr std::size_t kLostBytes = 4 + 1 + 4;
constexpr std::size_t kLeftLeaseBytes = 8 + 4 + 8 + 8;

class Writer {
 public:
  explicit Writer(RunRecordKind kind) { record_.kind = static_cast<std::uint16_t>(kind); }
  Writer& put(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) record_.payload.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
    return *this;
  }
  core::JournalRecord done() { return std::move(record_); }

 private:
  core::JournalRecord record_;
};

class Reader {
 public:
  explicit Reader(const core::JournalRecord& record) : next_(record.payload.data()) {}
  std::uint64_t get(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(*next_++) << (8 * i);
    return value;
  }

 private:
  const std::byte* next_;
};

bool is(const core::JournalRecord& record, RunRecordKind kind, std::size_t bytes) {
  return record.kind == static_cast<std::uint16_t>(kind) && record.payload.size() == bytes;
}

}  // namespace

core::JournalRecord encode(const EndRecord&) { return Writer(RunRecordKind::end).done(); }

core::JournalRecord encode(const PlanRecord& record) { return Writer(RunRecordKind::plan).put(record.hash, 8).done(); }

core::JournalRecord encode(const AbsentRecord& record) {
  return Writer(RunRecordKind::absent).put(record.worker, 4).done();
}

core::JournalRecord encode(const LostRecord& record) {
  Writer out(RunRecordKind::lost);
  out.put(record.worker, 4).put(record.again, 1).put(record.leases.size(), 4);
  for (const auto& lease : record.leases) {
    out.put(lease.index, 8)
        .put(lease.epoch, 4)
        .put(static_cast<std::uint64_t>(lease.first), 8)
        .put(static_cast<std::uint64_t>(lease.samples), 8);
  }
  return out.done();
}

core::JournalRecord encode(const LeaseGranted& record) {
  const auto& lease = record.lease;
  const bool factor = lease.lr_factor != 1;
  Writer out(factor ? RunRecordKind::lease_with_factor : RunRecordKind::lease_granted);
  out.put(record.worker, 4)
      .put(lease.index, 8)
      .put(lease.epoch, 4)
      .put(static_cast<std::uint64_t>(lease.first), 8)
      .put(static_cast<std::uint64_t>(lease.count), 8)
      .put(std::bit_cast<std::uint64_t>(lease.epoch_position), 8);
  if (factor) out.put(std::bit_cast<std::uint64_t>(lease.lr_factor), 8);
  return out.done();
}

core::JournalRecord encode(const SnapshotRecord& record) {
  return Writer(RunRecordKind::snapshot)
      .put(record.server, 1)
      .put(record.member, 4)
      .put(static_cast<std::uint64_t>(record.slot.kind), 1)
      .put(record.slot.index, 1)
      .put(record.hash, 8)
      .done();
}

core::Result<PlanRecord> decode_plan(const core::JournalRecord& record) {
  if (!is(record, RunRecordKind::plan, 8)) {
    return core::fail(core::Errc::corrupt, "journal: not the record of a plan");
  }
  return PlanRecord{Reader(record).get(8)};
}

core::Result<AbsentRecord> decode_absent(const core::JournalRecord& record) {
  if (!is(record, RunRecordKind::absent, 4))
    return core::fail(core::Errc::corrupt, "journal: not the record of an absence");
  return AbsentRecord{static_cast<std::uint32_t>(Reader(record).get(4))};
}

core::Result<LostRecord> decode_lost(const core::JournalRecord& record) {
  const auto refused = [] { return core::fail(core::Errc::corrupt, "journal: not the record of a lost worker"); };
  if (record.kind != static_cast<std::uint16_t>(RunRecordKind::lost) || record.payload.size() < kLostBytes)
    return refused();
  Reader in(record);
  LostRecord lost;
  lost.worker = static_cast<std::uint32_t>(in.get(4));
  const auto again = in.get(1);
  const auto leases = in.get(4);
  if (again > 1 || record.payload.size() != kLostBytes + leases * kLeftLeaseBytes) return refused();
  lost.again = again == 1;
  for (std::uint64_t k = 0; k < leases; ++k) {
    auto& lease = lost.leases.emplace_back();
    lease.index = in.get(8);
    lease.epoch = static_cast<std::uint32_t>(in.get(4));
    lease.first = static_cast<std::int64_t>(in.get(8));
    lease.samples = static_cast<std::int64_t>(in.get(8));
  }
  return lost;
}

core::Result<LeaseGranted> decode_lease(const core::JournalRecord& record) {
  const bool factor = is(record, RunRecordKind::lease_with_factor, kLeaseBytes + 8);
  if (!factor && !is(record, RunRecordKind::lease_granted, kLeaseBytes))
    return core::fail(core::Errc::corrupt, "journal: not the record of a lease");
  Reader in(record);
  LeaseGranted granted;
  granted.worker = static_cast<std::uint32_t>(in.get(4));
  granted.lease.index = in.get(8);
  granted.lease.epoch = static_cast<std::uint32_t>(in.get(4));
  granted.lease.first = static_cast<std::int64_t>(in.get(8));
  granted.lease.count = static_cast<std::int64_t>(in.get(8));
  granted.lease.epoch_position = std::bit_cast<double>(in.get(8));
  if (factor) granted.lease.lr_factor = std::bit_cast<double>(in.get(8));
  return granted;
}

core::Result<SnapshotRecord> decode_snapshot(const core::JournalRecord& record) {
  if (!is(record, RunRecordKind::snapshot, kSnapshotBytes))
    return core::fail(core::Errc::corrupt, "journal: not the record of a snapshot");
  Reader in(record);
  SnapshotRecord snapshot;
  snapshot.server = in.get(1) != 0;
  snapshot.member = static_cast<std::uint32_t>(in.get(4));
  snapshot.slot = {static_cast<strategies::SlotKind>(in.get(1)), 0};
  snapshot.slot.index = static_cast<std::uint8_t>(in.get(1));
  snapshot.hash = in.get(8);
  if (snapshot.slot.kind > strategies::SlotKind::payload)
    return core::fail(core::Errc::corrupt, "journal: a snapshot of an unknown slot");
  return snapshot;
}

}  // namespace troupe::experiment
