/// The promises of strategies/host/port.hpp to hosts and their rules, one line each. Probes (the strategies of this folder) check each
/// promise from inside and count how often it held. A promise that does not hold throws Broken. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "strategies/host/types.hpp"

namespace troupe::contract {

enum class Promise : std::uint8_t {
  started_first,
  steps_as_asked,
  parameters_kept,
  stopped_last,
  requests_in_order,
  pull_sees_push,
  one_answer,
  answer_of_the_shard,
  slice_as_sent,
  slice_is_back,
  slices_apart,
  dropped_unused,
  unusable_refused,
  members_ascend,
  newcomer_announced,
  lost_not_heard,
  deadline_once,
  deadline_not_early,
  collective_of_the_group,
  collective_root,
  collective_equal,
  peer_message_as_sent,
  peer_messages_in_order,
  peer_message_one_unread,
  peer_message_slot_kept,
  skip_told_in_time,
};

struct PromiseInfo {
  Promise promise;
  const char* name;
  const char* text;
};
/// All promises, in the order of the enumeration.
[[nodiscard]] std::span<const PromiseInfo> promises();
[[nodiscard]] const char* name(Promise promise);

/// A broken promise: its name, its text, and the observation.
class Broken : public std::logic_error {
 public:
  Broken(Promise promise, const std::string& seen);
};

/// Checks a promise: counts it, or throws Broken with the text that `seen` returns.
template <class Seen>
void look(Promise promise, bool holds, const Seen& seen);

/// The observations of all threads since reset().
struct Tally {
  std::map<Promise, std::uint64_t> times;
  std::map<strategies::ShardId, strategies::Version> versions;  // the latest of each shard
  std::uint64_t posted = 0;                                     // peer messages that had credit
  std::uint64_t read = 0;
  std::uint64_t lost = 0;      // posted messages lost in transit or with their reader
  std::uint64_t returned = 0;  // first requests, at each shard, of a worker that replaced a lost one
  std::string broken;          // the first broken promise; empty: none
};
void reset();
/// Forgets the versions of the shards seen so far: their run is over.
void forget_versions();
[[nodiscard]] Tally tally();
/// Carries a tally between processes: to_text() there, add() here.
[[nodiscard]] std::string to_text(const Tally& tally);
void add(const std::string& text);

/// Sets the clock of this world until reset(); empty: the world has no time that a probe can read (a replay has none).
void tell_time_by(std::function<strategies::Duration()> clock);

// For probes.
[[nodiscard]] std::optional<strategies::Duration> now();
void kept(Promise promise);
void shard_is_at(strategies::ShardId shard, strategies::Version version);
void posted();
void read();
void returned();
void lost_on_purpose(std::uint64_t peer_messages);

template <class Seen>
void look(Promise promise, bool holds, const Seen& seen) {
  if (!holds) throw Broken(promise, seen());
  kept(promise);
}

}  // namespace troupe::contract
