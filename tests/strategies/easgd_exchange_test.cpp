/// Elastic averaging in whole runs: the numbers of every exchange, and that none is lost or done twice.
#include <map>

#include <gtest/gtest.h>

#include "sim/explore/world/virtual_run.hpp"
#include "tests/strategies/made.hpp"

namespace troupe::strategies {
namespace {

using explore::Carriage;
using explore::Delays;
using explore::ServerKernel;
using explore::VirtualRun;
using explore::VirtualRunOptions;
using Vector = std::vector<double>;

std::unique_ptr<Strategy> easgd_with(const std::string& options, std::uint32_t workers) {
  return made("[strategy]\nname = \"easgd\"\n" + options, {.workers = workers});
}

/// The course of one worker and the centre in double precision, in the order in which the worker consumed its events.
class SerialEasgd {
 public:
  SerialEasgd(VirtualRun& run, std::string overlap, Step tau, double alpha_worker, double alpha_server)
      : overlap_(std::move(overlap)), alpha_worker_(alpha_worker), alpha_server_(alpha_server) {
    std::vector<float> start(run.options().floats);
    run.quadratic().start(start);
    x.assign(start.begin(), start.end());
    c = computed_at_ = x;
    for (const auto& [worker, event] : run.trace().worker_events()) {
      if (const auto* done = std::get_if<StepDone>(&event)) {
        local_step(run.quadratic(), done->step, run.options().optimizer.lr);
        const bool due = (done->step + 1) % tau == 0;
        if (due && !in_flight_) {
          exchange();
        } else if (due && overlap_ == "wait") {
          waiting_ = true;
        }
        if (!waiting_ && !(due && overlap_ == "off")) computed_at_ = x;
      } else if (std::holds_alternative<ExchangeDone>(event)) {
        for (std::size_t i = 0; i < x.size(); ++i) x[i] -= answer_[i];
        in_flight_ = false;
        if (waiting_) exchange();
        if (waiting_ || overlap_ == "off") computed_at_ = x;
        waiting_ = false;
      }
    }
  }
  Vector x, c;

 private:
  void local_step(const explore::QuadraticProblem& quadratic, std::uint64_t lease, double lr) {
    const std::vector<float> at(computed_at_.begin(), computed_at_.end());
    std::vector<float> g(x.size());
    quadratic.gradient(lease, at, g);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] -= lr * double{g[i]};
  }
  void exchange() {
    answer_.assign(x.size(), 0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double d = x[i] - c[i];
      answer_[i] = alpha_worker_ * d;
      c[i] += alpha_server_ * d;
    }
    in_flight_ = true;
  }
  std::string overlap_;
  double alpha_worker_, alpha_server_;
  Vector computed_at_, answer_;
  bool in_flight_ = false;
  bool waiting_ = false;
};

TEST(EasgdExchange, OneWorkerAndTheCentreEqualASerialComputation) {
  for (const std::string overlap : {"off", "skip", "wait"}) {
    for (const Step tau : {1U, 3U}) {
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        SCOPED_TRACE(overlap + ", tau " + std::to_string(tau) + ", seed " + std::to_string(seed));
        VirtualRun run(*easgd_with("alpha_worker = 0.5\nalpha_server = 0.2\ntau = " + std::to_string(tau) +
                                       "\noverlap = \"" + overlap + "\"\n",
                                   1),
                       {.workers = 1, .servers = 3, .steps = 25, .seed = seed, .delays = Delays::extreme});
        run.execute();
        const SerialEasgd expected(run, overlap, tau, 0.5, static_cast<double>(0.2F));
        const auto x = run.worker(0).params();
        const auto c = run.center();
        for (std::size_t i = 0; i < x.size(); ++i) {
          ASSERT_NEAR(x[i], expected.x[i], 5e-5) << i;  // 25 steps in float32
          ASSERT_NEAR(c[i], expected.c[i], 5e-5) << i;
        }
      }
    }
  }
}

