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

using explore::Cluster;
using explore::ClusterOptions;
using explore::Delays;
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
    if (seed % 3 == 0) shape.mail_loss = 0.2;
    if (seed % 4 == 0) shape.losses = {{0, std::chrono::milliseconds(5)}};
    if (seed % 8 == 0 && shape.workers > 1) shape.losses.push_back({1, std::chrono::milliseconds(7)});
    double start = 0;
    shape.after_event = [&](const Cluster& cluster) {
      if (events++ == 0 || start == 0) start = cluster.weight();
      ASSERT_EQ(cluster.weight(), start) << "seed " << seed << ": multiples of 2⁻⁵² add up without rounding";
      ASSERT_NEAR(cluster.weight(), 1, 1e-12);
    };
    Cluster cluster(*with_p(seed % 2 ? 1 : 0.4, shape.workers), shape);
    cluster.run();
    for (WorkerId w = 0; w < shape.workers; ++w) {
      EXPECT_GT(cluster.worker(w).host().rule().weight(), 0) << "everyone has a share of the model";
      skipped += cluster.worker(w).host().totals().skipped;
    }
    lost += cluster.lost_weight();
    if (shape.losses.empty() && shape.mail_loss == 0) {
      EXPECT_EQ(cluster.lost_weight(), 0);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(skipped, 0U) << "no send ever lacked credit: this tests nothing";
  EXPECT_GT(lost, 0.0) << "nothing was ever lost: this tests nothing";
  EXPECT_GT(events, 10'000U);
}

/// Every worker in double precision, from its events and its sends: x ← x − lr g, then each message, then it sends half its weight.
class Serial {
 public:
  Serial(const Cluster& cluster, const Recorded& recorded) : cluster_(cluster) {
    std::vector<float> start(cluster.options().floats);
    cluster.quadratic().start(start);
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
    for (WorkerId w = 0; w < n; ++w) EXPECT_EQ(next[w], recorded.workers()[w]->size()) << "a mail that nobody sent";
  }
  std::vector<Vector> x;
  Vector a;

 private:
  using Mail = std::pair<double, Vector>;
  bool handle(WorkerId w, const std::vector<WorkerTold>& log, std::size_t at) {
    const auto& told = log[at];
    if (const auto* mail = std::get_if<PeerMail>(&told.event)) {
      auto& channel = on_their_way_[{mail->from, w}];
      if (channel.empty()) return false;
      EXPECT_NEAR(channel.front().first, mail->weight, 1e-12);
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
    const auto& o = cluster_.options();
    const double lease = done.epoch / o.epochs * static_cast<double>(o.steps * o.workers);
    const std::vector<float> at(computed_at_[w].begin(), computed_at_[w].end());
    std::vector<float> g(at.size());
    cluster_.quadratic().gradient(static_cast<std::uint64_t>(lease + 0.5), at, g);
    for (std::size_t i = 0; i < at.size(); ++i) x[w][i] -= double{o.optimizer.lr} * g[i];
  }
  void drain(WorkerId w) {
    for (const auto& [weight, mailed] : std::exchange(inbox_[w], {})) {
      for (std::size_t i = 0; i < mailed.size(); ++i) x[w][i] = (a[w] * x[w][i] + weight * mailed[i]) / (a[w] + weight);
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
  const Cluster& cluster_;
  std::vector<Vector> computed_at_;
  std::set<WorkerId> stopped_;
  std::vector<std::vector<Mail>> inbox_;
  std::map<std::pair<WorkerId, WorkerId>, std::deque<Mail>> on_their_way_;
};

TEST(Gossip, EveryWorkerMovesAsInThePaper) {
  std::uint64_t mails = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    auto shape = random_shape({}, seed);
    shape.steps = 20;
    shape.optimizer = {.lr = 0.05F};
    const auto strategy = with_p(0.6, shape.workers);
    const Recorded recorded(*strategy);
    Cluster cluster(recorded, shape);
    cluster.run();
    const Serial expected(cluster, recorded);
    for (WorkerId w = 0; w < shape.workers; ++w) {
      const auto x = cluster.worker(w).params();
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], expected.x[w][i], 5e-5) << w << ", " << i;
      mails += cluster.worker(w).host().totals().exchanges;
    }
    EXPECT_NEAR(std::accumulate(expected.a.begin(), expected.a.end(), 0.0), 1, 1e-9) << "nothing is left on its way";
  }
  EXPECT_GT(mails, 500U);
}

TEST(Gossip, WorkersSendWithProbabilityPToUniformlyDrawnPeers) {
  for (const double p : {0.0, 0.3, 1.0}) {
    const auto strategy = with_p(p, 4);
    const auto half = strategy->worker();
    const Membership members{0, {0, 1, 2, 3}};
    std::map<WorkerId, int> sent;
    constexpr int kSteps = 6000;
    for (Step step = 0; step < kSteps; ++step) {
      WorkerActions then;
      half->on(StepDone{step}, WorkerContext{2, members, 7, step + 1}, then);
      for (const auto& action : then.list()) {
        const auto* send = std::get_if<SendPeer>(&action);
        if (!send) continue;
        ++sent[send->to];
        half->on(SendSkipped{send->to, send->weight}, WorkerContext{2, members, 7, step + 1}, then);
      }
      ASSERT_EQ(half->weight(), 0.25) << "a send that was skipped gives back what it took";
    }
    EXPECT_EQ(sent.count(2), 0U) << "nobody writes to itself";
    for (const WorkerId to : {0U, 1U, 3U})
      EXPECT_NEAR(sent[to], p * kSteps / 3, 5 * std::sqrt(kSteps * p / 3)) << "p = " << p << ", to " << to;
  }
}

/// Half of the smallest positive weight would be zero: the worker does not send it, and the sum stays.
TEST(Gossip, AWorkerThatOnlySendsKeepsSomeWeight) {
  const auto half = with_p(1, 2)->worker();
  const Membership members{0, {0, 1}};
  double sent = 0;
  for (Step step = 0; step < 200; ++step) {
    WorkerActions then;
    half->on(StepDone{step}, WorkerContext{0, members, 7, step + 1}, then);
    for (const auto& action : then.list())
      if (const auto* send = std::get_if<SendPeer>(&action)) sent += send->weight;
    ASSERT_GT(half->weight(), 0);
    ASSERT_EQ(half->weight() + sent, 0.5);
  }
}

TEST(Gossip, TheWeightedModelReachesTheMinimumOfAQuadratic) {
  ClusterOptions options{.workers = 4, .steps = 150, .seed = 3, .delays = Delays::extreme, .slowdown = {1, 3}};
  Cluster cluster(*with_p(0.5, 4), options);
  cluster.run();
  std::vector<float> model(options.floats);
  for (WorkerId w = 0; w < 4; ++w) {
    const auto& worker = cluster.worker(w);
    for (std::size_t i = 0; i < model.size(); ++i)
      model[i] += static_cast<float>(worker.host().rule().weight() / cluster.weight()) * worker.params()[i];
  }
  EXPECT_LT(cluster.quadratic().loss(model), 0.05) << "the start is above 7";
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
