/// Where a replay stops before the end, and the state of the members there. What a member has become does not depend on how far the others
/// are: it depends on the events that it has consumed. So an event or a step of a member is one well-defined state. A step of all workers is one,
/// too, if the run had it.
/// Thread rule: pure functions and values; those that take a Segment belong to its thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "sim/replay/recording.hpp"

namespace troupe::replay {

class Segment;

struct Until {
  enum class Who : std::uint8_t { every_worker, worker, server };
  int segment = 0;  // 0: the newest one that has it
  Who who = Who::every_worker;
  std::uint32_t member = 0;
  bool is_event = false;    // else a step
  std::uint64_t value = 0;  // how many steps have ended, or the event of the member (from 0) that its rule has consumed
};

/// "40": each worker has ended 40 steps, and consumed what came before it computed the next one; "worker1:40": this one; "worker1#31",
/// "server0#12": this member has consumed its event 31, as messages and the service count them; "2/…": in segment 2. Errc::usage.
[[nodiscard]] core::Result<Until> parse_until(std::string_view text);
/// The same text.
[[nodiscard]] std::string to_text(const Until& until);

/// Cuts the recording behind `until`, with the hashes recorded there; then it is not complete. False: the recording does not come so far,
/// and is as it was. Errc::usage: the run has no such member.
[[nodiscard]] core::Result<bool> cut_at(Recording& recording, const Until& until);

struct VectorState {
  std::string slot{};                       // "params"
  std::uint64_t hash = 0;                   // XXH3-64 of its float32 bytes
  std::optional<std::uint64_t> recorded{};  // there; equal, or the replay had failed
};
struct MemberState {
  std::string member{};                 // "worker 1"
  std::size_t events = 0;               // consumed
  std::optional<std::uint64_t> step{};  // of a worker: how many have ended
  std::string event{};                  // the last one, in words
  std::vector<VectorState> vectors{};
};

struct ReachedState {
  std::string run{};
  int segment = 0;
  Until until{};
  std::vector<MemberState> members{};  // that it is about
  std::string center_hash{};           // of the model; empty: the state is of one member
  std::uint64_t hashes = 0;            // compared on the way, all equal
};

/// The members that `until` is about, after Segment::run(). Errc::usage: of all workers, in an asynchronous run that had no such state.
/// Errc::corrupt: a member has not come so far: records of others are missing.
[[nodiscard]] core::Result<ReachedState> state_at(Segment& segment, const Until& until);

/// One line each.
[[nodiscard]] std::string to_json(const ReachedState& state);
[[nodiscard]] std::string to_text(const ReachedState& state);

}  // namespace troupe::replay
