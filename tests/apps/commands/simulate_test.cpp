#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;

constexpr const char* kSimulateConfig = R"([run]
epochs = 2
[model]
name = "mlp"
widths = [10]
[data]
name = "glyphs"
batch = 50
train_samples = 1000
[strategy]
name = "easgd"
tau = 2
[cluster]
workers = 4
)";
constexpr const char* kCluster =
    "[hosts.node]\ncount = 8\nstep_ms = 10\n[network]\nlatency_us = 100\ngbit_per_s = 1\n"
    "[models.big]\nparameters = 1000000\nimage_ms = 2\n";

class Simulate : public ::testing::Test {
 protected:
  [[nodiscard]] Outcome run(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"simulate", config_, "--cluster", cluster_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return troupe(arguments);
  }
  TemporaryDirectory folder_;
  std::string config_ = folder_.write("a.toml", kSimulateConfig);
  std::string cluster_ = folder_.write("c.toml", kCluster);
};

// 784·10 + 10 + 10·10 + 10 parameters; 20 leases of 50 samples an epoch, an exchange after every second lease of a worker.
TEST_F(Simulate, PrintsARunsSummaryInVirtualSeconds) {
  const auto outcome = run({"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1);
  const auto j = json::parse(outcome.out);
  EXPECT_EQ(j["strategy"], "easgd");
  EXPECT_EQ(j["model"], "mlp");
  EXPECT_EQ(j["steps"], 40);
  EXPECT_EQ(j["samples"], 2000);
  EXPECT_EQ(j["epochs"], 2);
  EXPECT_TRUE(j["test"]["accuracy"].is_null());
  EXPECT_EQ(j["exchange"]["bytes"], j["exchange"]["count"].get<int>() * 8 * 7960);
  EXPECT_DOUBLE_EQ(j["simulated"]["alone_images_per_s"], 5000);
  EXPECT_DOUBLE_EQ(j["simulated"]["ideal_images_per_s"], 20'000);
  EXPECT_NEAR(j["simulated"]["efficiency"].get<double>(), j["train"]["images_per_s"].get<double>() / 20'000, 1e-12);
  EXPECT_NEAR(j["simulated"]["train_s"].get<double>(), 2000 / j["train"]["images_per_s"].get<double>(), 1e-12);
  EXPECT_EQ(j["per_worker"].size(), 4U);
}

TEST_F(Simulate, TwoRunsPrintTheSameBytes) {
  const std::vector<std::string> noisy{"--json", "--cluster-set", "hosts.node.step_sigma=0.3"};
  const auto once = run(noisy), again = run(noisy);
  ASSERT_EQ(once.code, 0) << once.err;
  EXPECT_EQ(once.out, again.out);
  auto other = noisy;
  other.insert(other.end(), {"--seed", "2"});
  EXPECT_NE(run(other).out, once.out);
}

TEST_F(Simulate, TakesAModelOfTheClusterFileAndAnotherLength) {
  const auto outcome = run({"--json", "--model", "big", "--steps", "6", "--workers", "8"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto j = json::parse(outcome.out);
  EXPECT_EQ(j["model"], "big");
  EXPECT_EQ(j["steps"], 48);
  EXPECT_EQ(j["exchange"]["bytes"], j["exchange"]["count"].get<int>() * 8'000'000);
  EXPECT_DOUBLE_EQ(j["simulated"]["alone_images_per_s"], 500);
}

TEST_F(Simulate, TakesFeaturesThatThisBuildCannotTrainWith) {
  const auto outcome = run({"--set", "strategy.name=bsp", "--set", "exchange.algorithm=asa16", "--set",
                            "exchange.wire=fp16", "--set", "cluster.device=cuda", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["device"], "cuda");
}

TEST_F(Simulate, PlainOutputHasTheSpeedAndItsLimits) {
  const auto outcome = run({});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("easgd, mlp: 4 workers, 1 server, on " + cluster_ + "\n")) << outcome.out;
  EXPECT_NE(outcome.out.find(" times worker 0 alone"), std::string::npos);
}

TEST_F(Simulate, ErrorsAreOneLineAndAnExitCode) {
  for (const auto& more : std::vector<std::vector<std::string>>{{"--workers", "9"},
                                                                {"--model", "small"},
                                                                {"--cluster-set", "hosts.node.stepms=3"},
                                                                {"--set", "strategy.tau=0"}}) {
    const auto outcome = run(more);
    EXPECT_EQ(outcome.code, 78) << more.back();
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
  }
  EXPECT_EQ(troupe({"simulate", config_, "--cluster", folder_.file("nowhere.toml")}).code, 78);
  EXPECT_EQ(run({"--from", folder_.file("nowhere")}).code, 78);
  EXPECT_EQ(troupe({"simulate", config_}).code, 2);
  EXPECT_EQ(run({"--workers", "0"}).code, 2);
  EXPECT_EQ(run({"--gradients", "--steps", "3"}).code, 2);
}

TEST_F(Simulate, WarnsOfUnlikelySettings) {
  const auto outcome =
      run({"--set", "strategy.tau=11", "--set", "strategy.n_push=3", "--json"});  // 10 steps per worker
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(
      outcome.err,
      "strategy.n_push is not used by strategy easgd\nwarning: --set: strategy.tau = 11 is longer than the run: a "
      "worker takes 10 steps, so that it trains alone until the end\n");
  EXPECT_EQ(run({"--set", "strategy.tau=11", "--steps", "11"}).err, "");
}

TEST_F(Simulate, ExploringTakesNoForecastsArguments) {
  for (const auto& more : std::vector<std::vector<std::string>>{
           {config_}, {"--cluster", cluster_}, {"--steps", "3"}, {"--set", "strategy.tau=2"}, {"--workers", "3"}}) {
    std::vector<std::string> arguments{"simulate", "--explore", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(troupe(arguments).code, 2) << more.front();
  }
  EXPECT_EQ(troupe({"simulate", "--explore", "1", "--seed", "3"}).code, 0);
}

TEST_F(Simulate, CountsThatWouldOverflowAreRefused) {
  for (const auto& more :
       std::vector<std::vector<std::string>>{{"--steps", "20", "--set", "data.batch=9223372036854775807"},
                                             {"--steps", "1000000000", "--set", "data.batch=1000000000"},
                                             {"--set", "run.max_seconds=1e300"},
                                             {"--cluster-set", "hosts.node.step_ms=1e12"}}) {
    const auto outcome = run(more);
    EXPECT_EQ(outcome.code, 78) << more.back();
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
  }
}

TEST_F(Simulate, PlacementOfMixedHoldsUnlessTheClusterFileSetsIt) {
  const auto cluster = folder_.write("d.toml", std::string(kCluster) + "[servers]\nhosts = \"none\"\n");
  const std::vector<std::string> mixed{"simulate",  config_,
                                       "--cluster", cluster,
                                       "--set",     "strategy.name=mixed",
                                       "--set",     "strategy.placement=dedicated"};
  const auto refused = troupe(mixed);
  EXPECT_EQ(refused.code, 78);
  EXPECT_NE(refused.err.find("dedicated servers need the NAME of a [hosts.NAME]"), std::string::npos) << refused.err;
  auto said = mixed;
  said.insert(said.end(), {"--cluster-set", "servers.placement=colocated"});
  EXPECT_EQ(troupe(said).code, 0);
}

// A synchronous run gives the same bits in training and in simulation.
TEST_F(Simulate, GradientsGiveTheModelOfARealRun) {
  const std::vector<std::string> settings{"--set", "strategy.name=bsp",     "--set", "cluster.workers=2",
                                          "--set", "data.test_samples=200", "--json"};
  auto forecast = std::vector<std::string>{"--gradients"};
  forecast.insert(forecast.end(), settings.begin(), settings.end());
  const auto simulated = run(forecast);
  ASSERT_EQ(simulated.code, 0) << simulated.err;
  std::vector<std::string> training{"train", config_, "--quiet", "--set", "run.dir=" + folder_.file("runs")};
  training.insert(training.end(), settings.begin(), settings.end());
  const auto trained = troupe(training);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const auto virtual_run = json::parse(simulated.out), real_run = json::parse(trained.out);
  EXPECT_EQ(virtual_run["center_hash"], real_run["center_hash"]);
  EXPECT_EQ(virtual_run["test"], real_run["test"]);
  EXPECT_EQ(virtual_run["steps"], real_run["steps"]);
  EXPECT_EQ(virtual_run["simulated"]["epochs"].size(), 2U);
}

TEST_F(Simulate, TakesAProfileThatBenchStepWrote) {
  const auto profile = folder_.file("profile.json");
  const auto bench = troupe({"bench", "step", config_, "--batch", "4", "--seconds", "0.01", "--profile", profile});
  ASSERT_EQ(bench.code, 0) << bench.err;
  const auto steps = json::parse(contents(profile))["steps_ms"].get<std::vector<double>>();
  ASSERT_FALSE(steps.empty());
  const auto cluster = folder_.write("p.toml", "[hosts.node]\ncount = 4\nprofile = \"" + profile + "\"\n");
  const auto outcome = troupe({"simulate", config_, "--cluster", cluster, "--set", "data.batch=4", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  double sum = 0;
  for (const double ms : steps) sum += ms;
  EXPECT_NEAR(json::parse(outcome.out)["simulated"]["alone_images_per_s"].get<double>(),
              4e3 * static_cast<double>(steps.size()) / sum, 1e-3);
}

// The profile's time, not the cluster file's, and only for the model that it is of.
TEST_F(Simulate, TakesAProfileInPlaceOfTheClustersTimes) {
  const auto profile = folder_.write("p.json", R"({"model":"mlp","batch":50,"parameters":7960,"steps_ms":[2.5]})");
  const auto outcome = run({"--from", profile, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto simulated = json::parse(outcome.out)["simulated"];
  EXPECT_DOUBLE_EQ(simulated["alone_images_per_s"], 20'000);
  EXPECT_DOUBLE_EQ(simulated["step_ms"], 2.5);
  EXPECT_EQ(simulated["step_times"], "measured, in " + profile);
  const auto other = run({"--from", profile, "--set", "model.widths=[12]"});
  EXPECT_EQ(other.code, 78);
  EXPECT_NE(other.err.find("is of mlp (7960 parameters) with batch 50, and this run has mlp (9550 parameters)"),
            std::string::npos)
      << other.err;
}

TEST_F(Simulate, AModelDoesNotTakeAnotherModelsSpeed) {
  const std::vector<std::string> lenets{"--cluster-set", "hosts.node.model=lenet"};
  const auto refused = run(lenets);
  EXPECT_EQ(refused.code, 78);
  EXPECT_TRUE(is_one_line(refused)) << refused.err;
  EXPECT_NE(refused.err.find("hosts.node.step_ms is the time of lenet, and this run trains mlp"), std::string::npos)
      << refused.err;
  auto measured = lenets;
  measured.insert(measured.end(), {"--measure", "--json"});
  const auto outcome = run(measured);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto simulated = json::parse(outcome.out)["simulated"];
  EXPECT_EQ(simulated["step_times"], "measured now, on this machine");
  EXPECT_GT(simulated["step_ms"].get<double>(), 0);
  EXPECT_EQ(run({"--measure", "--model", "big"}).code, 2);
  const std::string configs = TROUPE_SOURCE_DIR "/configs/";
  const auto shipped = troupe({"simulate", configs + "cifar10-easgd.toml", "--cluster", configs + "clusters/lan.toml"});
  EXPECT_EQ(shipped.code, 78);
  EXPECT_NE(shipped.err.find("is the time of lenet, and this run trains cifar"), std::string::npos) << shipped.err;
}

// 31,840 bytes at 1 Gbit/s keep a card of a ring of four busy for 2 · 3/4 · 254.72 µs in every step of 10 ms and 0.98 ms of exchange.
TEST_F(Simulate, ReductionsCountAtTheNetworkCards) {
  const auto outcome = run({"--set", "strategy.name=bsp", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto j = json::parse(outcome.out);
  const double step_s = j["simulated"]["train_s"].get<double>() / 10;  // 10 steps of each of the four workers
  EXPECT_NEAR(j["simulated"]["busiest_card"].get<double>(), 1.5 * 254.72e-6 / step_s, 1e-3);
  const auto text = run({"--set", "strategy.name=bsp"});
  EXPECT_EQ(text.out.find("busiest network card 0.0 %"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("  a step takes 10.00 ms (hosts.node.step_ms of " + cluster_ + ", for any model)\n"),
            std::string::npos)
      << text.out;
}

}  // namespace
}  // namespace troupe::apps
