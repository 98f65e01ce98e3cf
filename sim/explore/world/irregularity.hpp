/// What may go wrong in a virtual run, one thing at a time: a schedule is a list of these, and a shorter list is a simpler one.
/// Plain values. Whoever or whatever is not there (a worker of a smaller company, a transmission that never comes) is not disturbed.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "sim/explore/world/words.hpp"

namespace troupe::explore {

enum class Traffic : std::uint8_t { request, reply, collective, mail, credit, control, acknowledgement };
[[nodiscard]] const char* name(Traffic traffic) noexcept;

/// Each of its steps takes `factor` times as long.
struct SlowWorker {
  WorkerId worker = 0;
  double factor = 1;
  bool operator==(const SlowWorker&) const = default;
};
/// Each message to and from it takes `factor` times as long.
struct SlowShard {
  ShardId shard = 0;
  double factor = 1;
  bool operator==(const SlowShard&) const = default;
};
/// A member stands still: what it would do or hear meanwhile it does and hears at the end, in the same order.
struct Pause {
  bool shard = false;  // else a worker
  std::uint32_t member = 0;
  Duration at{0};
  Duration lasts{0};
  bool operator==(const Pause&) const = default;
};
/// A worker is gone at a moment, or as soon then as it has an exchange in flight; and perhaps another one takes its place later.
/// For strategies without collectives: those are started anew by a coordinator.
struct Loss {
  WorkerId worker = 0;
  Duration at{0};
  bool in_exchange = false;
  std::optional<Duration> replaced_after{};
  bool operator==(const Loss&) const = default;
};
/// No message of the class that is sent in [at, at + lasts) arrives before its end.
struct Starvation {
  Traffic traffic = Traffic::request;
  Duration at{0};
  Duration lasts{0};
  bool operator==(const Starvation&) const = default;
};
/// In each stretch of `window`, the latest message of the class arrives first, as far as its channel allows.
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
/// The nth transmission of the class (from 0, repetitions included) does not arrive; the sender repeats it until it is acknowledged.
struct LostTransmission {
  Traffic traffic = Traffic::request;
  std::uint64_t nth = 0;
  bool operator==(const LostTransmission&) const = default;
};
/// It arrives twice, at different times.
struct DoubledTransmission {
  Traffic traffic = Traffic::request;
  std::uint64_t nth = 0;
  bool operator==(const DoubledTransmission&) const = default;
};
/// The nth letter between peers is lost for good, and its sender not told: what a transport without repetition does.
struct LostMail {
  std::uint64_t nth = 0;
  bool operator==(const LostMail&) const = default;
};
/// The nth vector that is pushed to the shard (from 0) has a number in it that cannot be used, as the shard sees it.
struct BadPush {
  ShardId shard = 0;
  std::uint64_t nth = 0;
  bool operator==(const BadPush&) const = default;
};

using Irregularity = std::variant<SlowWorker, SlowShard, Pause, Loss, Starvation, NewestFirst, Bursts, LostTransmission,
                                  DoubledTransmission, LostMail, BadPush>;

/// "worker 2 is lost at 7.250 ms in the middle of an exchange"
[[nodiscard]] std::string to_text(const Irregularity& irregularity);
[[nodiscard]] std::string milliseconds(Duration time);  ///< "7.250 ms"

}  // namespace troupe::explore
