/// Gossip: the sum of weights stays 1, whatever is skipped, in transit or lost; the numbers follow the paper's two lines.
#include "strategies/gossip.hpp"

#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/strategies/recording.hpp"
#include "tests/strategies/variants.hpp"

namespace troupe::strategies {
namespace {

using explore::Delays;
using explore::VirtualRun;
using explore::VirtualRunOptions;
using Vector = std::vector<double>;

std::unique_ptr<Strategy> with_p(double p, std::uint32_t workers) {
  return made("[strategy]\nname = \"gossip\"\np = " + std::to_string(p), {.workers = workers});
}

TEST(Gossip, WeightsAddUpToOneAtEveryEvent) {
  std::uint64_t skipped = 0;
  std::uint64_t events = 0;
  double lost = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    auto shape = random_shape({}, seed);
    shape.steps = 30;
    if (seed % 3 == 0) shape.peer_message_loss = 0.2;
    if (seed % 4 == 0) shape.losses = {{0, std::chrono::milliseconds(5)}};
    if (seed % 8 == 0 && shape.workers > 1) shape.losses.push_back({1, std::chrono::milliseconds(7)});
    double start = 0;
    shape.after_event = [&](const VirtualRun& run) {
      if (events++ == 0 || start == 0) start = run.weight();
      ASSERT_EQ(run.weight(), start) << "seed " << seed << ": multiples of 2⁻⁵² add up without rounding";
      ASSERT_NEAR(run.weight(), 1, 1e-12);
    };
    VirtualRun run(*with_p(seed % 2 ? 1 : 0.4, shape.workers), shape);
    run.execute();
    for (WorkerId w = 0; w < shape.workers; ++w) {
      EXPECT_GT(run.worker(w).host().rule().weight(), 0) << "everyone has a share of the model";
      skipped += run.worker(w).host().totals().skipped;
    }
    lost += run.lost_weight();
    if (shape.losses.empty() && shape.peer_message_loss == 0) {
      EXPECT_EQ(run.lost_weight(), 0);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(skipped, 0U) << "no send ever lacked credit: this tests nothing";
  EXPECT_GT(lost, 0.0) << "nothing was ever lost: this tests nothing";
  EXPECT_GT(events, 10'000U);
}

/// Every worker in double precision, from its events and its sends: x ← x − lr g, then each message, then it sends half its weight.
class SerialGossip {
 public:
  SerialGossip(const VirtualRun& run, const Recorded& recorded) : run_(run) {
    std::vector<float> start(run.options().floats);
    run.quadratic().start(start);
    const auto n = recorded.workers().size();
    x.assign(n, Vector(start.begin(), start.end()));
    a.assign(n, 1.0 / static_cast<double>(n));
    computed_at_ = x;
    inbox_.resize(n);
    std::vector<std::size_t> next(n);
    for (bool moved = true; moved;) {  // as far as each can go: a message is read only after it was sent
      moved = false;
      for (WorkerId w = 0; w < n; ++w) {
        const auto& log = *recorded.workers()[w];
        while (next[w] < log.size() && handle(w, log, next[w])) moved = true, ++next[w];
      }
    }
    for (WorkerId w = 0; w < n; ++w)
      EXPECT_EQ(next[w], recorded.workers()[w]->size()) << "a peer message that no worker sent";
  }
  std::vector<Vector> x;
  Vector a;

 private:
  using Message = std::pair<double, Vector>;
  bool handle(WorkerId w, const std::vector<WorkerTold>& log, std::size_t at) {
    const auto& told = log[at];
    if (const auto* message = std::get_if<PeerMessageArrived>(&told.event)) {
      auto& channel = on_their_way_[{message->from, w}];
      if (channel.empty()) return false;
      EXPECT_NEAR(channel.front().first, message->weight, 1e-12);
      inbox_[w].push_back(channel.front());
      channel.pop_front();
    }
    if (const auto* done = std::get_if<StepDone>(&told.event)) step(w, *done), drain(w);
    if (std::holds_alternative<Stopped>(told.event)) stopped_.insert(w);
    if (stopped_.contains(w)) drain(w);
    for (const auto& action : told.actions) {
      const auto* send = std::get_if<SendPeer>(&action);
      if (!send || skipped(log, at)) continue;
      a[w] /= 2;
      on_their_way_[{w, send->to}].emplace_back(a[w], x[w]);
    }
    computed_at_[w] = x[w];
    return true;
  }
  void step(WorkerId w, const StepDone& done) {
    const auto& o = run_.options();
    const double lease = done.epoch / o.epochs * static_cast<double>(o.steps * o.workers);
    const std::vector<float> at(computed_at_[w].begin(), computed_at_[w].end());
    std::vector<float> g(at.size());
    run_.quadratic().gradient(static_cast<std::uint64_t>(lease + 0.5), at, g);
    for (std::size_t i = 0; i < at.size(); ++i) x[w][i] -= double{o.optimizer.lr} * g[i];
  }
  void drain(WorkerId w) {
    for (const auto& [weight, vector] : std::exchange(inbox_[w], {})) {
      for (std::size_t i = 0; i < vector.size(); ++i) x[w][i] = (a[w] * x[w][i] + weight * vector[i]) / (a[w] + weight);
      a[w] += weight;
    }
  }
  /// Whether the send of this step was reported as skipped before the next step was done.
  static bool skipped(const std::vector<WorkerTold>& log, std::size_t at) {
    for (std::size_t i = at + 1; i < log.size(); ++i) {
      if (std::holds_alternative<SendSkipped>(log[i].event)) return true;
      if (std::holds_alternative<StepDone>(log[i].event) || std::holds_alternative<Stopped>(log[i].event)) return false;
    }
    return false;
  }
  const VirtualRun& run_;
  std::vector<Vector> computed_at_;
  std::set<WorkerId> stopped_;
  std::vector<std::vector<Message>> inbox_;
  std::map<std::pair<WorkerId, WorkerId>, std::deque<Message>> on_their_way_;
};

TEST(Gossip, EveryWorkerMovesAsInThePaper) {
  std::uint64_t messages = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    auto shape = random_shape({}, seed);
    shape.steps = 20;
    shape.optimizer = {.lr = 0.05F};
    const auto strategy = with_p(0.6, shape.workers);
    const Recorded recorded(*strategy);
    VirtualRun run(recorded, shape);
    run.execute();
    const SerialGossip expected(run, recorded);
    for (WorkerId w = 0; w < shape.workers; ++w) {
      const auto x = run.worker(w).params();
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], expected.x[w][i], 5e-5) << w << ", " << i;
      messages += run.worker(w).host().totals().exchanges;
    }
    EXPECT_NEAR(std::accumulate(expected.a.begin(), expected.a.end(), 0.0), 1, 1e-9) << "nothing is left on its way";
  }
  EXPECT_GT(messages, 500U);
}

TEST(Gossip, WorkersSendWithProbabilityPToUniformlyDrawnPeers) {
  for (const double p : {0.0, 0.3, 1.0}) {
    const auto strategy = with_p(p, 4);
    const auto rule = strategy->worker();
    const Membership members{0, {0, 1, 2, 3}};
    std::map<WorkerId, int> sent;
    constexpr int kSteps = 6000;
    for (Step step = 0; step < kSteps; ++step) {
      WorkerActions then;
      rule->on(StepDone{step}, WorkerContext{2, members, 7, step + 1}, then);
      for (const auto& action : then.list()) {
        const auto* send = std::get_if<SendPeer>(&action);
        if (!send) continue;
        ++sent[send->to];
        rule->on(SendSkipped{send->to, send->weight}, WorkerContext{2, members, 7, step + 1}, then);
      }
      ASSERT_EQ(rule->weight(), 0.25) << "a send that was skipped gives back what it took";
    }
    EXPECT_EQ(sent.count(2), 0U) << "nobody writes to itself";
    for (const WorkerId to : {0U, 1U, 3U})
      EXPECT_NEAR(sent[to], p * kSteps / 3, 5 * std::sqrt(kSteps * p / 3)) << "p = " << p << ", to " << to;
  }
}

/// Half of the smallest positive weight would be zero: the worker does not send it, and the sum stays.
TEST(Gossip, AWorkerThatOnlySendsKeepsSomeWeight) {
  const auto rule = with_p(1, 2)->worker();
  const Membership members{0, {0, 1}};
  double sent = 0;
  for (Step step = 0; step < 200; ++step) {
    WorkerActions then;
    rule->on(StepDone{step}, WorkerContext{0, members, 7, step + 1}, then);
    for (const auto& action : then.list())
      if (const auto* send = std::get_if<SendPeer>(&action)) sent += send->weight;
    ASSERT_GT(rule->weight(), 0);
    ASSERT_EQ(rule->weight() + sent, 0.5);
  }
}

TEST(Gossip, TheWeightedModelReachesTheMinimumOfAQuadratic) {
  VirtualRunOptions options{.workers = 4, .steps = 150, .seed = 3, .delays = Delays::extreme, .slowdown = {1, 3}};
  VirtualRun run(*with_p(0.5, 4), options);
  run.execute();
  std::vector<float> model(options.floats);
  for (WorkerId w = 0; w < 4; ++w) {
    const auto& worker = run.worker(w);
    for (std::size_t i = 0; i < model.size(); ++i)
      model[i] += static_cast<float>(worker.host().rule().weight() / run.weight()) * worker.params()[i];
  }
  EXPECT_LT(run.quadratic().loss(model), 0.05) << "the start is above 7";
}

TEST(Gossip, NeedsPeersAndNothingElse) {
  const auto needs = with_p(0.5, 3)->needs();
  EXPECT_TRUE(needs.peers);
  EXPECT_FALSE(needs.servers);
  EXPECT_FALSE(needs.group);
  EXPECT_FALSE(needs.in_step);
  EXPECT_EQ(needs.model, ModelHome::weighted);
  EXPECT_FALSE(try_make("[strategy]\nname = \"gossip\"\np = 1.5\n"));
}

}  // namespace
}  // namespace troupe::strategies
