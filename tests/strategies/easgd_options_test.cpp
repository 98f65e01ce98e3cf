/// Elastic averaging's worker rule action by action, and its options.
#include <gtest/gtest.h>

#include "strategies/easgd.hpp"
#include "strategies/host/server_host.hpp"
#include "strategies/host/worker_host.hpp"
#include "tests/strategies/made.hpp"
#include "tests/strategies/scripted.hpp"

namespace troupe::strategies {
namespace {

using Calls = std::vector<std::string>;

struct OptionsStage {
  OptionsStage(Step tau, Overlap overlap)
      : host(std::make_unique<EasgdWorker>(tau, overlap), {ports, &ports}, {}, &events) {
    host.start(0);
  }
  void step() { host.step_done(0, {.lr = 0.1F}); }
  void answer(ExchangeId id, bool dropped = false) { host.replied({.shard = 0, .exchange = id, .dropped = dropped}); }
  /// Kernels that ran since the last call.
  std::vector<KernelName> ran() {
    std::vector<KernelName> names;
    for (const auto& call : std::exchange(ports.kernels, {})) names.push_back(call.kernel);
    return names;
  }
  NotingPorts ports;
  EventNames events;
  WorkerHost host;
};

using Names = std::vector<KernelName>;
using enum KernelName;

TEST(EasgdWorker, WithoutOverlapItWaitsWithItsParametersLent) {
  OptionsStage s(2, Overlap::off);
  s.step();
  EXPECT_TRUE(s.host.computing()) << "nothing is due";
  s.step();
  EXPECT_FALSE(s.host.computing());
  EXPECT_EQ(s.ports.requests.at(0).slot, kParams);
  EXPECT_EQ(s.ports.requests.at(0).request.kind, Transfer::push_pull);
  s.answer(1);
  EXPECT_TRUE(s.host.computing());
  EXPECT_EQ(s.ran(), (Names{optimize, optimize})) << "the server did the rest, in place";
}

TEST(EasgdWorker, WithOverlapItSubtractsTheAnswerBeforeTheNextUpdate) {
  OptionsStage s(1, Overlap::skip);
  s.step();
  EXPECT_TRUE(s.host.computing());
  EXPECT_EQ(s.ports.requests.at(0).slot, staged(0));
  EXPECT_EQ(s.ran(), (Names{optimize, copy}));
  s.answer(0);
  EXPECT_EQ(s.ran(), Names{}) << "not during a step";
  s.step();
  EXPECT_EQ(s.ports.kernels.at(0).a, -1.0F);
  EXPECT_EQ(s.ports.kernels.at(0).y, kParams);
  EXPECT_EQ(s.ports.kernels.at(0).x, staged(0));
  EXPECT_EQ(s.ran(), (Names{axpy, optimize, copy})) << "and the next exchange begins at once";
  EXPECT_EQ(s.host.totals().skipped, 0U);
}

TEST(EasgdWorker, AnExchangeThatFallsDueMeanwhileIsSkippedAndCounted) {
  OptionsStage s(1, Overlap::skip);
  for (int i = 0; i < 4; ++i) s.step();
  EXPECT_EQ(s.ports.requests.size(), 1U);
  EXPECT_EQ(s.host.in_flight(), 1U);
  EXPECT_EQ(s.host.totals().skipped, 3U);
  EXPECT_TRUE(s.host.computing());
  s.answer(0);
  s.step();
  EXPECT_EQ(s.ports.requests.size(), 2U);
  EXPECT_EQ(s.ports.requests.at(1).request.exchange, 4U);
}

TEST(EasgdWorker, AnExchangeThatFallsDueMeanwhileIsWaitedFor) {
  OptionsStage s(1, Overlap::wait);
  s.step();
  s.step();
  EXPECT_FALSE(s.host.computing());
  (void)s.ran();
  s.answer(0);
  EXPECT_EQ(s.ran(), (Names{axpy, copy}));
  EXPECT_TRUE(s.host.computing());
  EXPECT_EQ(s.ports.requests.size(), 2U);
  EXPECT_EQ(s.host.totals().skipped, 0U);
}

TEST(EasgdWorker, ADroppedAnswerIsNotApplied) {
  OptionsStage s(1, Overlap::skip);
  s.step();
  s.answer(0, true);
  (void)s.ran();
  s.step();
  EXPECT_EQ(s.ran(), (Names{optimize, copy})) << "the copy came back as it was, which is no difference to subtract";
  EXPECT_EQ(s.ports.requests.size(), 2U);
}

TEST(EasgdWorker, AnAnswerAfterTheLastStepIsStillApplied) {
  OptionsStage s(1, Overlap::skip);
  s.step();
  (void)s.ran();
  s.host.stop();
  s.answer(0);
  EXPECT_EQ(s.ran(), (Names{axpy}));
  EXPECT_EQ(s.host.in_flight(), 0U);
}

// ---- options

std::string section(const std::string& options) { return "[strategy]\nname = \"easgd\"\n" + options; }

/// The rates of the kernel that a server of this strategy runs for a request at `epoch`.
std::pair<float, float> rates(const Strategy& strategy, double epoch = 0) {
  NotingServerPort port;
  ServerHost host(strategy.server(), port, {});
  host.request({.id = 1, .epoch = epoch});
  return {port.kernels.at(0).a, port.kernels.at(0).b};
}

TEST(EasgdOptions, RatesAreAlphaUnlessSetApart) {
  using Pair = std::pair<float, float>;
  EXPECT_EQ(rates(*made(section(""))), (Pair{0.5F, 0.5F}));
  EXPECT_EQ(rates(*made(section("alpha = 0.25"))), (Pair{0.25F, 0.25F}));
  EXPECT_EQ(rates(*made(section("alpha = 0.25\nalpha_worker = 1.0"))), (Pair{1.0F, 0.25F}));
  EXPECT_EQ(rates(*made(section("alpha = 0.25\nalpha_server = 0.0"))), (Pair{0.25F, 0.0F}));
}

TEST(EasgdOptions, AlphaIsBetaOverTheWorkers) {
  EXPECT_FLOAT_EQ(rates(*made(section("beta = 0.9"), {.workers = 3})).first, 0.3F);
  EXPECT_FLOAT_EQ(rates(*made(section("beta = 0.9"), {.workers = 4})).second, 0.225F);
  EXPECT_FLOAT_EQ(rates(*made(section("beta = 0.9\nalpha = 0.1"), {.workers = 3})).first, 0.3F)
      << "beta above 0 takes alpha's place";
}

TEST(EasgdOptions, LastEntryOfTheScheduleStays) {
  const auto strategy = made(section("alpha_schedule = [0.5, 0.25]"));
  EXPECT_EQ(rates(*strategy, -1).first, 0.5F);
  EXPECT_EQ(rates(*strategy, 0.99).first, 0.5F);
  EXPECT_EQ(rates(*strategy, 1).first, 0.25F);
  EXPECT_EQ(rates(*strategy, 1e9).second, 0.25F);
}

TEST(EasgdOptions, OverlapAnswersWithTheDifferenceAndNeedsASlotForIt) {
  for (const char* overlap : {"off", "skip", "wait"}) {
    const auto strategy = made(section(std::string("overlap = \"") + overlap + "\""));
    NotingServerPort port;
    ServerHost host(strategy->server(), port, {});
    host.request({.id = 1});
    const bool off = std::string(overlap) == "off";
    EXPECT_EQ(port.kernels.at(0).kernel, off ? elastic_pair : elastic_delta) << overlap;
    EXPECT_EQ(strategy->needs().worker_slots, off ? std::vector<Slot>{} : std::vector<Slot>{staged(0)});
    EXPECT_TRUE(strategy->needs().servers);
    EXPECT_EQ(strategy->needs().model, ModelHome::center);
  }
}

/// Every message has the place, the key and the allowed values.
TEST(EasgdOptions, InvalidOptionsAreRefused) {
  const auto refused = [](const std::string& options, std::uint32_t workers = 2) {
    const auto strategy = try_make(section(options), {.workers = workers});
    if (strategy) return std::string("accepted");
    EXPECT_EQ(strategy.error().code, core::Errc::config);
    return strategy.error().message;
  };
  EXPECT_EQ(refused("tau = 0"), "test.toml:3: strategy.tau = 0: must be between 1 and 1,000,000,000");
  EXPECT_EQ(refused("alpha = 1.5"), "test.toml:3: strategy.alpha = 1.5: must be between 0 and 1");
  EXPECT_EQ(refused("alpha_schedule = [0.5, 2.0]"),
            "test.toml:3: strategy.alpha_schedule = [0.5, 2.0]: must be between 0 and 1");
  EXPECT_EQ(refused("overlap = \"maybe\""),
            "test.toml:3: strategy.overlap = \"maybe\": must be one of off | skip | wait");
  EXPECT_EQ(refused("alpha_worker = -0.5"),
            "test.toml:3: strategy.alpha_worker must be between 0 and 1, or -1 for strategy.alpha");
  EXPECT_EQ(refused("alpha_schedule = [0.5]\nalpha_server = 0.5"),
            "test.toml:4: strategy.alpha_server and strategy.alpha_schedule exclude each other: the schedule moves "
            "both rates");
  EXPECT_EQ(refused("alpha_schedule = [0.5]\nbeta = 0.9"),
            "test.toml:4: strategy.beta and strategy.alpha_schedule exclude each other");
  EXPECT_EQ(refused("beta = 3.0", 2),
            "test.toml:3: strategy.beta / cluster.workers is above 1: the centre would overshoot");
  EXPECT_EQ(refused("beta = 3.0", 3), "accepted");
}

}  // namespace
}  // namespace troupe::strategies
