/// One real worker; the test plays all other members, which answer nothing. One thread beside the worker's own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/worker/worker.hpp"
#include "experiment/exchange_plan.hpp"
#include "experiment/run_spec.hpp"
#include "experiment/state/start_state.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::actors {

class LoneWorker {
 public:
  static constexpr std::chrono::seconds kPatience{60};

  /// Spawns worker 0. `options`: in addition to those of a small run.
  explicit LoneWorker(std::vector<std::string> options)
      : run_(std::move(options)), spec_(*experiment::build_run_spec(*run_.settings(), true)) {
    actor = system_.spawn<caf::detached>(
        worker, WorkerSetup{.workers = spec_.workers,
                            .graph = spec_.graph,
                            .backend = &tests::backend(),
                            .compile = {.batch = spec_.settings->batch(0), .threads = 1, .seed = 1, .arenas = &memory_},
                            .plan = {},
                            .strategy = spec_.strategy,
                            .train = spec_.settings->train,
                            .servers = spec_.servers,
                            .clock = &clock_});
  }
  ~LoneWorker() {
    self->send(actor, Halt{});
    self->wait_for(actor);
  }
  LoneWorker(const LoneWorker&) = delete;
  LoneWorker& operator=(const LoneWorker&) = delete;

  /// Sends the worker the messages of a run's start. All other members are this test.
  void begin(const std::string& exchange = experiment::to_json(experiment::ExchangePlan{})) {
    self->request(actor, kPatience, Prepare{})
        .receive(
            [this](const Prepared& prepared, const ReplicaFacts&) {
              EXPECT_EQ(prepared.error, "");
              arena_floats = prepared.arena_floats;
            },
            failed());
    self->request(actor, kPatience,
                  ReplicaStart{std::make_shared<const StartState>(experiment::start_state(spec_, nullptr))})
        .receive([](const ReplicaLoaded&) {}, failed());
    ActorDirectory actors;
    actors.coordinator = caf::actor_cast<CoordinatorActor>(self);
    actors.recorder = caf::actor_cast<RecorderActor>(self);
    actors.workers.assign(spec_.workers, caf::actor_cast<WorkerActor>(self));
    actors.workers.front() = actor;
    actors.loaders.assign(spec_.workers, caf::actor_cast<LoaderActor>(self));
    actors.servers.assign(spec_.servers, caf::actor_cast<ServerActor>(self));
    actors.worker_sites.assign(spec_.workers, 0);
    actors.exchanger = caf::actor_cast<ExchangerActor>(self);
    actors.exchange = exchange;
    self->send(actor, actors);
  }
  static std::function<void(const caf::error&)> failed() {
    return [](const caf::error& error) { ADD_FAILURE() << caf::to_string(error); };
  }
  [[nodiscard]] core::Allocator& memory() { return memory_; }

 private:
  tests::SmallRun run_;
  experiment::RunSpec spec_;
  core::SteadyClock clock_;
  core::HostAllocator memory_;
  SystemConfig config_;
  caf::actor_system system_{config_};

 public:
  caf::scoped_actor self{system_};
  WorkerActor actor;
  std::uint64_t arena_floats = 0;  // from begin() on
};

}  // namespace troupe::actors
