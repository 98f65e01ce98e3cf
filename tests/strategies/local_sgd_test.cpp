/// Local SGD in whole runs: rounds of all members against a serial computation, and what a quorum does to the members behind.
#include "strategies/local_sgd.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/strategies/made.hpp"
#include "tests/strategies/variants.hpp"

namespace troupe::strategies {
namespace {

using explore::checksum;
using explore::Delays;
using explore::ServerKernel;
using explore::VirtualRun;
using explore::VirtualRunOptions;
using Vector = std::vector<double>;

struct LocalSgdCase {
  Step tau = 1;
  std::uint32_t fragments = 1;
  Step delay = 0;
  double lr = 1;
  double momentum = 0;  // 0: outer = sgd
  [[nodiscard]] std::string text() const {
    return "tau = " + std::to_string(tau) + "\nfragments = " + std::to_string(fragments) +
           "\ndelay = " + std::to_string(delay) + "\nouter_lr = " + std::to_string(lr) +
           (momentum > 0 ? "\nouter = \"nesterov\"\nouter_momentum = " + std::to_string(momentum) : "");
  }
};
const std::vector<LocalSgdCase> kLocalSgdCases{
    {1}, {3}, {4, 2}, {4, 2, 1}, {6, 3, 1}, {5, 1, 4}, {3, 1, 0, .5}, {3, 1, 0, .7, .9}, {4, 2, 1, .7, .9}, {100},
};

std::unique_ptr<Strategy> with(const std::string& options, const VirtualRunOptions& shape) {
  return made("[strategy]\nname = \"local_sgd\"\n" + options, {.workers = shape.workers, .servers = shape.servers});
}

/// docs/strategies/local_sgd.md in double precision, for all workers at once: all are at the same step.
class SerialLocalSgd {
 public:
  SerialLocalSgd(const LocalSgdCase& c, const VirtualRun& run) : case_(c), run_(run) {
    const auto& o = run.options();
    std::vector<float> start(o.floats);
    run.quadratic().start(start);
    center.assign(start.begin(), start.end());
    velocity_.resize(o.floats);
    x.assign(o.workers, center);
    began_ = sent_ = answer_ = x;
    const Step period = c.tau / c.fragments;
    Step taken = 0;
    for (Step steps = 1; steps <= o.steps; ++steps) {
      for (std::uint32_t w = 0; w < o.workers; ++w) {
        std::vector<float> g(o.floats);
        run.quadratic().gradient((steps - 1) * o.workers + w, std::vector<float>(x[w].begin(), x[w].end()), g);
        for (std::size_t i = 0; i < g.size(); ++i) x[w][i] -= 0.05 * g[i];
      }
      if (steps % period == 0) round((steps / period - 1) % c.fragments);
      if (steps > c.delay && (steps - c.delay) % period == 0)
        take(((taken = steps - c.delay) / period - 1) % c.fragments);
    }
    const Step last = o.steps / period * period;  // the latest round
    if (last > taken) take((last / period - 1) % c.fragments);
    for (std::uint32_t f = 0; f < c.fragments; ++f) {
      if (last == o.steps && f == (last / period - 1) % c.fragments) continue;
      round(f);
      take(f);
    }
  }
  Vector center;
  std::vector<Vector> x;

