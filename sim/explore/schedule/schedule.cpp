#include "sim/explore/schedule/schedule.hpp"

#include <algorithm>
#include <array>

#include "sim/explore/schedule/space.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::explore {
namespace {

using namespace std::chrono_literals;

/// A stream of Purpose::schedule that no channel, step or peer message uses.
constexpr std::uint64_t kDrawing = (std::uint64_t{1} << 61) | 1;
/// About as long as twelve steps take.
constexpr Duration kRun = 20ms;

Duration up_to(core::Random& random, Duration longest) {
  // Odd, so that scheduled moments rarely coincide with others.
  return Duration{static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(longest.count()))) | 1};
}

Traffic any_traffic(core::Random& random, const Needs& needs) {
  std::vector<Traffic> all{Traffic::control, Traffic::acknowledgement};
  if (needs.servers) all.insert(all.end(), {Traffic::request, Traffic::request, Traffic::reply, Traffic::reply});
  if (needs.group) all.insert(all.end(), {Traffic::collective, Traffic::collective});
  if (needs.peers) all.insert(all.end(), {Traffic::peer_message, Traffic::peer_message, Traffic::credit});
  return all[random.below(all.size())];
}

/// Conditions of the whole run.
void draw_conditions(Schedule& schedule, const Needs& needs, core::Random& random) {
  auto& all = schedule.faults;
  switch (random.below(8)) {
    case 0: all.push_back(SlowWorker{static_cast<WorkerId>(random.below(schedule.workers)), 20}); break;
    case 1: all.push_back(SlowShard{static_cast<ShardId>(random.below(schedule.servers)), 300}); break;
    case 2: all.push_back(NewestFirst{any_traffic(random, needs), 3ms}); break;
    case 3: all.push_back(Starvation{any_traffic(random, needs), up_to(random, kRun), up_to(random, kRun)}); break;
    case 4: all.push_back(Bursts{1ms + up_to(random, 5ms)}); break;
    default: break;
  }
  for (WorkerId w = 0; w < schedule.workers; ++w)
    if (random.below(2) == 0) all.push_back(SlowWorker{w, random.uniform(0.3, 4)});
}

void draw_losses(Schedule& schedule, const Needs& needs, core::Random& random) {
  if (needs.group || random.below(2) == 0) return;
  const auto losses = 1 + random.below(std::min(schedule.workers, 3U));
  for (std::uint64_t i = 0; i < losses; ++i) {
    Loss loss{.worker = static_cast<WorkerId>(random.below(schedule.workers)),
              .at = up_to(random, kRun),
              .in_exchange = needs.servers && random.below(2) == 0};
    // No strategy has both; a rule could not tell a newcomer's peer messages from its predecessor's.
    if (needs.takes_newcomers() && !needs.peers && random.below(3) > 0) loss.replaced_after = up_to(random, kRun);
    schedule.faults.emplace_back(loss);
  }
}

void draw_faults(Schedule& schedule, const Needs& needs, core::Random& random) {
  auto& all = schedule.faults;
  for (auto pauses = random.below(3); pauses > 0; --pauses) {
    const bool shard = needs.servers && random.below(3) == 0;
    all.push_back(Pause{shard, static_cast<std::uint32_t>(random.below(shard ? schedule.servers : schedule.workers)),
                        up_to(random, kRun), up_to(random, kRun)});
  }
  if (needs.peers && random.below(2) == 0)
    for (auto peer_messages = random.below(4); peer_messages > 0; --peer_messages)
      all.push_back(LostPeerMessage{random.below(20)});
  if (random.below(2) == 0) return;
  const auto faults = 1 + random.below(8);
  const auto early = schedule.workers * schedule.steps;  // about the number of transmissions of most classes
  for (std::uint64_t i = 0; i < faults; ++i) {
    const auto traffic = any_traffic(random, needs);
    if (random.below(2) == 0) {
      all.push_back(LostTransmission{traffic, random.below(early)});
    } else {
      all.push_back(DoubledTransmission{traffic, random.below(early)});
    }
  }
}

