/// One real coordinator; the test plays all other members. The scheduler and the clock are the test's: the coordinator runs only inside
/// run(), pass() and tell(), and has sent all its messages when they return. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/coordinator/coordinator.hpp"
#include "actors/deployment/site.hpp"
#include "tests/actors/small_run.hpp"

namespace troupe::actors {

/// An actor system whose actors run only when the test calls the scheduler.
class TestedSystemConfig : public SystemConfig {
 public:
  TestedSystemConfig() { set("scheduler.policy", caf::atom("testing")); }
};

class LoneCoordinator {
 public:
  explicit LoneCoordinator(std::vector<std::string> options)
      : run_(std::move(options)), spec_(*experiment::build_run_spec(*run_.settings(), true)) {
    layout_ = probe({&system_, &spec_, &tests::backend(), &memory_, &clock_}, {})->layout;
  }
  ~LoneCoordinator() {
    caf::anon_send_exit(coordinator_, caf::exit_reason::user_shutdown);
    run();
  }
  LoneCoordinator(const LoneCoordinator&) = delete;
  LoneCoordinator& operator=(const LoneCoordinator&) = delete;

  /// Spawns the coordinator, which waits for its directory. `change` edits its setup first.
  template <class Change>
  void spawn(Change change) {
    CoordinatorSetup setup{.settings = spec_.settings,
                           .graph = spec_.graph,
                           .layout = layout_,
                           .needs = spec_.needs,
                           .state_slots = {},
                           .leases = spec_.leases,
                           .started = {},
                           .before = {},
                           .memory = &memory_,
                           .clock = &clock_};
    setup.started.workers = spec_.workers;
    setup.started.servers = spec_.servers;
    setup.started.epochs = static_cast<std::uint32_t>(spec_.settings->run.epochs);
    change(setup);
    coordinator_ = system_.spawn(coordinator, std::move(setup));
  }
  /// As spawn(), and the run begins.
  template <class Change>
  void begin(Change change) {
    spawn(std::move(change));
    ActorDirectory actors;
    actors.coordinator = coordinator_;
    actors.recorder = caf::actor_cast<RecorderActor>(recorder);
    actors.evaluator = caf::actor_cast<EvaluatorActor>(evaluator);
    for (std::uint32_t w = 0; w < spec_.workers; ++w) {
      workers.push_back(std::make_unique<caf::scoped_actor>(system_));
      actors.workers.push_back(caf::actor_cast<WorkerActor>(*workers.back()));
      actors.loaders.push_back(caf::actor_cast<LoaderActor>(*workers.back()));
    }
    for (std::uint32_t s = 0; s < spec_.servers; ++s) {
      servers.push_back(std::make_unique<caf::scoped_actor>(system_));
      actors.servers.push_back(caf::actor_cast<ServerActor>(*servers.back()));
    }
    actors.worker_sites = worker_sites;
    actors.server_sites.assign(spec_.servers, 0);
    tell(actors);
  }
  void begin() {
    begin([](CoordinatorSetup&) {});
  }

  /// Runs all actors until no message is left.
  void run() { scheduler().run(); }
  void pass(std::chrono::seconds time) {
    constexpr std::chrono::seconds kStep{1};
    for (; time.count() > 0; time -= kStep) {
      clock_.advance(kStep);
      scheduler().advance_time(kStep);
      run();
    }
  }
  template <class... Messages>
  void tell(Messages&&... messages) {
    caf::anon_send(coordinator_, std::forward<Messages>(messages)...);
    run();
  }

  /// Passes the next message of this kind in `member`'s mailbox to `handler`. False: there is none.
  template <class Handler>
  static bool heard(caf::scoped_actor& member, Handler handler) {
    bool any = true;
    member->receive(
        std::move(handler), caf::after(std::chrono::seconds(0)) >> [&] { any = false; });
    return any;
  }
  /// As heard(), then runs the coordinator on the answer.
  template <class Handler>
  bool answered(caf::scoped_actor& member, Handler handler) {
    const bool any = heard(member, std::move(handler));
    run();
    return any;
  }

  /// Indices of the batches that worker 0 has been granted since the last call.
  [[nodiscard]] std::vector<std::uint64_t> granted() {
    std::vector<std::uint64_t> leases;
    while (heard(*workers[0], [&](const LeaseGrant& grant) {
      for (const auto& lease : grant.leases) leases.push_back(lease.index);
    })) {
    }
    return leases;
  }
  /// Worker 0 asks for one batch. Returns the indices of the granted batches.
  [[nodiscard]] std::vector<std::uint64_t> ask_for_one() {
    tell(LeaseRequest{0, 1});
    return granted();
  }
  void train(const std::vector<std::uint64_t>& leases) {
    steps_ += leases.size();
    WorkerProgress progress;
    progress.steps = steps_;
    progress.samples = steps_ * static_cast<std::uint64_t>(spec_.settings->batch(0));
    progress.done = leases;
    tell(progress);
  }
  /// Answers the snapshot orders that members receive one after the other. Returns their number.
  int take_snapshots() {
    int taken = 0;
    const auto take = [&](const SnapshotOrder& order, const BorrowedView&) {
      ++taken;
      return SnapshotTaken{.id = order.id};
    };
    for (bool any = true; any;) {
      any = false;
      for (const auto& worker : workers) any = answered(*worker, take) || any;
      for (const auto& server : servers) any = answered(*server, take) || any;
    }
    return taken;
  }
  /// An order to write a checkpoint that the recorder has received; the test answers it with write().
  using Writing = caf::typed_response_promise<CheckpointWritten>;
  [[nodiscard]] std::optional<Writing> order_to_write() {
    std::optional<Writing> writing;
    heard(recorder, [&](const CheckpointOrder& order, const CheckpointPayload&) {
      writing = recorder->make_response_promise<CheckpointWritten>();
      written_step = order.step;
      return *writing;
    });
    return writing;
  }
  void write(std::optional<Writing>& writing, const CheckpointWritten& written = {.path = "there"}) {
    ASSERT_TRUE(writing) << "no checkpoint was to be written";
    writing->deliver(written);
    writing.reset();
    run();
  }
  /// The beginning of a new run: its first checkpoint is taken and written.
  void begin_training() {
    begin();
    take_snapshots();
    auto first = order_to_write();
    write(first);
  }

  [[nodiscard]] caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }
  [[nodiscard]] caf::actor_system& system() { return system_; }
  [[nodiscard]] const CoordinatorActor& actor() const { return coordinator_; }

 private:
  tests::SmallRun run_;
  experiment::RunSpec spec_;
  std::shared_ptr<const nn::Layout> layout_;
  core::ManualClock clock_;
  core::HostAllocator memory_;
  TestedSystemConfig config_;
  caf::actor_system system_{config_};
  CoordinatorActor coordinator_;
  std::uint64_t steps_ = 0;

 public:
  std::vector<std::uint32_t> worker_sites;  // set before begin(); empty: all workers are at site 0
  caf::scoped_actor recorder{system_}, evaluator{system_};
  std::vector<std::unique_ptr<caf::scoped_actor>> workers, servers;  // worker i is also its loader
  std::uint64_t written_step = 0;                                    // of the latest order to write
};

}  // namespace troupe::actors