/// Random runs, with every kernel of their servers.
struct ThreeWorkers {
  explicit ThreeWorkers(const std::string& options, VirtualRunOptions with = {}) {
    with.workers = std::max(with.workers, 3U);
    with.servers = 2;
    with.on_server_kernel = [this](const ServerKernel& kernel) {
      kernels.push_back(kernel), centers.emplace_back(kernel.center.begin(), kernel.center.end()),
          payloads.emplace_back(kernel.payload.begin(), kernel.payload.end());
    };
    run.emplace(*easgd_with(options, with.workers), std::move(with));
    run->execute();
  }
  std::vector<ServerKernel> kernels;
  std::vector<std::vector<float>> centers;  // after each kernel
  std::vector<std::vector<float>> payloads;
  std::optional<VirtualRun> run;
};

TEST(EasgdExchange, CentreMovesByExactlyAlphaTimesTheDifference) {
  for (const bool overlap : {false, true}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(seed);
      ThreeWorkers shape(std::string("alpha_worker = 0.3\nalpha_server = 0.7\ntau = 2\noverlap = \"") +
                             (overlap ? "skip" : "off") + "\"\n",
                         {.seed = seed, .delays = Delays::extreme});
      std::map<ShardId, std::vector<float>> last;
      for (std::size_t k = 0; k < shape.kernels.size(); ++k) {
        const auto& kernel = shape.kernels[k];
        if (last.contains(kernel.shard)) {
          EXPECT_EQ(kernel.center_before, last[kernel.shard]) << "something else moved the centre";
        }
        for (std::size_t i = 0; i < kernel.center_before.size(); ++i) {
          const float d = kernel.payload_before[i] - kernel.center_before[i];
          // The rule in float arithmetic: at most 4 units in the last place from the kernel's result.
          ASSERT_FLOAT_EQ(shape.centers[k][i], kernel.center_before[i] + 0.7F * d);
          ASSERT_FLOAT_EQ(shape.payloads[k][i], overlap ? 0.3F * d : kernel.payload_before[i] - 0.3F * d);
        }
        last[kernel.shard] = shape.centers[k];
      }
      const auto center = shape.run->center();
      std::vector<float> joined = last[0];
      joined.insert(joined.end(), last[1].begin(), last[1].end());
      EXPECT_EQ(center, joined) << "the last exchange's centre is the model";
    }
  }
}

TEST(EasgdExchange, EachExchangeIsAppliedOncePerShardAndNoneIsLost) {
  for (const std::string overlap : {"off", "skip", "wait"}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(overlap + ", seed " + std::to_string(seed));
      ThreeWorkers shape("tau = 2\noverlap = \"" + overlap + "\"\n",
                         {.workers = 4, .seed = seed, .delays = Delays::extreme});
      std::uint64_t exchanges = 0;
      for (WorkerId w = 0; w < 4; ++w) {
        const auto& host = shape.run->worker(w).host();
        const auto due = host.steps() / 2;
        EXPECT_EQ(host.totals().exchanges + host.totals().skipped, due);
        if (overlap != "skip") {
          EXPECT_EQ(host.totals().skipped, 0U);
        }
        EXPECT_EQ(host.totals().dropped, 0U);
        EXPECT_EQ(host.totals().updates, 2 * host.totals().exchanges);
        exchanges += host.totals().exchanges;
      }
      EXPECT_EQ(shape.kernels.size(), 2 * exchanges);
      std::map<std::pair<ShardId, RequestId>, int> applied;
      for (const auto& kernel : shape.kernels) EXPECT_EQ(++applied[std::pair(kernel.shard, kernel.request)], 1);
      for (ShardId s = 0; s < 2; ++s) EXPECT_EQ(shape.run->server(s).host().version(), exchanges);
    }
  }
}

TEST(EasgdExchange, ExchangesComeEveryTauStepsOfTheWorker) {
  for (const Step tau : {1U, 2U, 5U, 50U}) {
    ThreeWorkers shape("tau = " + std::to_string(tau) + "\n", {.seed = 6, .delays = Delays::extreme});
    std::map<std::pair<ShardId, WorkerId>, Step> clock;
    for (const auto& [shard, event] : shape.run->trace().server_events()) {
      const auto* request = std::get_if<Request>(&event);
      if (!request) continue;
      auto& last = clock[{shard, request->worker}];
      EXPECT_EQ(request->clock, last + tau);
      last = request->clock;
    }
    EXPECT_EQ(clock.empty(), tau == 50);
    for (WorkerId w = 0; w < 3; ++w)
      EXPECT_EQ(shape.run->worker(w).host().totals().exchanges, shape.run->worker(w).host().steps() / tau);
  }
}

