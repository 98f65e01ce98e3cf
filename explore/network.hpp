/// How long messages and steps take in virtual time. Every duration is a pure function of (seed, who, how many before), so it
/// does not depend on what else happens. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "core/random.hpp"
#include "explore/queue.hpp"
#include "explore/words.hpp"

namespace troupe::explore {

/// even: 10 to 20 µs a message, 1 to 2 ms a step. extreme: from nothing to forty steps' time, for messages and steps alike.
enum class Delays : std::uint8_t { even, extreme };

enum class Traffic : std::uint8_t { request, reply, collective, mail, credit, control };
struct Channel {
  Traffic traffic = Traffic::control;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  auto operator<=>(const Channel&) const = default;
};

/// fifo: in the order of sending, within a channel. any: messages of a channel may overtake each other.
enum class Order : std::uint8_t { fifo, any };

class Network {
 public:
  Network(EventQueue& queue, std::uint64_t seed, Delays delays) noexcept
      : queue_(queue), seed_(seed), delays_(delays) {}
  void send(const Channel& channel, Order order, EventQueue::Action deliver);

 private:
  struct State {
    core::Random random;
    Duration last_arrival{0};
  };
  EventQueue& queue_;
  std::uint64_t seed_;
  Delays delays_;
  std::map<Channel, State> channels_;
};

/// Time that worker `worker` computes at its step `step`, before any slowdown.
[[nodiscard]] Duration compute_time(std::uint64_t seed, Delays delays, WorkerId worker, Step step) noexcept;

}  // namespace troupe::explore
