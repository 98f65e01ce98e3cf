// Random runs of the coordinator: whatever happens in whatever order, its port is used as it promises, no batch is lost, and the run ends.
#include <algorithm>
#include <map>
#include <set>

#include "core/random.hpp"
#include "tests/strategies/coordination/recording_port.hpp"

namespace troupe::coordination {
namespace {

using State = Coordinator::State;

constexpr std::uint32_t kWorkers = 3;
constexpr std::int64_t kLeases = 7;

/// Checks every call against what the coordinator promises of it.
class CheckingPort final : public CoordinatorPort {
 public:
  explicit CheckingPort(std::uint64_t seed) : random_(seed, core::Purpose::test, 0) {}

  [[nodiscard]] Duration now() const override { return time; }
  void grant(WorkerId worker, std::span<const data::Lease> leases, bool) override {
    expect_running();
    EXPECT_EQ(coordinator->state(), State::training);
    EXPECT_TRUE(coordinator->members().has(worker));
    for (const auto& lease : leases) held[worker].push_back(lease);
    model = state = false;
  }
  void perform(const Order& given) override {
    expect_running();
    order = given;
    answered = false;
    for (const auto& [worker, leases] : held)
      EXPECT_TRUE(leases.empty() || !coordinator->members().has(worker) || coordinator->in_emergency())
          << "worker " << worker << " still trains at " << name(given.task);
    switch (given.task) {
      case Task::evaluate:
        EXPECT_TRUE(model);
        EXPECT_FALSE(evaluated_at) << "beside another one";
        break;
      case Task::take_state: EXPECT_TRUE(model); break;
      case Task::prepare_newcomer:
        EXPECT_TRUE(on_disk) << "a newcomer loads a checkpoint";
        EXPECT_FALSE(coordinator->members().has(given.worker));
        break;
      case Task::begin_newcomer: EXPECT_TRUE(coordinator->members().has(given.worker)); break;
      case Task::begin_segment: EXPECT_EQ(segment_members, membership.epoch); break;
      case Task::take_members: segment_members = membership.epoch; break;
      default: break;
    }
  }
  void write_checkpoint() override {
    expect_running();
    EXPECT_TRUE(model && state) << "of now";
    EXPECT_FALSE(writing) << "two at once";
    EXPECT_TRUE(!score_is_missing() || interrupted) << "the score of an earlier model is not in it";
    writing = true;
    saved = done_count();
  }
  void rewound(Step steps) override {
    for (auto& [worker, leases] : held) leases.clear();
    rewound_to = steps;
  }
  void membership_changed(const strategies::Membership& now) override {
    EXPECT_GT(now.epoch, membership.epoch);
    EXPECT_EQ(now.workers, coordinator->members().list());
    membership = now;
  }
  void removed(WorkerId worker) override {
    EXPECT_FALSE(coordinator->members().has(worker));
    held[worker].clear();
  }
  void lost(const Loss&) override {}
  void absent(WorkerId) override {}
  void disconnected(WorkerId, WorkerId) override {}
  void find_replacement(WorkerId worker) override { sought.insert(worker); }
  void warn(const std::string&) override {}
  void evaluate_beside() override {
    expect_running();
    EXPECT_TRUE(model);
    EXPECT_FALSE(evaluated_at) << "two at once";
    evaluated_at = done_count();
  }
  void judged(const EvaluationWatch::Verdict&) override {}
  void stops_early(EarlyStop) override { ADD_FAILURE() << "these runs have neither limits nor targets"; }
  void ended(const std::optional<core::Error>& why) override {
    expect_running();
    ++ends;
    error = why;
  }