/// With α_w = α_s the sum that leaves the workers arrives in the centre, and nothing else does.
TEST(EasgdExchange, WithEqualRatesTheCentreGainsWhatTheWorkersLose) {
  for (const std::string overlap : {"off", "skip", "wait"}) {
    ThreeWorkers still("tau = 1\nalpha = 0.3\noverlap = \"" + overlap + "\"\n",
                       {.seed = 8, .delays = Delays::extreme, .optimizer = {.lr = 0.05F}, .noise = 0});
    auto& run = *still.run;
    Vector given(run.options().floats);
    std::size_t offset[2] = {0, run.server(0).center().size()};
    for (std::size_t k = 0; k < still.kernels.size(); ++k) {
      const auto& kernel = still.kernels[k];
      for (std::size_t i = 0; i < kernel.payload_before.size(); ++i) {
        const double left = overlap == "off" ? double{kernel.payload_before[i]} - double{still.payloads[k][i]}
                                             : double{still.payloads[k][i]};
        given[offset[kernel.shard] + i] += left;
      }
    }
    std::vector<float> start(run.options().floats);
    run.quadratic().start(start);
    const auto center = run.center();
    for (std::size_t i = 0; i < center.size(); ++i)
      ASSERT_NEAR(double{center[i]} - double{start[i]}, given[i], 1e-4) << overlap;
  }
}

TEST(EasgdExchange, TheScheduleMovesBothRatesEpochByEpoch) {
  ThreeWorkers shape("tau = 1\nalpha_schedule = [0.5, 0.25, 0.125]\n", {.epochs = 5, .seed = 2});
  std::map<std::pair<ShardId, RequestId>, double> epochs;
  for (const auto& [shard, event] : shape.run->trace().server_events()) {
    if (const auto* request = std::get_if<Request>(&event)) epochs[{shard, request->id}] = request->epoch;
  }
  std::map<float, int> used;
  for (const auto& kernel : shape.kernels) {
    const double epoch = epochs.at({kernel.shard, kernel.request});
    const float expected = epoch < 1 ? 0.5F : epoch < 2 ? 0.25F : 0.125F;  // the last one stays
    EXPECT_EQ(kernel.call.a, expected) << epoch;
    EXPECT_EQ(kernel.call.b, expected) << epoch;
    ++used[kernel.call.a];
  }
  EXPECT_EQ(used.size(), 3U);
  EXPECT_GT(used[0.125F], used[0.5F]) << "three epochs of five";
}

TEST(EasgdExchange, TheCentreReachesTheMinimumOfAQuadratic) {
  for (const std::string overlap : {"off", "skip", "wait"}) {
    ThreeWorkers shape("tau = 2\nalpha = 0.4\noverlap = \"" + overlap + "\"\n",
                       {.steps = 150, .seed = 9, .delays = Delays::extreme, .slowdown = {1, 3}});
    EXPECT_LT(shape.run->quadratic().loss(shape.run->center()), 0.05) << overlap << ": the start is above 7";
  }
}

TEST(EasgdExchange, ALostWorkerNeedsNoAction) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const std::string overlap : {"off", "skip", "wait"}) {
      ThreeWorkers shape("tau = 1\noverlap = \"" + overlap + "\"\n",
                         {.seed = seed,
                          .carriage = seed % 2 ? Carriage::carried : Carriage::in_place,
                          .losses = {{1, std::chrono::milliseconds(7)}}});
      EXPECT_FALSE(shape.run->worker(1).alive());
      EXPECT_EQ(shape.run->leases_done(), shape.run->options().steps * 3) << "its leases went to the others";
    }
  }
}

}  // namespace
}  // namespace troupe::strategies
