// A push with unusable numbers changes no centre and no server state in any strategy. It is counted, and answered like any other push,
// so that no worker blocks.
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "core/buffer.hpp"
#include "strategies/host/server_host.hpp"
#include "strategies/host/worker_host.hpp"
#include "tests/strategies/made.hpp"
#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

constexpr std::size_t kFloats = 96;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Floats = std::vector<float>;

/// A shard with numbers, and the host of its server rule.
class Shard final : public ServerPort, public ServerObserver {
 public:
  Shard(const Strategy& strategy, const Membership& members)
      : host_(strategy.server(), *this, {.self = 0, .membership = members}, this) {
    add(kCenter);
    for (std::uint8_t k = 0; k < strategy.needs().server_states; ++k) add(server_state(k));
    for (std::size_t i = 0; i < kFloats; ++i) view(kCenter)[i] = 0.25F * static_cast<float>(i % 7) - 0.5F;
    std::ranges::copy(view(kCenter), view(strategy.needs().model_slot).begin());
  }
  /// Sends one request and records its answer; there is none yet when the server holds the request.
  void push(WorkerId worker, Transfer kind, Step clock, const Floats& vector) {
    const RequestId id = ++last_;
    payloads_[id] = core::Buffer::allocate(memory_, kFloats).value();
    std::ranges::copy(vector, payloads_[id].view().begin());
    host_.request({.id = id, .worker = worker, .exchange = clock << 16, .kind = kind, .clock = clock, .lr = 0.1F});
  }
  [[nodiscard]] core::Span view(Slot slot) { return slots_.at(slot).view(); }
  [[nodiscard]] Floats numbers() {
    Floats all;
    for (auto& [slot, buffer] : slots_) all.insert(all.end(), buffer.view().begin(), buffer.view().end());
    return all;
  }

  Duration now() const override { return {}; }
  bool usable(RequestId payload) const override {
    return core::reference_kernels().all_within(payloads_.at(payload).view(), core::kLargestUsable);
  }
  void run(const KernelCall& call, RequestId payload) override {
    strategies::run(core::reference_kernels(), call,
                    [&](Slot slot) { return slot == kPayload ? payloads_.at(payload).view() : view(slot); });
  }
  void reply(const ShardReply& reply) override {
    const auto payload = payloads_.extract(reply.request);
    answers[reply.worker] = {payload.mapped().view().begin(), payload.mapped().view().end()};
    replies.push_back(reply);
  }
  void set_deadline(DeadlineId, Duration) override {}
  void consumed(const ServerEvent&) override {}
  void dropped(const Request&, const std::string&) override {}
  void refused(const Request& request) override { refusals.push_back(request.worker); }

  std::vector<ShardReply> replies;
  std::map<WorkerId, Floats> answers;
  std::vector<WorkerId> refusals;
  [[nodiscard]] const ServerHost& host() const { return host_; }

 private:
  void add(Slot slot) { slots_[slot] = core::Buffer::allocate(memory_, kFloats).value(); }
  core::HostAllocator memory_;
  std::map<Slot, core::Buffer> slots_;
  std::map<RequestId, core::Buffer> payloads_;
  RequestId last_ = 0;
  ServerHost host_;
};

struct Case {
  std::string options;
  Transfer kind = Transfer::push_pull;
  bool parameters = false;  // pushes parameters; else sums
  std::vector<WorkerId> pushers{0, 1, 2};
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"name = \"easgd\"", Transfer::push_pull, true},
      {"name = \"easgd\"\noverlap = \"skip\"", Transfer::push_pull, true},
      {"name = \"eamsgd\"", Transfer::push_pull, true},
      {"name = \"sync_easgd\"", Transfer::push_pull, true},
      {"name = \"downpour\"", Transfer::push},
      {"name = \"downpour\"\nserver_optimizer = \"momentum\"", Transfer::push},
      {"name = \"downpour\"\nserver_optimizer = \"adagrad\"", Transfer::push},
      {"name = \"downpour\"\nserver_optimizer = \"adam\"", Transfer::push},
      {"name = \"ssp\"", Transfer::push},
      {"name = \"local_sgd\""},
      {"name = \"local_sgd\"\nquorum = 2"},
      {"name = \"diloco\""},
      {"name = \"bsp\"\nbackup = 1"},
      {"name = \"mixed\"\ngroup_size = 1\ninner = \"easgd\"\nema = 0.9", Transfer::push_pull, true},
      {"name = \"mixed\"\ngroup_size = 1\ninner = \"downpour\"", Transfer::push},
      {"name = \"mixed\"\ngroup_size = 1\ninner = \"ssp\"", Transfer::push},
  };
  return all;
}

std::unique_ptr<Strategy> strategy_of(const Case& c) {
  const core::OptimizerStep optimizer{.kind = core::OptimizerKind::nesterov, .lr = 0.1F, .momentum = 0.9F};
  return made("[strategy]\n" + c.options, {.workers = 3, .optimizer = optimizer});
}