  /// Answers the order, in one of the ways in which it can be.
  void answer() {
    Answer given{.number = order.number, .newest = {}};
    const auto draw = random_.below(10);
    switch (order.task) {
      case Task::take_model: model = true; break;
      case Task::take_state: state = true; break;
      case Task::prepare_newcomer:
        if (draw < 3) given.outcome = TaskOutcome::refused;
        break;
      case Task::await_evaluation: score(); break;
      default: break;
    }
    const bool may_begin_again = order.task == Task::settle_workers || order.task == Task::await_peer_messages ||
                                 order.task == Task::take_members || order.task == Task::begin_newcomer;
    if (may_begin_again && draw == 0) given.outcome = TaskOutcome::interrupted;
    const auto members = coordinator->members().list();
    if (order.task == Task::find_newest && !members.empty()) {
      given.newest = members.front();
      emergency_steps = given.steps = rounds;
    }
    if (order.task == Task::take_model || order.task == Task::take_state) given.steps = emergency_steps;
    answered = true;
    coordinator->answered(given);
  }
  void score() {
    if (!evaluated_at) return;
    evaluated_at.reset();
    ++scores;
    coordinator->scored({.loss = 1, .accuracy = random_.uniform()});
  }
  [[nodiscard]] bool score_is_missing() const { return evaluated_at && *evaluated_at != done_count(); }
  void finish_writing() {
    writing = false;
    const bool good = random_.below(8) > 0;
    if (good) on_disk = saved;
    good ? coordinator->written({}) : coordinator->written(core::fail(core::Errc::no_space, "full"));
  }
  [[nodiscard]] std::uint64_t done_count() const { return coordinator->leases().done_count(); }
  core::Random& random() { return random_; }

  Coordinator* coordinator = nullptr;
  Duration time{0};
  Order order;
  bool answered = true, writing = false, model = false, state = false;
  std::map<WorkerId, std::vector<data::Lease>> held;
  strategies::Membership membership;
  std::uint64_t segment_members = 0;
  std::optional<std::uint64_t> evaluated_at;  // leases done, of the model that is evaluated beside training
  int scores = 0;
  bool interrupted = false;
  std::uint64_t saved = 0;               // leases done, in the latest checkpoint
  std::optional<std::uint64_t> on_disk;  // the same, on disk
  std::optional<Step> rewound_to;
  Step rounds = 0, emergency_steps = 0;
  std::set<WorkerId> sought;
  int ends = 0;
  std::optional<core::Error> error;

 private:
  void expect_running() const { EXPECT_EQ(ends, 0) << "a call after the end"; }
  core::Random random_;
};

class RandomRun {
 public:
  RandomRun(Kind kind, std::uint64_t seed, bool disturbed) : port_(seed), disturbed_(disturbed) {
    auto& random = port_.random();
    CoordinatorOptions options;
    options.strategy = "a strategy";
    options.needs = needs_of(kind);
    options.workers = kWorkers;
    options.epochs = 3;
    options.keeps_journal = random.below(2) > 0;
    options.checkpoints.steps = static_cast<std::int64_t>(random.below(6));
    options.checkpoints.epochs = static_cast<std::int64_t>(random.below(3));
    options.how_to_go_on = "go on";
    options.evaluates_beside = random.below(2) > 0;
    if (random.below(2) > 0) options.evaluations = {.steps = 1 + static_cast<std::int64_t>(random.below(6))};
    const auto sharing = options.needs.in_step ? data::Sharing::equal : data::Sharing::on_demand;
    leases_ = std::make_shared<data::LeaseScheduler>(*data::LeaseScheduler::create(
        {.epoch_size = kLeases, .epochs = 3, .batches = std::vector<std::int64_t>(kWorkers, 1), .sharing = sharing}));
    coordinator_ = std::make_unique<Coordinator>(port_, options, leases_);
    port_.coordinator = coordinator_.get();
    initial_members_ = {.worker_sites = {1, 2, 3}, .server_sites = {}, .absent = {}};
    if (options.needs.servers) initial_members_.server_sites = {0};
  }

  /// Until the run ends. False: it does not come to an end.
  [[nodiscard]] bool run() {
    coordinator_->begin(initial_members_);
    for (int k = 0; k < 20'000 && !coordinator_->ended(); ++k) {
      event();
      EXPECT_GE(coordinator_->trained_s(), trained_s_);
      trained_s_ = coordinator_->trained_s();
    }
    return coordinator_->ended();
  }
  [[nodiscard]] const CheckingPort& port() const { return port_; }
  [[nodiscard]] const Coordinator& coordinator() const { return *coordinator_; }
  [[nodiscard]] const std::vector<std::uint64_t>& trained() const { return trained_; }
  [[nodiscard]] bool interrupted() const { return port_.interrupted; }

