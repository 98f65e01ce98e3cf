/// How long messages and steps take in virtual time, and a transport that may drop, repeat and reorder what it carries, with what
/// makes it dependable again: senders number their messages and repeat them until acknowledged, receivers discard what they have
/// had. So a message is delivered exactly once, as ports promise, or never when one of its ends is gone.
///
/// Every duration is a pure function of (seed, who, how many before), so it does not depend on what else happens. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/random.hpp"
#include "sim/explore/world/irregularity.hpp"
#include "sim/explore/world/queue.hpp"
#include "sim/explore/world/words.hpp"

namespace troupe::explore {

/// even: 10 to 20 µs a message, 1 to 2 ms a step. extreme: from nothing to forty steps' time, for messages and steps alike.
/// heavy: mostly as even, but one in a hundred takes a hundred times as long, and one in a thousand a thousand times.
/// constant: 15 µs a message, 1.5 ms a step.
enum class Delays : std::uint8_t { even, extreme, heavy, constant };
[[nodiscard]] const char* name(Delays delays) noexcept;

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
  using Action = EventQueue::Action;
  /// What concerns messages among `irregularities` is heeded. Messages are repeated only where some could get lost.
  Network(EventQueue& queue, std::uint64_t seed, Delays delays, const std::vector<Irregularity>& irregularities = {});

  /// `deliver` is called once, or `lost` when nothing of the message can arrive any more because an end of it is gone.
  void send(const Channel& channel, Order order, Action deliver, Action lost = {});
  /// The worker is gone: it repeats and acknowledges nothing any more, and nobody repeats anything for it.
  void close(WorkerId worker) { gone_.insert(worker); }

  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }      ///< transmissions that did not arrive
  [[nodiscard]] std::uint64_t discarded() const noexcept { return discarded_; }  ///< that arrived, but not first

 private:
  struct Message {
    Action deliver;
    Action lost;
    int in_the_air = 0;  // transmissions under way
    bool received = false;
    bool acknowledged = false;
  };
  struct State {
    core::Random random;
    Duration last_arrival{0};
    Order order = Order::any;
    std::uint64_t next = 0;                                    // to send
    std::uint64_t expected = 0;                                // fifo: the first that has not been delivered
    std::map<std::uint64_t, std::shared_ptr<Message>> held{};  // fifo: came before its turn
  };
  using Place = std::pair<const Channel, State>*;

  [[nodiscard]] Duration delay(const Channel& channel, State& state) const;
  [[nodiscard]] Duration disturbed(const Channel& channel, Duration sent, Duration arrival) const;
  void transmit(Place place, std::uint64_t number, const std::shared_ptr<Message>& message, Duration patience);
  void repeat(Place place, std::uint64_t number, const std::shared_ptr<Message>& message, Duration patience);
  void receive(Place place, std::uint64_t number, const std::shared_ptr<Message>& message);
  void acknowledge(Place place, const std::shared_ptr<Message>& message);
  /// How many copies of this transmission arrive.
  [[nodiscard]] int copies(Traffic traffic);
  [[nodiscard]] bool cut_off(const Channel& channel) const;

  EventQueue& queue_;
  std::uint64_t seed_;
  Delays delays_;
  std::vector<Irregularity> irregularities_;
  bool lossy_ = false;
  std::map<Channel, State> channels_;  // nodes stay where they are: messages under way point to theirs
  std::map<Traffic, std::uint64_t> transmissions_;
  std::set<WorkerId> gone_;
  std::uint64_t dropped_ = 0;
  std::uint64_t discarded_ = 0;
};

/// Time that worker `worker` computes at its step `step`, before any slowdown.
[[nodiscard]] Duration compute_time(std::uint64_t seed, Delays delays, WorkerId worker, Step step) noexcept;

}  // namespace troupe::explore
