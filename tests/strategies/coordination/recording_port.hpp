/// A port that writes down what the coordinator asks for, and the coordinator's runs of the tests. Nothing is answered unless the test says so.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "strategies/coordination/coordinator.hpp"

namespace troupe::coordination {

class RecordingPort final : public CoordinatorPort {
 public:
  [[nodiscard]] Duration now() const override { return time; }
  void grant(WorkerId worker, std::span<const data::Lease> leases, bool) override {
    for (const auto& lease : leases) granted.emplace_back(worker, lease.index);
    calls.push_back(fmt::format("grant {} {}", worker, leases.size()));
  }
  void perform(const Order& order) override {
    EXPECT_GT(order.number, last.number) << "two orders have one number";
    last = order;
    calls.emplace_back(name(order.task));
  }
  void write_checkpoint() override {
    ++checkpoints;
    calls.emplace_back("write");
  }
  void rewound(Step steps) override { calls.push_back(fmt::format("rewound {}", steps)); }
  void membership_changed(const strategies::Membership& now) override {
    EXPECT_GT(now.epoch, membership.epoch);
    membership = now;
    calls.push_back(fmt::format("members {}", fmt::join(now.workers, ",")));
  }
  void removed(WorkerId worker) override { calls.push_back(fmt::format("removed {}", worker)); }
  void lost(const Loss& loss) override {
    losses.push_back(loss);
    calls.push_back(fmt::format("lost {}", loss.worker));
  }
  void absent(WorkerId worker) override { calls.push_back(fmt::format("absent {}", worker)); }
  void disconnected(WorkerId one, WorkerId other) override {
    calls.push_back(fmt::format("disconnected {} {}", one, other));
  }
  void find_replacement(WorkerId worker) override { calls.push_back(fmt::format("replace {}", worker)); }
  void warn(const std::string& text) override {
    warnings.push_back(text);
    calls.emplace_back("warn");
  }
  void evaluate_beside() override { calls.emplace_back("evaluate_beside"); }
  void judged(const EvaluationWatch::Verdict& verdict) override {
    if (keeps_best)
      calls.push_back(fmt::format("judged{}{}", verdict.improved ? " best" : "", verdict.falls ? " falls" : ""));
  }
  void stops_early(EarlyStop why) override { calls.push_back(fmt::format("stops by {}", name(why))); }
  void ended(const std::optional<core::Error>& why) override {
    ++ends;
    error = why;
    calls.emplace_back("ended");
  }

  /// The calls since the last call of this, separated by "; ".
  std::string take_calls() { return fmt::format("{}", fmt::join(std::exchange(calls, {}), "; ")); }

  Duration time{0};
  Order last;
  std::vector<std::string> calls;
  std::vector<std::pair<WorkerId, std::uint64_t>> granted;  // leases, not taken by the test yet
  std::vector<Loss> losses;
  std::vector<std::string> warnings;
  strategies::Membership membership;
  int checkpoints = 0;
  bool keeps_best = false;  // write the verdicts down
  int ends = 0;
  std::optional<core::Error> error;
};

/// What a strategy needs of the coordinator, one for each way in which it behaves.
enum class Kind : std::uint8_t {
  on_demand,  ///< a centre on servers, leases on demand, newcomers at any time (easgd)
  in_step,    ///< a centre on servers, equal shares, newcomers at an epoch's end (ssp)
  shared,     ///< every step is shared: a lost member ends the run (bsp)
  peers,      ///< the model is a weighted mean over the workers (gossip)
};
[[nodiscard]] inline strategies::Needs needs_of(Kind kind) {
  strategies::Needs needs;
  needs.servers = kind == Kind::on_demand || kind == Kind::in_step;
  needs.in_step = kind == Kind::in_step || kind == Kind::shared;
  needs.group = needs.whole_steps = kind == Kind::shared;
  needs.peers = kind == Kind::peers;
  if (kind == Kind::shared) needs.model = strategies::ModelHome::any_worker;
  if (kind == Kind::peers) needs.model = strategies::ModelHome::weighted;
  if (kind == Kind::shared) needs.worker_state = strategies::WorkerState::replicated;
  return needs;
}

/// A run of two epochs of four leases, for two workers at sites 1 and 2; a server, if there is one, is at site 0.
class TestedRun {
 public:
  static constexpr std::uint32_t kWorkers = 2;
  static constexpr std::int64_t kLeases = 4;

  template <class Change>
  TestedRun(Kind kind, Change change) {
    options.strategy = "a strategy";
    options.needs = needs_of(kind);
    options.workers = kWorkers;
    options.epochs = 2;
    options.keeps_journal = true;
    options.how_to_go_on = "go on";
    options.how_to_start_again = "start again";
    change(*this);
    const auto sharing = options.needs.in_step ? data::Sharing::equal : data::Sharing::on_demand;
    leases = std::make_shared<data::LeaseScheduler>(*data::LeaseScheduler::create(
        {.epoch_size = kLeases, .epochs = options.epochs, .batches = {1, 1}, .sharing = sharing}));
    initial_members = {.worker_sites = {1, 2}, .server_sites = {}, .absent = {}};
    if (options.needs.servers) initial_members.server_sites = {0};
    coordinator = std::make_unique<Coordinator>(port, options, leases);
  }
  explicit TestedRun(Kind kind) : TestedRun(kind, [](TestedRun&) {}) {}

  void answer(TaskOutcome outcome = TaskOutcome::done) {
    answer({.number = port.last.number, .outcome = outcome, .newest = {}});
  }
  void answer(const Answer& given) { coordinator->answered(given); }
  void write() { coordinator->written({}); }
  /// Answers tasks and writes checkpoints until `task` is to be performed, or training goes on.
  void until(Task task) {
    while (coordinator->state() != Coordinator::State::training && !coordinator->ended()) {
      if (coordinator->state() == Coordinator::State::awaiting_disk) {
        write();
      } else {
        if (coordinator->task() == task) return;
        answer();
      }
    }
  }
  void to_training() {
    coordinator->begin(initial_members);
    while (coordinator->state() != Coordinator::State::training && !coordinator->ended()) proceed();
    port.take_calls();
  }
  /// Answers the task, or writes the checkpoint.
  void proceed() { coordinator->state() == Coordinator::State::awaiting_disk ? write() : answer(); }
  /// Every worker asks for leases, and ends the granted ones, until training pauses.
  void train() {
    while (coordinator->state() == Coordinator::State::training) step();
  }
  /// Every member asks for one lease and ends it.
  void step() {
    for (const auto worker : coordinator->members().list()) coordinator->requested(worker, 1);
    finish_leases();
  }
  void finish_leases() {
    for (const auto& [worker, lease] : std::exchange(port.granted, {})) {
      ++done;
      if (coordinator->members().has(worker)) coordinator->progressed(worker, ++steps[worker], {&lease, 1});
    }
  }

  RecordingPort port;
  CoordinatorOptions options;
  Coordinator::InitialMembers initial_members;
  std::shared_ptr<data::LeaseScheduler> leases;
  std::unique_ptr<Coordinator> coordinator;
  std::array<Step, kWorkers> steps{};
  std::uint64_t done = 0;
};

}  // namespace troupe::coordination
