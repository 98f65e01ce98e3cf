// The cost of an exchange beyond its arithmetic: a worker's request to a server and the answer, through the real server actor with a
// shard of 16 floats, compared with a bare round trip between two threads over condition variables. Two ways, as for a worker: it waits
// for the answer and so executes the idle server itself (actors/requests/helping.hpp; limited by CAF's handling of two messages), or it
// continues computing and the pool executes the server (limited by two wake-ups of a sleeping thread). The cores decide the cost of a
// wake-up, so all pairs are pinned alike: on two cores and on one. Rounds alternate, so that noise disturbs all alike; prints medians.
//
//     bench_messages [ROUNDS] [ROUND_TRIPS]
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/requests/helping.hpp"
#include "actors/run/assembly.hpp"
#include "actors/server/server.hpp"
#include "actors/worker/worker.hpp"
#include "strategies/registry/registry.hpp"

namespace {

using namespace troupe;
using namespace troupe::actors;

double microseconds(core::Duration total, int trips) { return core::seconds(total) / trips * 1e6; }

/// Pins the calling thread and the threads that it starts later.
void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Two threads pass a token back and forth; each waits on its own condition variable.
double condition_variables(int trips, int other_core, const core::Clock& clock) {
  struct Side {
    std::mutex mutex;
    std::condition_variable arrived;
    int tokens = 0;
    void give() {
      {
        const std::lock_guard lock(mutex);
        ++tokens;
      }
      arrived.notify_one();
    }
    void take() {
      std::unique_lock lock(mutex);
      arrived.wait(lock, [this] { return tokens > 0; });
      --tokens;
    }
  } ping, pong;
  std::jthread other([&] {
    pin(other_core);
    for (int i = 0; i < trips; ++i) {
      ping.take();
      pong.give();
    }
  });
  const auto began = clock.now();
  for (int i = 0; i < trips; ++i) {
    ping.give();
    pong.take();
  }
  return microseconds(clock.now() - began, trips);
}

struct ProberState {
  ActorDirectory actors;
  std::shared_ptr<core::Buffer> slice;
  int left = 0;
  std::optional<HelpingUnit> helping;  // empty: the pool executes the server
  core::Duration began{0};
  std::optional<caf::typed_response_promise<SnapshotTaken>> done;
};

/// Sends a worker's messages to the server, nothing else. SnapshotOrder starts a round and is answered after it.
WorkerActor::behavior_type prober(WorkerActor::stateful_pointer<ProberState> self, const core::Clock* clock) {
  const auto ask = [self] {
    const strategies::Request request{.worker = 0, .exchange = static_cast<std::uint64_t>(self->state.left)};
    const auto& server = self->state.actors.servers[0];
    const BorrowedView slice{self->state.slice->view(), self->state.slice};
    if (!self->state.helping) return self->send(server, ShardMessage{0, request}, slice);
    self->state.helping->send(self, server, ShardMessage{0, request}, slice);
    self->state.helping->help();
  };
  return {
      [](const Prepare&) -> caf::result<Prepared, ReplicaFacts> {
        return {Prepared{}, ReplicaFacts{}};
      },
      [self](const ActorDirectory& actors) {
        static core::HostAllocator memory;
        self->state.actors = actors;
        self->state.slice = std::make_shared<core::Buffer>(std::move(*core::Buffer::allocate(memory, 16)));
      },
      [](const BatchReady&, const BorrowedBatch&) {},
      [](const StepOrder&) {},
      [](const StepEnd&) {},
      [](const ReplicaStart&) { return ReplicaLoaded{}; },
      [self, clock, ask](const ShardAnswer&) {
        if (--self->state.left > 0) return ask();
        const auto took = clock->now() - self->state.began;
        self->state.done->deliver(SnapshotTaken{.hash = static_cast<std::uint64_t>(took.count())});
      },
      [](const CollectiveOffer&, const BorrowedView&) {},
      [](const CollectiveDone&) {},
      [](const CollectiveEnded&) {},
      [self, clock, ask](const SnapshotOrder& order, const BorrowedView&) -> caf::result<SnapshotTaken> {
        self->state.left = static_cast<int>(order.id);
        self->state.helping.reset();
        if (order.slot == strategies::kParams) self->state.helping.emplace(self->system());
        self->state.began = clock->now();
        self->state.done = self->make_response_promise<SnapshotTaken>();
        const auto promise = *self->state.done;
        ask();
        return promise;
      },
      [](const PeerMessage&, const BorrowedView&) {},
      [](const PeerCredit&) {},
      [](const UpdatesOrder&) { return Updates{}; },
      [](const SettleOrder&) { return Settled{}; },
      [](const PeerMessageCountsOrder&) { return PeerMessageCounts{}; },
      [](const StateOrder&) { return MemberState{}; },
      [](const MembershipNews&) {},
      [](const DeadlineReached&) {},
      [](const Dismissal&) { return Dismissed{}; },
      [](const TransferNews&) {},
      [](const Tick&) {},
      [self](const Halt&) { self->quit(); },
  };
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// One placement: the worker's side on core 0, the server's on `other_core`.
void measure(const char* placement, int other_core, int rounds, int trips) {
  const core::SteadyClock clock;
  core::HostAllocator memory;
  const auto config = core::Config::parse(
      experiment::schema(), "[model]\nname = \"mlp\"\n[data]\nname = \"glyphs\"\n[strategy]\nname = \"easgd\"\n",
      "bench", {});
  const std::shared_ptr<const strategies::Strategy> strategy = std::move(*strategies::make(*config, {}));

  SystemConfig system_config;
  pin(other_core);
  caf::actor_system system(system_config);  // the pool's threads keep this core
  ServerSetup setup{
      .self = 0,
      .workers = 1,
      .strategy = strategy,
      .kernels = &core::host_kernels(),
      .memory = std::make_shared<ShardMemory>(core::host_kernels(), std::move(*core::Buffer::allocate(memory, 16)),
                                              std::vector<core::Buffer>{}),
      .clock = &clock};
  ActorDirectory actors;
  actors.servers.push_back(system.spawn(server, std::move(setup)));
  pin(0);
  actors.workers.push_back(system.spawn<caf::detached>(prober, &clock));
  caf::scoped_actor self(system);
  self->send(actors.servers[0], actors);
  self->send(actors.workers[0], actors);

  const auto exchanges = [&](strategies::Slot slot) {
    double took = 0;
    self->request(actors.workers[0], std::chrono::minutes(5), SnapshotOrder{static_cast<std::uint64_t>(trips), slot},
                  BorrowedView{})
        .receive(
            [&](const SnapshotTaken& taken) {
              took = microseconds(core::Duration{static_cast<std::int64_t>(taken.hash)}, trips);
            },
            [&](const caf::error& error) { std::fprintf(stderr, "%s\n", system.render(error).c_str()); });
    return took;
  };
  std::vector<double> bare;
  std::vector<double> helped;
  std::vector<double> pooled;
  for (int round = 0; round < rounds; ++round) {
    bare.push_back(condition_variables(trips, other_core, clock));
    helped.push_back(exchanges(strategies::kParams));
    pooled.push_back(exchanges(strategies::kGrads));
  }
  self->send(actors.workers[0], Halt{});
  self->send(actors.servers[0], Halt{});
  const auto print = [&](const char* way, const std::vector<double>& took) {
    std::printf("%-9s  condition variables %6.2f us   exchange, %-17s %6.2f us   ratio %.2f\n", placement, median(bare),
                way, median(took), median(took) / median(bare));
  };
  print("worker waits", helped);
  print("worker computes", pooled);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  const int trips = argc > 2 ? std::atoi(argv[2]) : 20000;
  if (std::thread::hardware_concurrency() > 1) measure("two cores", 1, rounds, trips);
  measure("one core", 0, rounds, trips);
}
