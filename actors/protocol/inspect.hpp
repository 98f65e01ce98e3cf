/// The serial form of every message: each field, in the order of declaration. A field that inspect() leaves out does not compile
/// (message_fields.hpp). Messages with borrowed memory have no serial form: they are allowed within a process only.
#pragma once

#include <optional>
#include <type_traits>

#include "actors/protocol/inspect_reports.hpp"
#include "actors/protocol/message_types.hpp"
#include "actors/protocol/site_messages.hpp"

namespace troupe::actors {

/// An optional value as one field: CAF 0.17 does not support std::optional.
template <class T>
struct Maybe {
  std::optional<T>& value;
};

template <class Inspector, class T>
typename Inspector::result_type inspect(Inspector& f, Maybe<T>& x) {
  bool given = x.value.has_value();
  T value = x.value.value_or(T{});
  if constexpr (Inspector::reads_state) {
    return f(given, value);
  } else {
    auto result = f(given, value);
    x.value = given ? std::optional<T>(value) : std::nullopt;
    return result;
  }
}

}  // namespace troupe::actors

namespace troupe::core {

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Error& x) {
  return f(caf::meta::type_name("Error"), x.code, x.message);
}

}  // namespace troupe::core

namespace troupe::data {

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Lease& x) {
  return f(caf::meta::type_name("Lease"), x.index, x.epoch, x.first, x.count, x.epoch_position, x.lr_factor);
}

}  // namespace troupe::data

namespace troupe::strategies {

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Slot& x) {
  return f(caf::meta::type_name("Slot"), x.kind, x.index);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Request& x) {
  return f(caf::meta::type_name("Request"), x.id, x.worker, x.exchange, x.kind, x.clock, x.version, x.epoch, x.lr);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, ShardReply& x) {
  return f(caf::meta::type_name("ShardReply"), x.request, x.worker, x.shard, x.exchange, x.version, x.staleness,
           x.min_clock, x.dropped, x.refused, x.queued, x.held, actors::Maybe<WorkerId>{x.last});
}

}  // namespace troupe::strategies