 private:
  void event() {
    auto& random = port_.random();
    port_.time += std::chrono::milliseconds(random.below(50));
    const auto worker = static_cast<WorkerId>(random.below(kWorkers));
    switch (random.below(disturbed_ ? 60 : 40)) {
      case 40: return random.below(8) == 0 && losses_++ < 4 ? coordinator_->lost(worker, "gone") : void();
      case 41: return random.below(20) == 0 ? interrupt() : void();
      case 42: return coordinator_->journal_full();
      case 43: return coordinator_->ticked();
      case 46: return coordinator_->checkpoint_requested();
      case 44:
      case 45: return port_.sought.erase(worker) > 0 ? coordinator_->arrived(worker) : void();
      default: break;
    }
    if (random.below(20) == 0) return port_.score();
    switch (random.below(4)) {
      case 0: return port_.answered ? void() : port_.answer();
      case 1: return port_.writing ? port_.finish_writing() : void();
      case 2: return request(worker);
      default: return finish(worker);
    }
  }
  void interrupt() {
    port_.interrupted = true;
    coordinator_->interrupted();
  }
  /// A worker asks for at most two leases ahead, as a loader does.
  void request(WorkerId worker) {
    if (coordinator_->members().has(worker) && port_.held[worker].size() + coordinator_->wants(worker) < 2)
      coordinator_->requested(worker, 1);
  }
  void finish(WorkerId worker) {
    auto& held = port_.held[worker];
    if (held.empty() || coordinator_->in_emergency()) return;
    const auto lease = held.front();
    held.erase(held.begin());
    trained_.push_back(lease.index);
    port_.rounds = ++steps_[worker];
    coordinator_->progressed(worker, steps_[worker], {&lease.index, 1});
  }

  CheckingPort port_;
  bool disturbed_;
  std::shared_ptr<data::LeaseScheduler> leases_;
  std::unique_ptr<Coordinator> coordinator_;
  Coordinator::InitialMembers initial_members_;
  std::map<WorkerId, Step> steps_;
  std::vector<std::uint64_t> trained_;
  double trained_s_ = 0;
  int losses_ = 0;
};

class RandomRuns : public testing::TestWithParam<Kind> {};

TEST_P(RandomRuns, TrainEveryLeaseOnceWithoutLosses) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun run(GetParam(), seed, false);
    ASSERT_TRUE(run.run());
    auto trained = run.trained();
    std::ranges::sort(trained);
    EXPECT_EQ(std::ranges::adjacent_find(trained), trained.end());
    EXPECT_EQ(trained.size(), run.coordinator().leases().done_count());
    const bool whole =
        run.coordinator().leases().finished() && run.port().on_disk == run.coordinator().leases().done_count();
    EXPECT_EQ(whole, !run.port().error);
    if (run.port().error) {
      EXPECT_EQ(run.port().error->code, core::Errc::no_space);
    }  // the first or last checkpoint
  }
}

TEST_P(RandomRuns, EndWithAReasonAfterAnyEvents) {
  int complete = 0, scores = 0;
  for (std::uint64_t seed = 1000; seed < 1400; ++seed) {
    SCOPED_TRACE(seed);
    RandomRun run(GetParam(), seed, true);
    ASSERT_TRUE(run.run());
    EXPECT_EQ(run.port().ends, 1);
    scores += run.port().scores;
    const auto& error = run.port().error;
    if (error) {
      EXPECT_TRUE(error->code == core::Errc::peer_lost || error->code == core::Errc::no_space ||
                  (error->code == core::Errc::interrupted && run.interrupted()))
          << error->message;
      // Whoever stops by itself leaves a checkpoint of everything.
      if (error->code == core::Errc::interrupted) {
        EXPECT_EQ(run.port().on_disk, run.port().done_count());
        EXPECT_FALSE(run.port().score_is_missing());
      }
      continue;
    }
    ++complete;
    EXPECT_TRUE(run.coordinator().leases().finished());
    EXPECT_EQ(run.port().on_disk, run.port().done_count());
  }
  EXPECT_GT(complete, 20);
  EXPECT_GT(scores, 100) << "beside training";
}

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::on_demand: return "on_demand";
    case Kind::in_step: return "in_step";
    case Kind::shared: return "shared";
    case Kind::peers: return "peers";
  }
  return {};
}

INSTANTIATE_TEST_SUITE_P(, RandomRuns, testing::Values(Kind::on_demand, Kind::in_step, Kind::shared, Kind::peers),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace troupe::coordination