 private:
  /// The elements of the fragment's shards.
  [[nodiscard]] std::pair<std::size_t, std::size_t> range(std::uint32_t f) const {
    const auto& o = run_.options();
    const auto edge = [&](std::uint32_t k) {
      const std::uint32_t shard = k * o.servers / case_.fragments;
      return shard == o.servers ? o.floats : explore::cut(o.floats, o.servers, shard).offset;
    };
    return {edge(f), edge(f + 1)};
  }
  void round(std::uint32_t f) {
    const auto [first, end] = range(f);
    for (std::size_t i = first; i < end; ++i) {
      double mean = 0;
      for (std::size_t w = 0; w < x.size(); ++w) mean += (began_[w][i] - x[w][i]) / static_cast<double>(x.size());
      velocity_[i] = case_.momentum * velocity_[i] - case_.lr * mean;
      center[i] += case_.momentum > 0 ? case_.momentum * velocity_[i] - case_.lr * mean : -case_.lr * mean;
      for (std::size_t w = 0; w < x.size(); ++w) sent_[w][i] = x[w][i], answer_[w][i] = center[i];
    }
  }
  void take(std::uint32_t f) {
    const auto [first, end] = range(f);
    for (std::size_t i = first; i < end; ++i) {
      for (std::size_t w = 0; w < x.size(); ++w) {
        x[w][i] = answer_[w][i] + (x[w][i] - sent_[w][i]);
        began_[w][i] = answer_[w][i];
      }
    }
  }
  LocalSgdCase case_;
  const VirtualRun& run_;
  Vector velocity_;
  std::vector<Vector> began_, sent_, answer_;
};

TEST(LocalSgd, RoundsOfAllMembersAreASerialComputation) {
  for (const auto& c : kLocalSgdCases) {
    for (const std::uint32_t workers : {1U, 2U, 4U}) {
      for (const Step steps : {12U, 13U}) {
        SCOPED_TRACE(c.text() + "\n" + std::to_string(workers) + " workers, " + std::to_string(steps) + " steps");
        const VirtualRunOptions options{.workers = workers,
                                        .servers = 4,
                                        .floats = 160,
                                        .steps = steps,
                                        .seed = 3,
                                        .delays = Delays::extreme,
                                        .slowdown = {1, 3, 0.5}};
        VirtualRun run(*with(c.text(), options), options);
        run.execute();
        const SerialLocalSgd expected(c, run);
        const auto center = run.center();
        for (std::size_t i = 0; i < center.size(); ++i) {
          ASSERT_NEAR(center[i], expected.center[i], 3e-5) << i;
          for (WorkerId w = 0; w < workers; ++w)
            ASSERT_NEAR(run.worker(w).params()[i], expected.x[w][i], 3e-5) << w << ", " << i;
        }
      }
    }
  }
}

TEST(LocalSgd, WithAllMembersTheScheduleChangesNothing) {
  for (const auto& c : kLocalSgdCases) {
    SCOPED_TRACE(c.text());
    std::vector<std::uint64_t> results;
    for (const Delays delays : {Delays::even, Delays::extreme}) {
      const VirtualRunOptions options{
          .workers = 3, .servers = 3, .steps = 13, .delays = delays, .slowdown = {1, 5, 0.5}};
      VirtualRun run(*with(c.text(), options), options);
      run.execute();
      results.push_back(checksum(run.center()));
      // With a delay the last steps of the run may not have seen the previous round.
      for (WorkerId w = 0; w < 3; ++w) EXPECT_LE(run.worker(w).host().totals().staleness_max, c.delay > 0 ? 1U : 0U);
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

// ---- quorum

/// The rule of rounds for one shard, from the order of its requests. Every contribution has weight 1 / n in one round.
class Rounds {
 public:
  Rounds(std::vector<float> start, std::size_t quorum, double lr)
      : center(start.begin(), start.end()), late(start.size()), quorum_(quorum), lr_(lr) {}
  void contribution(const Request& request, const std::vector<float>& delta, std::size_t workers) {
    if (request.clock <= closed) {
      ++late_count;
      for (std::size_t i = 0; i < late.size(); ++i) late[i] += delta[i];
      return;
    }
    on_time.emplace(request.worker, delta);
    if (on_time.size() < std::min(quorum_, workers)) return;
    closed = request.clock;
    const auto n = static_cast<double>(on_time.size() + late_count);
    for (std::size_t i = 0; i < late.size(); ++i) {
      double sum = std::exchange(late[i], 0);
      for (const auto& [worker, d] : on_time) sum += d[i];
      center[i] -= lr_ * sum / n;
    }
    counted += on_time.size() + std::exchange(late_count, 0);
    on_time.clear();
    ++rounds;
  }
  Vector center, late;
  std::map<WorkerId, std::vector<float>> on_time;
  Step closed = 0;
  std::size_t late_count = 0, counted = 0, rounds = 0;

 private:
  std::size_t quorum_;
  double lr_;
};

TEST(LocalSgd, WithAQuorumEveryContributionCountsOnceInItsRoundOrTheNext) {
  std::size_t late = 0;
  std::size_t rounds = 0;
  for (const LocalSgdCase& c : {LocalSgdCase{1}, LocalSgdCase{3}, LocalSgdCase{4, 2, 1}, LocalSgdCase{2, 1, 1, .5}}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      auto options = random_shape({}, seed);
      options.workers = std::max(options.workers, 3U);
      options.servers = std::max(options.servers, 2U);
      options.steps = 2 * c.tau * (1 + seed % 4);  // all fragments have as many rounds; none stays open
      options.slowdown = {1, 2, 12};
      const std::size_t quorum = 1 + seed % options.workers;
      SCOPED_TRACE(c.text() + "\nquorum " + std::to_string(quorum) + ", seed " + std::to_string(seed));
      std::map<std::pair<ShardId, RequestId>, std::vector<float>> deltas;
      options.on_server_kernel = [&](const ServerKernel& kernel) {
        if (kernel.request != 0) deltas.try_emplace({kernel.shard, kernel.request}, kernel.payload_before);
      };
      VirtualRun run(*with(c.text() + "\nquorum = " + std::to_string(quorum), options), options);
      std::vector<float> start(options.floats);
      run.quadratic().start(start);
      run.execute();
      for (ShardId s = 0; s < options.servers; ++s) {
        const auto range = explore::cut(options.floats, options.servers, s);
        Rounds expected({start.begin() + static_cast<std::ptrdiff_t>(range.offset),
                         start.begin() + static_cast<std::ptrdiff_t>(range.offset + range.count)},
                        quorum, c.lr);
        std::size_t workers = options.workers;
        std::size_t requests = 0;
        for (const auto& [shard, event] : run.trace().server_events()) {
          if (shard != s) continue;
          if (const auto* change = std::get_if<MembershipChanged>(&event)) workers = change->membership.size();
          const auto* request = std::get_if<Request>(&event);
          if (!request) continue;
          ++requests;
          expected.contribution(*request, deltas.at({s, request->id}), workers);
        }
        const auto center = run.server(s).center();
        for (std::size_t i = 0; i < center.size(); ++i) ASSERT_NEAR(center[i], expected.center[i], 5e-5) << s;
        EXPECT_EQ(expected.counted + expected.late_count, requests) << "late for the last round is the only way out";
        EXPECT_EQ(run.server(s).host().version(), expected.rounds);
        late += requests - expected.rounds * quorum;
        rounds += expected.rounds;
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(late, 1000U) << "hardly anyone was ever late: this tests nothing";
  EXPECT_GT(rounds, 500U);
}

/// Two of three close the rounds: the third one's speed does not matter, and it never waits.
TEST(LocalSgd, AQuorumDoesNotWaitForSlowWorkers) {
  const auto finish = [](std::size_t quorum, std::vector<Duration>& waits) {
    const VirtualRunOptions options{.workers = 3, .servers = 2, .steps = 40, .slowdown = {1, 1, 10}};
    VirtualRun run(*with("tau = 2\nquorum = " + std::to_string(quorum), options), options);
    run.execute();
    for (WorkerId w = 0; w < 3; ++w) waits.push_back(run.worker(w).host().totals().wait);
    EXPECT_EQ(run.leases_done(), 120U) << "the slow one takes all its steps";
  };
  std::vector<Duration> all;
  std::vector<Duration> two;
  finish(3, all);
  finish(2, two);
  EXPECT_GT(all[0], std::chrono::milliseconds(400)) << "40 steps that take 9 times as long as its own";
  EXPECT_LT(two[0], std::chrono::milliseconds(20));
  EXPECT_LT(two[1], std::chrono::milliseconds(20));
  EXPECT_EQ(two[2], Duration{0});
}

/// A member that names an impossible step takes part in the open round; the next round is not affected.
TEST(LocalSgd, AnInvalidClockMakesNoWorkerLate) {
  constexpr Step kFar = Step{1} << 40;
  LocalSgdServer server(LocalSgdRule{.tau = 1});
  const ServerContext both{0, {0, {0, 1}}, 0};
  const auto told = [&](RequestId id, WorkerId worker, Step clock) {
    ServerActions then;
    server.on(Request{.id = id, .worker = worker, .exchange = id, .kind = Transfer::push_pull, .clock = clock}, both,
              then);
    return then.list();
  };
  const auto answers = [](const std::vector<ServerAction>& actions) {
    std::vector<RequestId> answered;
    for (const auto& action : actions)
      if (const auto* reply = std::get_if<Reply>(&action)) answered.push_back(reply->request);
    return answered;
  };
  for (Step round = 1; round <= 3; ++round) {
    const RequestId liars = 2 * round, honest = liars + 1;
    EXPECT_EQ(told(liars, 1, kFar + round), (std::vector<ServerAction>{Hold{liars}})) << round;
    EXPECT_EQ(answers(told(honest, 0, round)), (std::vector<RequestId>{honest, liars})) << round;
  }
  EXPECT_EQ(told(8, 0, 4), (std::vector<ServerAction>{Hold{8}})) << "a round waits for all";
}

TEST(LocalSgd, RoundsCloseWithoutLostMembers) {
  for (const std::string options : {"tau = 2", "tau = 4\nfragments = 2\ndelay = 1", "tau = 2\nquorum = 3"}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(options + ", seed " + std::to_string(seed));
      const VirtualRunOptions shape{.workers = 4,
                                    .servers = 2,
                                    .seed = seed,
                                    .delays = seed % 2 ? Delays::even : Delays::extreme,
                                    .losses = {{1, std::chrono::milliseconds(7)}, {3, std::chrono::milliseconds(11)}}};
      VirtualRun run(*with(options, shape), shape);
      ASSERT_NO_THROW(run.execute());
      EXPECT_GE(run.worker(0).host().steps(), 20U);
      EXPECT_LT(run.quadratic().loss(run.center()), 5.0) << "the start is above 7";
    }
  }
}

}  // namespace
}  // namespace troupe::strategies