Floats good(WorkerId worker) {
  Floats vector(kFloats);
  for (std::size_t i = 0; i < kFloats; ++i) vector[i] = 0.125F * static_cast<float>((i + worker) % 5) - 0.25F;
  return vector;
}

const Membership kThree{1, {0, 1, 2}};

TEST(BadPushes, ChangeNothingAndDelayNoWorker) {
  for (const auto& c : cases()) {
    const auto strategy = strategy_of(c);
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 1e38F, -1e16F}) {
      for (const std::size_t where : {std::size_t{0}, kFloats / 2, kFloats - 1}) {
        SCOPED_TRACE(testing::Message() << c.options << ": " << bad << " at " << where);
        Shard shard(*strategy, kThree);
        for (Step round = 1; round <= 3; ++round) {
          for (const auto worker : c.pushers) {
            auto vector = good(worker);
            if (worker == 1) vector[where] = bad;
            shard.push(worker, c.kind, round, vector);
          }
          ASSERT_TRUE(core::reference_kernels().all_within(shard.numbers(), core::kLargestUsable)) << round;
          ASSERT_EQ(shard.host().open(), 0U) << "somebody waits";
        }
        EXPECT_EQ(shard.replies.size(), 9U);
        EXPECT_EQ(shard.refusals, (std::vector<WorkerId>{1, 1, 1}));
        EXPECT_EQ(shard.host().totals().refused, 3U);
        for (const auto& reply : shard.replies) EXPECT_EQ(reply.refused, reply.worker == 1) << reply.worker;
        EXPECT_TRUE(c.kind == Transfer::push ||
                    core::reference_kernels().all_within(shard.answers.at(1), core::kLargestUsable))
            << "what comes back can be used";
      }
    }
  }
}

/// The numbers equal exactly those of a run in which that worker adds nothing.
TEST(BadPushes, GiveTheNumbersOfARunWithoutThem) {
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.options);
    const auto strategy = strategy_of(c);
    Shard bad(*strategy, kThree), nothing(*strategy, kThree);
    for (Step round = 1; round <= 3; ++round) {
      for (const auto worker : c.pushers) {
        auto vector = good(worker);
        if (worker == 1) vector[5] = std::numeric_limits<float>::quiet_NaN();
        bad.push(worker, c.kind, round, vector);
        if (worker == 1) {
          const auto center = nothing.view(kCenter);
          vector = c.parameters ? Floats(center.begin(), center.end()) : Floats(kFloats, 0);
          if (c.options.find("server_optimizer") != std::string::npos) continue;  // not even its momentum moves
        }
        nothing.push(worker, c.kind, round, vector);
      }
    }
    EXPECT_EQ(bad.numbers(), nothing.numbers());
  }
}

TEST(BadPushes, PullsAreNotChecked) {
  const auto strategy = made("[strategy]\nname = \"downpour\"");
  Shard shard(*strategy, kThree);
  shard.push(0, Transfer::pull, 1, Floats(kFloats, std::numeric_limits<float>::quiet_NaN()));  // memory for the answer
  EXPECT_EQ(shard.host().totals().refused, 0U);
  const auto center = shard.view(kCenter);
  EXPECT_EQ(shard.answers.at(0), Floats(center.begin(), center.end()));
}

/// A worker that pushes its parameters and waits continues from the centre: its x is usable again.
TEST(BadPushes, AnElasticWorkerGoesOnFromTheCentre) {
  const auto strategy = made("[strategy]\nname = \"easgd\"");
  Shard shard(*strategy, kThree);
  const auto center = shard.view(kCenter);
  const Floats before(center.begin(), center.end());
  shard.push(2, Transfer::push_pull, 1, Floats(kFloats, kInfinity));
  EXPECT_EQ(shard.answers.at(2), before);
  EXPECT_EQ(Floats(center.begin(), center.end()), before);
}

TEST(BadPushes, AreCountedAsDroppedWithoutTellingTheRule) {
  NotingPorts ports;
  EventNames events;
  WorkerHost host(std::make_unique<ScriptedWorker>([](const auto& event, const auto&, auto& then) {
                    if (std::holds_alternative<Started>(event)) then.push_pull(7, staged(0)), then.compute();
                  }),
                  {ports, &ports}, {.self = 0, .membership = kThree}, &events);
  host.start(0);
  host.replied({.shard = 0, .exchange = 7, .refused = true});
  host.step_done(0, {});
  EXPECT_EQ(host.totals().refused, 1U);
  EXPECT_EQ(host.totals().dropped, 1U);
  EXPECT_EQ(host.totals().updates, 0U) << "it has no staleness";
  EXPECT_EQ(events.records.at(0).outcome, ExchangeOutcome::dropped);
  for (const auto& event : events.events) {
    const auto* done = std::get_if<ExchangeDone>(&event);
    EXPECT_TRUE(!done || !done->dropped) << "what came back can be worked with";
  }
}

}  // namespace
}  // namespace troupe::strategies
