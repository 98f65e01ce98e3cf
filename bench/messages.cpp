// What an exchange costs beyond its arithmetic: a request from a worker to a server and the answer, through the real server
// actor with a shard of 16 floats, beside a bare round trip between two threads over condition variables. Two ways, as a worker
// has them: it waits for the answer and so executes the idle server itself (actors/requests/helping.hpp; limited by CAF's handling of two
// messages), or it goes on computing and the pool executes the server (limited by two wake-ups of a sleeping thread). Where the
// two threads run decides what a wake-up costs, so all pairs are pinned alike: on two cores and on one. Prints the median of the
// rounds; they alternate, so a noisy machine disturbs all alike.
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

#include "actors/run/assembly.hpp"
#include "actors/requests/helping.hpp"
#include "actors/server/server.hpp"
#include "actors/worker/worker.hpp"
#include "strategies/registry/registry.hpp"

namespace {

using namespace troupe;
using namespace troupe::actors;

double microseconds(core::Duration total, int trips) { return core::seconds(total) / trips * 1e6; }

/// Pins the calling thread, and those that it starts from now on.
void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

/// Two threads hand a token to and fro, each waiting on its own condition variable.
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
  Company company;
  std::shared_ptr<core::Buffer> slice;
  int left = 0;
  std::optional<HelpingUnit> helping;  // empty: the pool executes the server
  core::Duration began{0};
  std::optional<caf::typed_response_promise<SnapshotTaken>> done;
};

/// Speaks a worker's language to the server and does nothing else; SnapshotOrder starts a round and is answered after it.
WorkerActor::behavior_type prober(WorkerActor::stateful_pointer<ProberState> self, const core::Clock* clock) {
  const auto ask = [self] {
    const strategies::Request request{.worker = 0, .exchange = static_cast<std::uint64_t>(self->state.left)};
    const auto& server = self->state.company.servers[0];
    const Lent slice{self->state.slice->view(), self->state.slice};
    if (!self->state.helping) return self->send(server, ShardMessage{0, request}, slice);
    self->state.helping->send(self, server, ShardMessage{0, request}, slice);
    self->state.helping->help();
  };
  return {
      [](const Prepare&) -> caf::result<Prepared, ReplicaFacts> {
        return {Prepared{}, ReplicaFacts{}};
      },
      [self](const Company& company) {
        static core::HostAllocator memory;
        self->state.company = company;
        self->state.slice = std::make_shared<core::Buffer>(std::move(*core::Buffer::allocate(memory, 16)));
      },
      [](const BatchReady&, const LentBatch&) {},
      [](const StepOrder&) {},
      [](const StepEnd&) {},
      [](const ReplicaStart&) { return ReplicaLoaded{}; },
      [self, clock, ask](const ShardAnswer&) {
        if (--self->state.left > 0) return ask();
        const auto took = clock->now() - self->state.began;
        self->state.done->deliver(SnapshotTaken{.hash = static_cast<std::uint64_t>(took.count())});
      },
      [](const CollectiveOffer&, const Lent&) {},
      [](const CollectiveDone&) {},
      [](const CollectiveEnded&) {},
      [self, clock, ask](const SnapshotOrder& order, const Lent&) -> caf::result<SnapshotTaken> {
        self->state.left = static_cast<int>(order.id);
        self->state.helping.reset();
        if (order.slot == strategies::kParams) self->state.helping.emplace(self->system());
        self->state.began = clock->now();
        self->state.done = self->make_response_promise<SnapshotTaken>();
        const auto promise = *self->state.done;
        ask();
        return promise;
      },
      [](const PeerLetter&, const Lent&) {},
      [](const PeerCredit&) {},
      [](const UpdatesOrder&) { return Updates{}; },
      [](const SettleOrder&) { return Settled{}; },
      [](const LettersOrder&) { return Letters{}; },
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
  caf::actor_system system(system_config);  // the pool's threads stay there
  ServerSetup setup{
      .self = 0,
      .workers = 1,
      .strategy = strategy,
      .kernels = &core::host_kernels(),
      .memory = std::make_shared<ShardMemory>(core::host_kernels(), std::move(*core::Buffer::allocate(memory, 16)),
                                              std::vector<core::Buffer>{}),
      .clock = &clock};
  Company company;
  company.servers.push_back(system.spawn(server, std::move(setup)));
  pin(0);
  company.workers.push_back(system.spawn<caf::detached>(prober, &clock));
  caf::scoped_actor self(system);
  self->send(company.servers[0], company);
  self->send(company.workers[0], company);

  const auto exchanges = [&](strategies::Slot slot) {
    double took = 0;
    self->request(company.workers[0], std::chrono::minutes(5), SnapshotOrder{static_cast<std::uint64_t>(trips), slot},
                  Lent{})
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
  self->send(company.workers[0], Halt{});
  self->send(company.servers[0], Halt{});
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
