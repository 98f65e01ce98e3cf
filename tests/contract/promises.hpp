/// What strategies/host/port.hpp promises to hosts and the rules in them, one line each. Probes (the strategies of this folder)
/// look at each promise from inside and count how often it held; one that does not is a Broken. Thread-safe.
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
  mail_as_sent,
  mail_in_order,
  mail_one_unread,
  mail_slot_kept,
  skip_told_in_time,
};

struct PromiseInfo {
  Promise promise;
  const char* name;
  const char* text;
};
/// All of them, in the order of the enumeration.
[[nodiscard]] std::span<const PromiseInfo> promises();
[[nodiscard]] const char* name(Promise promise);

/// A promise that was not kept: its name, its text, and what was seen.
class Broken : public std::logic_error {
 public:
  Broken(Promise promise, const std::string& seen);
};

/// Looks at a promise: counts it, or throws Broken with what `seen` says.
template <class Seen>
void look(Promise promise, bool holds, const Seen& seen);

/// What has been seen since reset(), by whatever thread.
struct Tally {
  std::map<Promise, std::uint64_t> times;
  std::map<strategies::ShardId, strategies::Version> versions;  // the latest of each shard
  std::uint64_t posted = 0;                                     // letters that had credit
  std::uint64_t read = 0;
  std::uint64_t lost = 0;      // of these, with whoever should have read them or on their way
  std::uint64_t returned = 0;  // requests of a lost worker's successor in its place, the first at each shard
  std::string broken;          // the first; empty: none
};
void reset();
/// The shards of what was seen so far are no more.
void forget_versions();
[[nodiscard]] Tally tally();
/// Of another process: adds what to_text() said there.
[[nodiscard]] std::string to_text(const Tally& tally);
void add(const std::string& text);

/// The time in this world; none: nobody can tell (a replay has none). Until reset().
void tell_time_by(std::function<strategies::Duration()> clock);

// For probes.
[[nodiscard]] std::optional<strategies::Duration> now();
void kept(Promise promise);
void shard_is_at(strategies::ShardId shard, strategies::Version version);
void posted();
void read();
void returned();
void lost_on_purpose(std::uint64_t letters);

template <class Seen>
void look(Promise promise, bool holds, const Seen& seen) {
  if (!holds) throw Broken(promise, seen());
  kept(promise);
}

}  // namespace troupe::contract
