/// The faults of a virtual run, one per value: a schedule has a list of them, and a shorter list is a simpler schedule. Plain values. A
/// fault of a member or transmission that does not exist has no effect.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "sim/explore/world/words.hpp"

namespace troupe::explore {

enum class Traffic : std::uint8_t { request, reply, collective, peer_message, credit, control, acknowledgement };
[[nodiscard]] const char* name(Traffic traffic) noexcept;

/// Each step of the worker takes `factor` times as long.
struct SlowWorker {
  WorkerId worker = 0;
  double factor = 1;
  bool operator==(const SlowWorker&) const = default;
};
/// Each message to and from the shard takes `factor` times as long.
struct SlowShard {
  ShardId shard = 0;
  double factor = 1;
  bool operator==(const SlowShard&) const = default;
};
/// A member is paused: it handles its events and messages of this time at the end, in the same order.
struct Pause {
  bool shard = false;  // else a worker
  std::uint32_t member = 0;
  Duration at{0};
  Duration lasts{0};
  bool operator==(const Pause&) const = default;
};
/// A worker is lost at `at`, or at its first exchange in flight after that; perhaps a newcomer replaces it later. Only for
/// strategies without collectives: with collectives the run ends.
struct Loss {
  WorkerId worker = 0;
  Duration at{0};
  bool in_exchange = false;
  std::optional<Duration> replaced_after{};
  bool operator==(const Loss&) const = default;
};
/// No message of the class sent in [at, at + lasts) arrives before the end of that interval.
struct Starvation {
  Traffic traffic = Traffic::request;
  Duration at{0};
  Duration lasts{0};
  bool operator==(const Starvation&) const = default;
};
/// In each interval of `window`, the latest message of the class arrives first, as far as its channel allows.
struct NewestFirst {
  Traffic traffic = Traffic::request;
  Duration window{0};
  bool operator==(const NewestFirst&) const = default;
};
/// All messages arrive at multiples of `period`, many at once.
struct Bursts {
  Duration period{0};
  bool operator==(const Bursts&) const = default;
};
/// The nth transmission of the class (from 0, repetitions included) is lost; the sender repeats it until it is acknowledged.
struct LostTransmission {
  Traffic traffic = Traffic::request;
  std::uint64_t nth = 0;
  bool operator==(const LostTransmission&) const = default;
};
/// The transmission arrives twice, at different times.
struct DoubledTransmission {
  Traffic traffic = Traffic::request;
  std::uint64_t nth = 0;
  bool operator==(const DoubledTransmission&) const = default;
};
/// The nth peer message is lost for good. Its sender gets the credit back and no notice of the loss, as over a transport without
/// repetition.
struct LostPeerMessage {
  std::uint64_t nth = 0;
  bool operator==(const LostPeerMessage&) const = default;
};
/// The nth vector that is pushed to the shard (from 0) has an unusable number, as the shard sees it.
struct BadPush {
  ShardId shard = 0;
  std::uint64_t nth = 0;
  bool operator==(const BadPush&) const = default;
};

using Fault = std::variant<SlowWorker, SlowShard, Pause, Loss, Starvation, NewestFirst, Bursts, LostTransmission,
                           DoubledTransmission, LostPeerMessage, BadPush>;

/// "worker 2 is lost at 7.250 ms in the middle of an exchange"
[[nodiscard]] std::string to_text(const Fault& fault);
[[nodiscard]] std::string milliseconds(Duration time);  ///< "7.250 ms"

}  // namespace troupe::explore
