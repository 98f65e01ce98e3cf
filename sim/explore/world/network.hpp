/// Delays of messages and steps in virtual time, and a transport that may drop, repeat and reorder messages, with the protocol that makes
/// it reliable: senders number messages and repeat them until acknowledged, receivers discard duplicates. So a message is delivered
/// exactly once, as ports promise, or never when one of its ends is lost.
///
/// Every duration is a pure function of (seed, member or channel, number of earlier ones), independent of all other events. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/random.hpp"
#include "sim/explore/world/fault.hpp"
#include "sim/explore/world/queue.hpp"
#include "sim/explore/world/words.hpp"

namespace troupe::explore {

/// even: 10 to 20 µs a message, 1 to 2 ms a step. extreme: from 0 to forty steps' time, for messages and steps alike. heavy: 10 to 20 µs
/// a message, 0.1 to 0.2 ms a step, but one in a hundred takes 100 times as long, and one in a thousand 1000 times. constant: 15 µs a
/// message, 1.5 ms a step.
enum class Delays : std::uint8_t { even, extreme, heavy, constant };
[[nodiscard]] const char* name(Delays delays) noexcept;

struct Channel {
  Traffic traffic = Traffic::control;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  auto operator<=>(const Channel&) const = default;
};

/// fifo: in order of sending, per channel. any: messages of a channel may overtake each other.
enum class Order : std::uint8_t { fifo, any };

class Network {
 public:
  using Action = EventQueue::Action;
  /// Applies those of `faults` that concern messages. Messages are repeated only if some fault can lose or double one.
  Network(EventQueue& queue, std::uint64_t seed, Delays delays, const std::vector<Fault>& faults = {});

  /// Calls `deliver` once; or `lost` when an end is lost and no transmission of the message can arrive any more.
  void send(const Channel& channel, Order order, Action deliver, Action lost = {});
  /// The worker of this address is lost: it repeats and acknowledges nothing, and no sender repeats for it.
  void close(std::uint32_t address) { gone_.insert(address); }

  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }      ///< lost transmissions
  [[nodiscard]] std::uint64_t discarded() const noexcept { return discarded_; }  ///< duplicates

 private:
  struct Message {
    Action deliver;
    Action lost;
    int in_the_air = 0;  // transmissions in flight
    bool received = false;
    bool acknowledged = false;
  };
  struct State {
    core::Random random;
    Duration last_arrival{0};
    Order order = Order::any;
    std::uint64_t next = 0;                                    // next number to send
    std::uint64_t expected = 0;                                // fifo: the first number not delivered yet
    std::map<std::uint64_t, std::shared_ptr<Message>> held{};  // fifo: arrived early
  };
  using Place = std::pair<const Channel, State>*;

  [[nodiscard]] Duration delay(const Channel& channel, State& state) const;
  [[nodiscard]] Duration disturbed(const Channel& channel, Duration sent, Duration arrival) const;
  void transmit(Place place, std::uint64_t number, const std::shared_ptr<Message>& message, Duration patience);
  void repeat(Place place, std::uint64_t number, const std::shared_ptr<Message>& message, Duration patience);
  void receive(Place place, std::uint64_t number, const std::shared_ptr<Message>& message);
  void acknowledge(Place place, const std::shared_ptr<Message>& message);
  /// Number of copies of this transmission that arrive.
  [[nodiscard]] int copies(Traffic traffic);
  [[nodiscard]] bool cut_off(const Channel& channel) const;

  EventQueue& queue_;
  std::uint64_t seed_;
  Delays delays_;
  std::vector<Fault> faults_;
  bool lossy_ = false;
  std::map<Channel, State> channels_;  // stable nodes: messages in flight point to them
  std::map<Traffic, std::uint64_t> transmissions_;
  std::set<std::uint32_t> gone_;
  std::uint64_t dropped_ = 0;
  std::uint64_t discarded_ = 0;
};

/// Computing time of worker `worker` for its step `step`, before any slowdown.
[[nodiscard]] Duration compute_time(std::uint64_t seed, Delays delays, WorkerId worker, Step step) noexcept;

}  // namespace troupe::explore
