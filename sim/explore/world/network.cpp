#include "sim/explore/world/network.hpp"

#include <algorithm>
#include <array>

namespace troupe::explore {
namespace {

using namespace std::chrono_literals;

/// Shorter than many delays of Delays::extreme, so that messages that are merely late are repeated too.
constexpr Duration kPatience = 5ms;

Duration between(core::Random& random, Duration low, Duration high) {
  return low + Duration{static_cast<Duration::rep>(random.uniform() * static_cast<double>((high - low).count()))};
}

Duration times(Duration time, double factor) {
  return Duration{static_cast<Duration::rep>(static_cast<double>(time.count()) * factor)};
}

/// One in a hundred: 100; one in a thousand: 1000; else 1.
double tail(core::Random& random) {
  const double luck = random.uniform();
  return luck < 0.001 ? 1000 : luck < 0.01 ? 100 : 1;
}

/// Streams of messages and steps must differ: bit 63 separates them.
constexpr std::uint64_t kSteps = std::uint64_t{1} << 63;

std::uint64_t stream(const Channel& c) {
  return (static_cast<std::uint64_t>(c.traffic) << 56) | (std::uint64_t{c.from} << 28) | c.to;
}

bool within(Duration time, Duration at, Duration lasts) { return time >= at && time < at + lasts; }

/// True if the channel's sender, or its receiver, is a worker.
bool from_worker(Traffic t) { return t == Traffic::request || t == Traffic::peer_message || t == Traffic::credit; }
bool to_worker(Traffic t) { return t == Traffic::reply || t == Traffic::peer_message || t == Traffic::credit; }

}  // namespace

const char* name(Delays delays) noexcept {
  static constexpr std::array<const char*, 4> kNames{"even", "extreme", "heavy-tailed", "constant"};
  return kNames.at(static_cast<std::size_t>(delays));
}

Network::Network(EventQueue& queue, std::uint64_t seed, Delays delays, const std::vector<Fault>& faults)
    : queue_(queue), seed_(seed), delays_(delays), faults_(faults) {
  for (const auto& i : faults_)
    lossy_ = lossy_ || std::holds_alternative<LostTransmission>(i) || std::holds_alternative<DoubledTransmission>(i);
}

Duration Network::delay(const Channel& channel, State& state) const {
  auto& random = state.random;
  Duration delay = delays_ == Delays::constant ? Duration{15us} : between(random, 10us, 20us);
  if (delays_ == Delays::extreme) {
    const double kind = random.uniform();
    delay = kind < 0.3 ? 0us : kind < 0.8 ? between(random, 0us, 2ms) : between(random, 0us, 60ms);
  }
  if (delays_ == Delays::heavy) delay = times(delay, tail(random));
  for (const auto& fault : faults_) {
    const auto* slow = std::get_if<SlowShard>(&fault);
    const bool meant = slow && ((channel.traffic == Traffic::request && channel.to == slow->shard) ||
                                (channel.traffic == Traffic::reply && channel.from == slow->shard));
    if (meant) delay = times(delay, slow->factor);
  }
  return delay;
}

Duration Network::disturbed(const Channel& channel, Duration sent, Duration arrival) const {
  for (const auto& fault : faults_) {
    if (const auto* starved = std::get_if<Starvation>(&fault);
        starved && starved->traffic == channel.traffic && within(sent, starved->at, starved->lasts))
      arrival += starved->at + starved->lasts - sent;
    if (const auto* newest = std::get_if<NewestFirst>(&fault); newest && newest->traffic == channel.traffic) {
      const auto end = (arrival / newest->window + 1) * newest->window;
      arrival = end + (end - arrival);
    }
    if (const auto* bursts = std::get_if<Bursts>(&fault)) arrival = (arrival / bursts->period + 1) * bursts->period;
  }
  return arrival;
}

void Network::send(const Channel& channel, Order order, Action deliver, Action lost) {
  const auto place = &*channels_.try_emplace(channel, State{{seed_, core::Purpose::schedule, stream(channel)}}).first;
  auto& state = place->second;
  if (!lossy_) {  // nothing to number, repeat or discard
    auto arrival = disturbed(channel, queue_.now(), queue_.now() + delay(channel, state));
    if (order == Order::fifo) arrival = state.last_arrival = std::max(arrival, state.last_arrival);
    return queue_.at(arrival, std::move(deliver));
  }
  state.order = order;
  transmit(place, state.next++, std::make_shared<Message>(Message{std::move(deliver), std::move(lost)}), kPatience);
}

bool Network::cut_off(const Channel& channel) const {
  return (from_worker(channel.traffic) && gone_.contains(channel.from)) ||
         (to_worker(channel.traffic) && gone_.contains(channel.to));
}

int Network::copies(Traffic traffic) {
  const auto nth = transmissions_[traffic]++;
  int copies = 1;
  for (const auto& fault : faults_) {
    const auto* drop = std::get_if<LostTransmission>(&fault);
    if (drop && drop->traffic == traffic && drop->nth == nth) return ++dropped_, 0;
    const auto* twice = std::get_if<DoubledTransmission>(&fault);
    if (twice && twice->traffic == traffic && twice->nth == nth) copies = 2;
  }
  return copies;
}

void Network::transmit(Place place, std::uint64_t number, const std::shared_ptr<Message>& message, Duration patience) {
  const auto& channel = place->first;
  for (int left = copies(channel.traffic); left > 0; --left) {
    ++message->in_the_air;
    queue_.at(disturbed(channel, queue_.now(), queue_.now() + delay(channel, place->second)),
              [this, place, number, message] { receive(place, number, message); });
  }
  queue_.after(patience, [this, place, number, message, patience] { repeat(place, number, message, patience); });
}

/// The sender's timeout. A lost sender repeats nothing; when no transmission of its message is in flight then, the message is lost.
void Network::repeat(Place place, std::uint64_t number, const std::shared_ptr<Message>& message, Duration patience) {
  if (message->acknowledged) return;
  if (!cut_off(place->first)) return transmit(place, number, message, 2 * patience);
  if (message->in_the_air > 0) {
    queue_.after(patience, [this, place, number, message, patience] { repeat(place, number, message, patience); });
  } else if (!message->received && message->lost) {
    message->lost();
  }
}

void Network::receive(Place place, std::uint64_t number, const std::shared_ptr<Message>& message) {
  --message->in_the_air;
  acknowledge(place, message);
  if (message->received) {
    ++discarded_;
    return;
  }
  message->received = true;
  auto& state = place->second;
  if (state.order == Order::any) return message->deliver();
  state.held.emplace(number, message);
  while (!state.held.empty() && state.held.begin()->first == state.expected) {
    const auto next = state.held.extract(state.held.begin());
    ++state.expected;
    next.mapped()->deliver();
  }
}

void Network::acknowledge(Place place, const std::shared_ptr<Message>& message) {
  const auto& channel = place->first;
  if (to_worker(channel.traffic) && gone_.contains(channel.to)) return;
  for (int left = copies(Traffic::acknowledgement); left > 0; --left)
    queue_.after(delay(channel, place->second), [message] { message->acknowledged = true; });
}

Duration compute_time(std::uint64_t seed, Delays delays, WorkerId worker, Step step) noexcept {
  core::Random random{seed, core::Purpose::schedule, kSteps | (std::uint64_t{worker} << 40) | step};
  if (delays == Delays::constant) return 1500us;
  if (delays == Delays::even) return between(random, 1ms, 2ms);
  if (delays == Delays::heavy) return times(between(random, 100us, 200us), tail(random));
  const double kind = random.uniform();
  return kind < 0.2 ? 0us : kind < 0.9 ? between(random, 0us, 3ms) : between(random, 0us, 60ms);
}

}  // namespace troupe::explore
