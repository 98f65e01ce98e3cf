#include "tests/contract/promises.hpp"

#include <array>
#include <mutex>
#include <sstream>
#include <utility>

namespace troupe::contract {
namespace {

constexpr std::array kPromises{
    PromiseInfo{Promise::started_first, "started_first", "Started is the first event of a worker rule, once"},
    PromiseInfo{Promise::steps_as_asked, "steps_as_asked",
                "StepDone and Stopped are of the step that Compute asked for"},
    PromiseInfo{Promise::parameters_kept, "parameters_kept", "nothing touches params while a step is under way"},
    PromiseInfo{Promise::stopped_last, "stopped_last", "after Stopped comes only what is in flight, and news"},
    PromiseInfo{Promise::requests_in_order, "requests_in_order",
                "a shard is told of one worker's requests in the order in which the worker sent them"},
    PromiseInfo{Promise::pull_sees_push, "pull_sees_push",
                "a request takes effect after all that its worker sent to the shard before it"},
    PromiseInfo{Promise::one_answer, "one_answer", "each request is answered once, also a dropped one"},
    PromiseInfo{Promise::answer_of_the_shard, "answer_of_the_shard",
                "an answer's version and clock are the shard's, and its vector is of that version"},
    PromiseInfo{Promise::slice_as_sent, "slice_as_sent",
                "a shard works on the slice as it was sent, also when it has held it; a push leaves it so"},
    PromiseInfo{Promise::slice_is_back, "slice_is_back", "nobody touches a slice after its answer"},
    PromiseInfo{Promise::slices_apart, "slices_apart", "an exchange touches the slices of its own shards only"},
    PromiseInfo{Promise::dropped_unused, "dropped_unused",
                "a push, or push and pull, that is dropped comes back as sent"},
    PromiseInfo{Promise::unusable_refused, "unusable_refused",
                "a shard is told of a push that cannot be used by refused(), and of no other"},
    PromiseInfo{Promise::members_ascend, "members_ascend",
                "membership news comes in order, each once, and names the member"},
    PromiseInfo{Promise::newcomer_announced, "newcomer_announced",
                "a shard hears that a worker is a member before it hears a request of it"},
    PromiseInfo{Promise::lost_not_heard, "lost_not_heard",
                "a shard that has heard that a worker is no member any more hears no request of it"},
    PromiseInfo{Promise::deadline_once, "deadline_once", "a deadline passes once, and none that was not set"},
    PromiseInfo{Promise::deadline_not_early, "deadline_not_early", "a deadline does not pass before its time"},
    PromiseInfo{Promise::collective_of_the_group, "collective_of_the_group",
                "a reduction has the vectors of its group, of this step and id, each once"},
    PromiseInfo{Promise::collective_root, "collective_root",
                "a broadcast brings the root's vector to all of its group"},
    PromiseInfo{Promise::collective_equal, "collective_equal", "a reduction is the same bits in every member"},
    PromiseInfo{Promise::peer_message_as_sent, "peer_message_as_sent",
                "a peer message has the vector as it was when it was sent"},
    PromiseInfo{Promise::peer_messages_in_order, "peer_messages_in_order",
                "peer messages of one worker to another come in order, each once"},
    PromiseInfo{Promise::peer_message_one_unread, "peer_message_one_unread",
                "a worker has one peer message unread at most of each peer"},
    PromiseInfo{Promise::peer_message_slot_kept, "peer_message_slot_kept",
                "a peer message's slot is its own, and stays until the next StepDone or Stopped was handled"},
    PromiseInfo{Promise::skip_told_in_time, "skip_told_in_time",
                "a send without credit is told before the next StepDone"},
};

std::mutex mutex;
Tally all;
std::function<strategies::Duration()> time_in_this_world;

}  // namespace

std::span<const PromiseInfo> promises() { return kPromises; }

const char* name(Promise promise) { return kPromises.at(static_cast<std::size_t>(promise)).name; }

Broken::Broken(Promise promise, const std::string& seen)
    : std::logic_error(std::string("the promise ") + name(promise) + " is broken (" +
                       kPromises.at(static_cast<std::size_t>(promise)).text + "): " + seen) {
  const std::lock_guard lock(mutex);
  if (all.broken.empty()) all.broken = what();
}

void reset() {
  const std::lock_guard lock(mutex);
  all = {};
  time_in_this_world = {};
}

void forget_versions() {
  const std::lock_guard lock(mutex);
  all.versions.clear();
}

Tally tally() {
  const std::lock_guard lock(mutex);
  return all;
}

std::string to_text(const Tally& tally) {
  std::ostringstream text;
  for (const auto& [promise, times] : tally.times) text << "kept " << static_cast<int>(promise) << ' ' << times << '\n';
  for (const auto& [shard, version] : tally.versions) text << "shard " << shard << ' ' << version << '\n';
  text << "peer_messages " << tally.posted << ' ' << tally.read << '\n';
  text << "lost " << tally.lost << ' ' << tally.returned << '\n';
  if (!tally.broken.empty()) text << "broken " << tally.broken << '\n';
  return text.str();
}

void add(const std::string& text) {
  const std::lock_guard lock(mutex);
  std::istringstream lines(text);
  for (std::string word; lines >> word;) {
    std::uint64_t a = 0, b = 0;
    if (word == "broken") {
      std::getline(lines >> std::ws, all.broken);
      continue;
    }
    lines >> a >> b;
    if (word == "kept") all.times[static_cast<Promise>(a)] += b;
    if (word == "shard") all.versions[static_cast<strategies::ShardId>(a)] = b;
    if (word == "peer_messages") all.posted += a, all.read += b;
    if (word == "lost") all.lost += a, all.returned += b;
  }
}

void tell_time_by(std::function<strategies::Duration()> clock) {
  const std::lock_guard lock(mutex);
  time_in_this_world = std::move(clock);
}

std::optional<strategies::Duration> now() {
  const std::lock_guard lock(mutex);
  return time_in_this_world ? std::optional(time_in_this_world()) : std::nullopt;
}

void kept(Promise promise) {
  const std::lock_guard lock(mutex);
  ++all.times[promise];
}

void shard_is_at(strategies::ShardId shard, strategies::Version version) {
  const std::lock_guard lock(mutex);
  all.versions[shard] = version;
}

void posted() {
  const std::lock_guard lock(mutex);
  ++all.posted;
}

void read() {
  const std::lock_guard lock(mutex);
  ++all.read;
}

void returned() {
  const std::lock_guard lock(mutex);
  ++all.returned;
}

void lost_on_purpose(std::uint64_t peer_messages) {
  const std::lock_guard lock(mutex);
  all.lost += peer_messages;
}

}  // namespace troupe::contract
