/// Mixed: each group is a replica, the servers see a group as one worker, and the moving average is the model.
#include "strategies/combined/mixed.hpp"

#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/strategies/variants.hpp"

namespace troupe::strategies {
namespace {

using explore::Delays;
using explore::ServerKernel;
using explore::VirtualRun;
using explore::VirtualRunOptions;
using Vector = std::vector<double>;

std::unique_ptr<Strategy> mixed_with(const std::string& options, const VirtualRunOptions& shape) {
  return made("[strategy]\nname = \"mixed\"\n" + options,
              {.workers = shape.workers, .servers = shape.servers, .optimizer = shape.optimizer});
}

const std::vector<std::string> kInner{"inner = \"downpour\"",
                                      "inner = \"downpour\"\nn_push = 2\nn_fetch = 3\noverlap = \"skip\"",
                                      "inner = \"downpour\"\nserver_optimizer = \"momentum\"",
                                      "inner = \"easgd\"\ntau = 2",
                                      "inner = \"easgd\"\ntau = 1\noverlap = \"wait\"",
                                      "inner = \"ssp\"\ns = 1"};

TEST(Mixed, MembersOfAGroupComputeEveryStepWithTheSameParameters) {
  std::uint64_t compared = 0;
  for (const auto& inner : kInner) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(inner + "\nseed " + std::to_string(seed));
      VirtualRunOptions options{.workers = 5, .servers = 2, .steps = 10, .seed = seed, .delays = Delays::extreme};
      options.slowdown = {1, 4, 0.5, 2};
      std::map<std::pair<WorkerId, Step>, std::uint64_t> used;  // by group
      options.after_event = [&](const VirtualRun& run) {
        for (WorkerId w = 0; w < 5; ++w) {
          if (!run.worker(w).host().computing()) continue;
          const auto sum = explore::checksum(run.worker(w).params());
          const auto [place, first] = used.try_emplace({w / 2, run.worker(w).host().steps()}, sum);
          ASSERT_EQ(place->second, sum) << "worker " << w;
          compared += first ? 0 : 1;
        }
      };
      VirtualRun run(*mixed_with(inner + "\ngroup_size = 2", options), options);
      run.execute();
      for (const auto& [shard, event] : run.trace().server_events()) {
        const auto* request = std::get_if<Request>(&event);
        if (request) {
          EXPECT_EQ(request->worker % 2, 0U) << "only leaders go to the servers";
        }
      }
      for (WorkerId w = 0; w < 5; ++w) EXPECT_EQ(run.worker(w).host().steps(), 10U);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(compared, 10'000U);
}

/// A push carries −lr times the mean of the members' gradients, each clipped on its own first.
TEST(Mixed, TheGroupPushesTheMeanOfItsMembersClippedGradients) {
  for (const double norm : {0.0, 2.0}) {
    VirtualRunOptions options{.workers = 5, .servers = 1, .steps = 8, .delays = Delays::extreme};
    options.optimizer = {.lr = 0.05F, .clip_norm = static_cast<float>(norm)};
    std::map<std::pair<WorkerId, Step>, std::vector<float>> used;  // parameters by leader and step
    options.after_event = [&](const VirtualRun& run) {
      for (const WorkerId w : {0U, 2U, 4U}) {
        const auto& worker = run.worker(w);
        if (worker.host().computing())
          used.try_emplace({w, worker.host().steps()}, worker.params().begin(), worker.params().end());
      }
    };
    std::map<RequestId, std::vector<float>> pushed;
    options.on_server_kernel = [&](const ServerKernel& kernel) {
      if (writes(kernel.call, kCenter)) pushed[kernel.request] = kernel.payload_before;
    };
    VirtualRun run(*mixed_with("group_size = 2", options), options);
    run.execute();
    std::size_t pushes = 0;
    for (const auto& [shard, event] : run.trace().server_events()) {
      const auto* request = std::get_if<Request>(&event);
      if (!request || request->kind != Transfer::push) continue;
      ++pushes;
      const Step step = request->clock - 1;
      const auto last = std::min(request->worker + 2, 5U);
      Vector mean(options.floats);
      for (WorkerId w = request->worker; w < last; ++w) {
        std::vector<float> g(options.floats);
        run.quadratic().gradient(step * 5 + w, used.at({request->worker, step}), g);
        double square = 0;
        for (const float value : g) square += double{value} * value;
        const double kept = norm > 0 ? std::min(1.0, norm / std::sqrt(square)) : 1;
        for (std::size_t i = 0; i < g.size(); ++i) mean[i] += kept * g[i] / (last - request->worker);
      }
      for (std::size_t i = 0; i < mean.size(); ++i) ASSERT_NEAR(pushed.at(request->id)[i], -0.05 * mean[i], 1e-6);
    }
    EXPECT_EQ(pushes, 3U * 8U);
  }
}

TEST(Mixed, GroupsOfOneAreTheInnerStrategy) {
  for (const std::string inner : {"s = 0", "s = 2\noverlap = \"wait\"\nsteps_per_clock = 2"}) {
    const VirtualRunOptions options{
        .workers = 4, .servers = 2, .steps = 15, .delays = Delays::extreme, .slowdown = {1, 3}};
    VirtualRun alone(*made("[strategy]\nname = \"ssp\"\n" + inner, {.workers = 4, .servers = 2}), options);
    VirtualRun grouped(*mixed_with("group_size = 1\ninner = \"ssp\"\n" + inner, options), options);
    alone.execute();
    grouped.execute();
    EXPECT_EQ(alone.trace().hash(), grouped.trace().hash()) << inner;
  }
}

/// One group of all workers that pushes and fetches every step equals the mean of all gradients at every step.
TEST(Mixed, OneGroupOfAllIsSynchronous) {
  VirtualRunOptions options{.workers = 3, .servers = 2, .steps = 15, .delays = Delays::extreme};
  options.optimizer = {.kind = core::OptimizerKind::momentum, .lr = 0.02F, .momentum = 0.9F};
  VirtualRun run(*mixed_with("group_size = 8", options), options);
  run.execute();
  std::vector<float> start(options.floats);
  run.quadratic().start(start);
  Vector x(start.begin(), start.end());
  Vector v(x.size());
  for (Step step = 0; step < options.steps; ++step) {
    Vector mean(x.size());
    for (WorkerId w = 0; w < 3; ++w) {
      std::vector<float> g(x.size());
      run.quadratic().gradient(step * 3 + w, std::vector<float>(x.begin(), x.end()), g);
      for (std::size_t i = 0; i < x.size(); ++i) mean[i] += g[i] / 3.0;
    }
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += v[i] = 0.9 * v[i] - 0.02 * mean[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(run.center()[i], x[i], 3e-5);
    for (WorkerId w = 0; w < 3; ++w) ASSERT_NEAR(run.worker(w).params()[i], x[i], 3e-5);
  }
}

TEST(Mixed, TheMovingAverageFollowsEveryWriteOfTheCentreFromItsBeginning) {
  for (const auto& inner : kInner) {
    SCOPED_TRACE(inner);
    VirtualRunOptions options{.workers = 4, .servers = 2, .steps = 12, .delays = Delays::extreme};
    std::map<ShardId, Vector> average;
    options.on_server_kernel = [&](const ServerKernel& kernel) {
      if (!writes(kernel.call, kCenter)) return;
      auto& e =
          average.try_emplace(kernel.shard, kernel.center_before.begin(), kernel.center_before.end()).first->second;
      for (std::size_t i = 0; i < e.size(); ++i) e[i] = 0.9 * e[i] + 0.1 * double{kernel.center[i]};
    };
    const auto strategy = mixed_with(inner + "\nema = 0.9", options);
    VirtualRun run(*strategy, options);
    const auto start = run.center();
    const auto model = strategy->needs().model_slot;
    EXPECT_EQ(model.kind, SlotKind::state);
    std::vector<float> before;
    for (ShardId s = 0; s < 2; ++s)
      before.insert(before.end(), run.server(s).peek(model).begin(), run.server(s).peek(model).end());
    EXPECT_EQ(before, start);
    run.execute();
    for (ShardId s = 0; s < 2; ++s) {
      EXPECT_GT(run.server(s).host().version(), 5U);
      for (std::size_t i = 0; i < average[s].size(); ++i)
        ASSERT_NEAR(run.server(s).peek(model)[i], average[s][i], 2e-5) << i;
    }
    EXPECT_EQ(mixed_with(inner, options)->needs().model_slot, kCenter);
  }
}

TEST(Mixed, AGroupsClockGoesOnUnderAnotherLeader) {
  const auto strategy = mixed_with("inner = \"ssp\"\ns = 0\ngroup_size = 2", {.workers = 4, .servers = 1});
  const auto server = strategy->server();
  const Membership all{0, {0, 1, 2, 3}};
  const Membership three{1, {1, 2, 3}};
  ServerActions then;
  const auto push = [&](RequestId id, WorkerId worker, Step clock, const Membership& members) {
    then.clear();
    server->on(Request{.id = id, .worker = worker, .kind = Transfer::push, .clock = clock}, {0, members, 0}, then);
  };
  push(1, 0, 1, all);
  push(2, 2, 1, all);
  then.clear();
  server->on(MembershipChanged{three}, {0, three, 0}, then);
  push(3, 1, 2, three);  // group 0, led by worker 1 now
  push(4, 2, 2, three);
  then.clear();
  server->on(Request{.id = 5, .worker = 2, .exchange = 5, .kind = Transfer::pull, .clock = 2}, {0, three, 0}, then);
  EXPECT_TRUE(std::any_of(then.list().begin(), then.list().end(), [](const ServerAction& action) {
    return action == ServerAction{Reply{5, 2}};
  })) << "both groups have completed two clocks";
}

/// A worker that has begun a step knows the members of the step.
TEST(Mixed, AStateWithoutMembersIsCorrupt) {
  const auto strategy = mixed_with("", {.workers = 2});
  const auto rule = strategy->worker();
  WorkerActions then;
  rule->on(Started{0}, WorkerContext{0, {0, {0, 1}}, 1, 0}, then);
  auto text = rule->state();
  ASSERT_TRUE(strategy->worker()->restore(text));
  const std::string members = "members=0,1,;";
  ASSERT_EQ(text.find(members), 0U) << text;
  const auto restored = strategy->worker()->restore(text.replace(0, members.size(), "members=;"));
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, core::Errc::corrupt);
}

TEST(Mixed, InnerOptionsKeepTheirRules) {
  const auto refusal = [](const std::string& options) {
    const auto result = try_make("[strategy]\nname = \"mixed\"\n" + options, {.workers = 4});
    EXPECT_FALSE(result) << options;
    if (result) return std::string{};
    EXPECT_EQ(result.error().code, core::Errc::config);
    return result.error().message;
  };
  EXPECT_EQ(refusal("overlap = \"wait\""),
            "test.toml:3: strategy.overlap = \"wait\": must be one of off | skip with strategy.inner = \"downpour\"");
  EXPECT_EQ(refusal("inner = \"ssp\"\noverlap = \"skip\""),
            "test.toml:4: strategy.overlap = \"skip\": must be one of off | wait with strategy.inner = \"ssp\"");
  EXPECT_NE(refusal("ema = 1").find("strategy.ema"), std::string::npos);
  EXPECT_NE(refusal("inner = \"bsp\"").find("downpour | easgd | ssp"), std::string::npos);
  EXPECT_NE(refusal("inner = \"easgd\"\nbeta = 3\ngroup_size = 2").find("overshoot"), std::string::npos)
      << "the inner strategy has two groups as its workers";
  EXPECT_TRUE(try_make("[strategy]\nname = \"mixed\"\ninner = \"easgd\"\nbeta = 3\ngroup_size = 1\n", {.workers = 4}));
  EXPECT_TRUE(try_make("[strategy]\nname = \"mixed\"\ninner = \"easgd\"\noverlap = \"wait\"\nplacement = \"dedicated\"",
                       {.workers = 4}));
}

TEST(Mixed, NeedsAreThoseOfTheInnerStrategyAndAGroup) {
  const auto needs = mixed_with("server_optimizer = \"adam\"\nema = 0.5\nn_push = 7", {.workers = 4})->needs();
  EXPECT_TRUE(needs.servers);
  EXPECT_TRUE(needs.group);
  EXPECT_TRUE(needs.in_step);
  EXPECT_EQ(needs.server_states, 3);
  EXPECT_EQ(needs.server_state_of, "adam and ema");
  EXPECT_EQ(needs.model_slot, server_state(2));
  EXPECT_EQ(needs.periods.at(0).steps, 7U);
}

TEST(Mixed, OneGroupOfAllWorkersIsDoubtful) {
  EXPECT_EQ(mixed_with("group_size = 2", {.workers = 4})->needs().doubts, std::vector<std::string>{});
  EXPECT_EQ(mixed_with("group_size = 2", {.workers = 1})->needs().doubts, std::vector<std::string>{});
  const auto doubts = mixed_with("group_size = 2\nema = 0.5", {.workers = 2})->needs().doubts;
  EXPECT_EQ(doubts, std::vector<std::string>{"test.toml:3: strategy.group_size = 2 makes one group of all 2 workers: "
                                             "the run steps as bsp does; set it below their number"});
}

}  // namespace
}  // namespace troupe::strategies