namespace troupe::actors {

/// Messages without fields.
template <class Inspector, class Message>
requires std::is_empty_v<Message>
constexpr typename Inspector::result_type inspect(Inspector& f, Message&) {
  return f(caf::meta::type_name(caf::type_name<Message>::value));
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Halt& x) {
  return f(caf::meta::type_name("Halt"), x.in_order);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Prepared& x) {
  return f(caf::meta::type_name("Prepared"), x.fingerprint, x.arena_floats, x.workspace_bytes, x.error, x.code);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, RunError& x) {
  return f(caf::meta::type_name("RunError"), x.code, x.text, x.site);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, DeadlineReached& x) {
  return f(caf::meta::type_name("DeadlineReached"), x.id);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, LeaseRequest& x) {
  return f(caf::meta::type_name("LeaseRequest"), x.worker, x.count);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, LeaseGrant& x) {
  return f(caf::meta::type_name("LeaseGrant"), x.leases, x.after_pause);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, BatchReady& x) {
  return f(caf::meta::type_name("BatchReady"), x.buffer, x.lease, x.granted_ns, x.replaced);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, BatchReturn& x) {
  return f(caf::meta::type_name("BatchReturn"), x.buffer);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, DecodeOrder& x) {
  return f(caf::meta::type_name("DecodeOrder"), x.buffer, x.lease);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Decoded& x) {
  return f(caf::meta::type_name("Decoded"), x.buffer, x.error, x.code, x.replaced);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, ShardMessage& x) {
  return f(caf::meta::type_name("ShardMessage"), x.shard, x.request, x.rounding, x.sent_ns, x.measure);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, ShardAnswer& x) {
  return f(caf::meta::type_name("ShardAnswer"), x.reply, x.refused, x.squared_distance);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, CollectiveOffer& x) {
  return f(caf::meta::type_name("CollectiveOffer"), x.worker, x.step, x.exchange);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, CollectiveDone& x) {
  return f(caf::meta::type_name("CollectiveDone"), x.worker, x.step, x.exchange);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SnapshotOrder& x) {
  return f(caf::meta::type_name("SnapshotOrder"), x.id, x.slot, x.journalled, x.own_state, x.offset);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, PeerMessage& x) {
  return f(caf::meta::type_name("PeerMessage"), x.from, x.weight);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, PeerCredit& x) {
  return f(caf::meta::type_name("PeerCredit"), x.from);
}
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, PeerMessageCount& x) {
  return f(caf::meta::type_name("PeerMessageCount"), x.peer, x.peer_messages);
}
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, PeerMessageCountsOrder& x) {
  return f(caf::meta::type_name("PeerMessageCountsOrder"), x.expected);
}
template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, PeerMessageCounts& x) {
  return f(caf::meta::type_name("PeerMessageCounts"), x.weight, x.sent, x.received, x.unread, x.slots);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteAddress& x) {
  return f(caf::meta::type_name("SiteAddress"), x.text, x.error, x.code);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteAddresses& x) {
  return f(caf::meta::type_name("SiteAddresses"), x.texts, x.first_step, x.versions);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Vacancy& x) {
  return f(caf::meta::type_name("Vacancy"), x.worker);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Arrived& x) {
  return f(caf::meta::type_name("Arrived"), x.worker);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, AdmissionOrder& x) {
  return f(caf::meta::type_name("AdmissionOrder"), x.worker, x.checkpoint, x.first_step, x.versions);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Admission& x) {
  return f(caf::meta::type_name("Admission"), x.error);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteMoved& x) {
  return f(caf::meta::type_name("SiteMoved"), x.site, x.address);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, MembershipNews& x) {
  return f(caf::meta::type_name("MembershipNews"), x.epoch, x.workers);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteLost& x) {
  return f(caf::meta::type_name("SiteLost"), x.site, x.lost, x.why);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, NodeFacts& x) {
  return f(caf::meta::type_name("NodeFacts"), x.version, x.host, x.shared_memory_domain, x.data_host, x.cores, x.load,
           x.cpu, x.memory_bytes, x.memory_free_bytes, x.resident_bytes, x.gpus, x.up_s, x.endpoints, x.members);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, GpuFacts& x) {
  return f(caf::meta::type_name("GpuFacts"), x.name, x.uuid, x.load, x.memory_bytes, x.memory_used_bytes);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, GpuReport& x) {
  return f(caf::meta::type_name("GpuReport"), x.gpus);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteOrder& x) {
  return f(caf::meta::type_name("SiteOrder"), x.version, x.run, x.config, x.site, x.workers, x.servers, x.plan,
           x.layout, x.most_floats, x.exchange, x.data, x.secret, x.between_hosts, x.resumed, x.sites_here);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteOpened& x) {
  return f(caf::meta::type_name("SiteOpened"), x.address, x.error, x.code);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, MeasureOrder& x) {
  return f(caf::meta::type_name("MeasureOrder"), x.worker_sites, x.site_hosts, x.floats, x.algorithms, x.rounds,
           x.group);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Measured& x) {
  return f(caf::meta::type_name("Measured"), x.seconds, x.error, x.code, x.group);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SiteReady& x) {
  return f(caf::meta::type_name("SiteReady"), x.error, x.code, x.pinning);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, CollectiveOrder& x) {
  return f(caf::meta::type_name("CollectiveOrder"), x.worker, x.step, x.exchange, x.group, x.root, x.mean, x.offset,
           x.rounding);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, CollectiveEnded& x) {
  return f(caf::meta::type_name("CollectiveEnded"), x.step, x.exchange, x.last, x.waited_ns);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, OutgoingPeerMessage& x) {
  return f(caf::meta::type_name("OutgoingPeerMessage"), x.to, x.peer_message);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, TransferNews& x) {
  return f(caf::meta::type_name("TransferNews"), x.sites);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, OutgoingCredit& x) {
  return f(caf::meta::type_name("OutgoingCredit"), x.to, x.credit);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, MemberSnapshot& x) {
  return f(caf::meta::type_name("MemberSnapshot"), x.server, x.member, x.order);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, MemberState& x) {
  return f(caf::meta::type_name("MemberState"), x.state, x.version, x.peer_messages, x.peer_message_slots, x.steps);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SnapshotTaken& x) {
  return f(caf::meta::type_name("SnapshotTaken"), x.id, x.hash, x.version, x.weight, x.optimizer_steps, x.bytes);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Updates& x) {
  return f(caf::meta::type_name("Updates"), x.steps);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, EvaluateOrder& x) {
  return f(caf::meta::type_name("EvaluateOrder"), x.id, x.validation, x.test);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, SplitScore& x) {
  return f(caf::meta::type_name("SplitScore"), x.loss, x.top1, x.top5, x.samples, x.replaced);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Evaluated& x) {
  return f(caf::meta::type_name("Evaluated"), x.validation, x.test, x.error, x.code);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, CheckpointOrder& x) {
  return f(caf::meta::type_name("CheckpointOrder"), x.step, x.best);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, CheckpointWritten& x) {
  return f(caf::meta::type_name("CheckpointWritten"), x.path, x.error, x.code);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, JournalRecords& x) {
  return f(caf::meta::type_name("JournalRecords"), x.kinds, x.sizes, x.bytes);
}

template <class Inspector>
constexpr typename Inspector::result_type inspect(Inspector& f, Finished& x) {
  return f(caf::meta::type_name("Finished"), x.error);
}

}  // namespace troupe::actors
