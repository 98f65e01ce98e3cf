/// A worker alone, among members that are the test and answer nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/worker/worker.hpp"
#include "experiment/blueprint.hpp"
#include "experiment/exchange_plan.hpp"
#include "experiment/state/start_state.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::actors {

class LoneWorker {
 public:
  static constexpr std::chrono::seconds kPatience{60};

  /// It is worker 0. `options`: on top of a small run's.
  explicit LoneWorker(std::vector<std::string> options)
      : run_(std::move(options)), plan_(*experiment::draw(*run_.settings(), true)) {
    actor = system_.spawn<caf::detached>(
        worker, WorkerSetup{.workers = plan_.workers,
                            .graph = plan_.graph,
                            .backend = &tests::backend(),
                            .compile = {.batch = plan_.settings->batch(0), .threads = 1, .seed = 1, .arenas = &memory_},
                            .plan = {},
                            .strategy = plan_.strategy,
                            .train = plan_.settings->train,
                            .servers = plan_.servers,
                            .clock = &clock_});
  }
  ~LoneWorker() {
    self->send(actor, Halt{});
    self->wait_for(actor);
  }
  LoneWorker(const LoneWorker&) = delete;
  LoneWorker& operator=(const LoneWorker&) = delete;

  /// Sends it what everyone is told at the start: all others are this test.
  void begin(const std::string& exchange = experiment::to_json(experiment::ExchangePlan{})) {
    self->request(actor, kPatience, Prepare{})
        .receive(
            [this](const Prepared& prepared, const ReplicaFacts&) {
              EXPECT_EQ(prepared.error, "");
              arena_floats = prepared.arena_floats;
            },
            failed());
    self->request(actor, kPatience,
                  ReplicaStart{std::make_shared<const StartState>(experiment::start_state(plan_, nullptr))})
        .receive([](const ReplicaLoaded&) {}, failed());
    Company company;
    company.coordinator = caf::actor_cast<CoordinatorActor>(self);
    company.recorder = caf::actor_cast<RecorderActor>(self);
    company.workers.assign(plan_.workers, caf::actor_cast<WorkerActor>(self));
    company.workers.front() = actor;
    company.loaders.assign(plan_.workers, caf::actor_cast<LoaderActor>(self));
    company.servers.assign(plan_.servers, caf::actor_cast<ServerActor>(self));
    company.worker_sites.assign(plan_.workers, 0);
    company.exchanger = caf::actor_cast<ExchangerActor>(self);
    company.exchange = exchange;
    self->send(actor, company);
  }
  static std::function<void(const caf::error&)> failed() {
    return [](const caf::error& error) { ADD_FAILURE() << caf::to_string(error); };
  }
  [[nodiscard]] core::Allocator& memory() { return memory_; }

 private:
  tests::SmallRun run_;
  experiment::Blueprint plan_;
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