/// Drawn last, so that the other draws of a seed stay the same as before.
void draw_bad_pushes(Schedule& schedule, const Needs& needs, core::Random& random) {
  if (!needs.servers || random.below(3) > 0) return;
  for (auto bad = 1 + random.below(3); bad > 0; --bad) {
    const auto shard = static_cast<ShardId>(random.below(schedule.servers));
    schedule.faults.push_back(BadPush{shard, random.below(schedule.workers * schedule.steps)});
  }
}

/// The strategy's needs with these options; none when the options do not fit these members.
Needs needs_of(const Schedule& schedule) {
  return schedule.config()
      .and_then([&](const core::Config& config) { return make(config, schedule.shape()); })
      .map([](const std::unique_ptr<Strategy>& strategy) { return strategy->needs(); })
      .value_or(Needs{});
}

}  // namespace

RunShape Schedule::shape() const {
  return {.workers = workers, .servers = servers, .seed = seed, .optimizer = optimizer};
}

VirtualRunOptions Schedule::run_options() const {
  return {.workers = workers,
          .servers = servers,
          .steps = steps,
          .epochs = epochs,
          .seed = seed,
          .delays = delays,
          .carriage = carriage,
          .optimizer = optimizer,
          .buckets = buckets,
          .peer_slots = peer_slots,
          .faults = faults};
}

core::Result<core::Config> Schedule::config() const {
  core::Schema schema;
  add_options(schema);
  std::vector<std::string> overrides{std::string("strategy.name=").append(strategy)};
  overrides.insert(overrides.end(), options.begin(), options.end());
  return core::Config::parse(schema, "", "explore", overrides);
}

core::Result<Schedule> draw_schedule(const std::string& strategy, std::uint64_t seed) {
  const auto row = find_searched(strategy);
  if (!row) return tl::unexpected(row.error());
  core::Random random{seed, core::Purpose::schedule, kDrawing};
  Schedule schedule{.strategy = strategy, .options = {}, .seed = seed, .faults = {}};
  schedule.workers = static_cast<std::uint32_t>(1 + random.below(8));
  schedule.servers = static_cast<std::uint32_t>(1 + random.below(5));
  schedule.steps = 1 + random.below(12);
  schedule.buckets = static_cast<int>(random.below(4));
  schedule.carriage = random.below(2) == 0 ? Carriage::in_place : Carriage::carried;
  schedule.delays = std::array{Delays::even, Delays::extreme, Delays::extreme, Delays::heavy}[random.below(4)];
  schedule.optimizer = draw_optimizer(**row, random);
  schedule.options = draw_options(**row, schedule.shape(), random);
  const auto needs = needs_of(schedule);
  draw_conditions(schedule, needs, random);
  draw_losses(schedule, needs, random);
  draw_faults(schedule, needs, random);
  if (needs.peers && random.below(2) == 0) schedule.peer_slots = static_cast<std::uint32_t>(1 + random.below(4));
  draw_bad_pushes(schedule, needs, random);
  schedule.epochs = static_cast<std::uint32_t>(1 + random.below(std::min<Step>(schedule.steps, 4)));
  schedule.steps -= schedule.steps % schedule.epochs;
  return schedule;
}

std::string to_text(const Schedule& schedule) {
  std::string text = schedule.strategy;
  for (const auto& option : schedule.options) text.append(" --set ").append(option);
  text += '\n';
  text += std::to_string(schedule.workers) + " workers, " + std::to_string(schedule.servers) + " shards, " +
          std::to_string(schedule.steps) + " steps in " + std::to_string(schedule.epochs) + " epochs, " +
          std::to_string(schedule.buckets) + " buckets, " +
          (schedule.carriage == Carriage::in_place ? "work in place" : "copies travel") + ", " + name(schedule.delays) +
          " delays\n";
  if (schedule.peer_slots < kPeerSlots)
    text += "a worker has room for " + std::to_string(schedule.peer_slots) + " peer messages\n";
  for (const auto& fault : schedule.faults) text.append("- ").append(to_text(fault)).append(1, '\n');
  return text;
}

}  // namespace troupe::explore
