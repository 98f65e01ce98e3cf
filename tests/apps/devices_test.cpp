// Runs over several devices, with "cuda_on_host" in place of a GPU: the program of a GPU, executed by the host.
#include "apps/devices.hpp"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/buffer.hpp"
#include "nn/device_names.hpp"
#include "nn/zoo/models.hpp"
#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;

constexpr auto kMixed = R"(cluster.devices=["cpu", "cuda_on_host"])";

/// Small convolutions, so that the arenas' own layouts differ; no relu, whose zero turns rounding errors into steps. Products of linear layers
/// diverge easily: with a rate of 0.05 one easgd run in 200 did, in float32 on the CPU, too, by nothing but its order of exchanges.
class Devices : public ::testing::Test {
 protected:
  std::string config(const std::string& strategy) {
    return folder_.write(strategy + ".toml",
                         tests::small_config("[run]\nepochs = 1\ndir = \"" + folder_.file("runs") + "\"\n",
                                             "[train]\nlr = 0.01\n[strategy]\nname = \"" + strategy +
                                                 "\"\n[cluster]\nworkers = 2\nkernels = \"fixed\"\n"));
  }
  /// The summary of a run; its directory is run_.
  json train(const std::string& strategy, std::vector<std::string> settings, bool convolution = true) {
    std::vector<std::string> all{"train", config(strategy), "--quiet", "--json"};
    if (convolution)
      settings.insert(settings.begin(),
                      {"data.train_samples=320", "data.test_samples=100", "model.name=layers",
                       R"(model.layers=[{type="conv2d",outputs=4,kernel=5,stride=2},{type="batch_norm"},)"
                       R"({type="conv2d",outputs=6,kernel=3},{type="linear",outputs=10}])"});
    for (const auto& setting : settings) all.insert(all.end(), {"--set", setting});
    return summary_of(troupe(std::move(all)));
  }
  json resume(std::vector<std::string> settings) {
    std::vector<std::string> all{"train", "--resume", run_, "--quiet", "--json"};
    for (const auto& setting : settings) all.insert(all.end(), {"--set", setting});
    return summary_of(troupe(std::move(all)));
  }
  json summary_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (outcome.code != 0) return json{{"center_hash", outcome.err}, {"test", {{"loss", std::nan("")}}}};
    auto summary = json::parse(outcome.out);
    run_ = summary["run"];
    return summary;
  }
  void expect_replay() const {
    const auto outcome = troupe({"replay", run_, "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(json::parse(outcome.out)["complete"], true) << outcome.out;
  }
  [[nodiscard]] json plan() const { return json::parse(contents(run_ + "/plan.json")); }

  TemporaryDirectory folder_;
  std::string run_;
};

TEST_F(Devices, BspOfTwoKindsComputesWhatOneKindComputes) {
  const auto cpus = train("bsp", {});
  const auto mixed = train("bsp", {kMixed});
  EXPECT_NEAR(mixed["test"]["loss"].get<double>(), cpus["test"]["loss"].get<double>(), 1e-4);
  EXPECT_NE(mixed["center_hash"], cpus["center_hash"]) << "nothing was computed elsewhere";
  EXPECT_EQ(mixed["device"], "cpu, cuda_on_host");
  EXPECT_EQ(plan()["parts"].size(), 2) << plan();
  expect_replay();
  EXPECT_EQ(train("bsp", {kMixed})["center_hash"], mixed["center_hash"]) << "the same run twice";
}

TEST_F(Devices, AsynchronousStrategiesMixKinds) {
  const auto before = train("easgd", {kMixed, "strategy.tau=2", "run.epochs=2"});
  EXPECT_LT(before["test"]["loss"].get<double>(), 2.2);
  expect_replay();
}

TEST_F(Devices, RunsResumeOnOtherDevices) {
  (void)train("easgd", {"cluster.device=cpu"});
  EXPECT_EQ(plan()["backend"], "cpu");
  (void)resume({"run.epochs=2", "cluster.device=cuda_on_host"});
  EXPECT_EQ(plan()["backend"], "gpu");
  const auto mixed = resume({"run.epochs=3", kMixed});
  EXPECT_EQ(plan()["backend"], "mixed");
  EXPECT_EQ(mixed["device"], "cpu, cuda_on_host");
  const auto back = resume({"run.epochs=4", "cluster.devices=[]", "cluster.device=cpu"});
  EXPECT_EQ(back["device"], "cpu");
  expect_replay();
}

TEST_F(Devices, HalfPrecisionReplaysOverSegmentsOfTheJournal) {
  // A segment begins only once its start state is on disk. Longer steps give a slow disk the time.
  for (const char* step_ms : {"0", "10", "40"}) {
    const auto trained = train("easgd", {"cluster.device=cuda_on_host", "cluster.precision=fp16", "run.epochs=4",
                                         "data.train_samples=1200", "run.checkpoint_every=20 steps",
                                         "run.journal=100 KB", std::string("cluster.synthetic_step_ms=") + step_ms});
    EXPECT_EQ(trained["precision"], "fp16");
    if (std::filesystem::exists(run_ + "/journal-0002.bin")) break;
  }
  EXPECT_TRUE(std::filesystem::exists(run_ + "/journal-0002.bin")) << "there was one segment only";
  EXPECT_NE(contents(run_ + "/metrics.jsonl").find("\"loss_scale\":65536.0"), std::string::npos);
  expect_replay();
}

constexpr auto kTwo = R"(cluster.devices=["cuda_on_host:0", "cuda_on_host:1"])";

/// Kernels and copies of one device name the memory of the other.
TEST_F(Devices, SeveralDevicesOfAKindReachEachOthersMemory) {
  const auto several = train("bsp", {kTwo});
  expect_replay();
  EXPECT_EQ(several["center_hash"], train("bsp", {"cluster.device=cuda_on_host"})["center_hash"]);
  for (const char* strategy : {"easgd", "gossip", "diloco"}) {
    SCOPED_TRACE(strategy);
    (void)train(strategy, {kTwo, "cluster.servers=2"});
    expect_replay();
  }
}

TEST(DevicesBackends, ShareMemoryWhereEachReachesEachOther) {
  const auto shares = [](const std::vector<std::string>& names) {
    return (*make_devices_backend(names, 4))->capabilities().shares_memory;
  };
  EXPECT_TRUE(shares({"cuda_on_host:0", "cuda_on_host:1"}));
  EXPECT_TRUE(shares({"cuda_on_host"}));
  EXPECT_FALSE(shares({"cuda_on_host", "cpu"}));
  std::vector<gpu::FoundDevice> found(3);
  found[0].peers = {1};
  found[1].peers = {0, 2};
  found[2].peers = {};
  EXPECT_TRUE(reach_each_other(found, {0, 1}));
  EXPECT_TRUE(reach_each_other(found, {2}));
  EXPECT_FALSE(reach_each_other(found, {1, 2})) << "2 does not reach 1";
  EXPECT_FALSE(reach_each_other(found, {0, 1, 2}));
  EXPECT_FALSE(reach_each_other(found, {0, 3})) << "there is no device 3";
}

/// Virtual time: each worker's gradients are computed on its own device, as in the run.
TEST_F(Devices, ASimulationComputesOnTheDevicesOfItsWorkers) {
  const auto cluster = folder_.write("cluster.toml",
                                     "[hosts.node]\ncount = 2\nstep_ms = 4\n[network]\nlatency_us = 50\n"
                                     "gbit_per_s = 1\n");
  const auto simulated = [&](const std::string& devices) {
    const auto outcome = troupe({"simulate", config("bsp"), "--cluster", cluster, "--gradients", "--json", "--set",
                                 devices, "--set", "data.train_samples=320"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out)["center_hash"] : json();
  };
  const auto mixed = simulated(kMixed);
  EXPECT_EQ(mixed, train("bsp", {kMixed, "data.train_samples=320"}, false)["center_hash"]);
  EXPECT_NE(mixed, simulated("cluster.device=cpu"));
  EXPECT_NE(mixed, simulated("cluster.device=cuda_on_host"));
}

/// Each worker's step is timed on its own device.
TEST_F(Devices, ADryRunTimesEveryKind) {
  const auto planned =
      troupe({"train", config("easgd"), "--dry-run", "--set", R"(cluster.devices=["cuda_on_host","cpu"])"});
  EXPECT_EQ(planned.code, 0) << planned.err;
}

TEST_F(Devices, ABenchmarkOfAConfigurationIsOfTheDeviceThatWasAsked) {
  const auto outcome = troupe({"bench", "step", config("easgd"), "--device", "cuda_on_host", "--seconds", "0.01"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1 x cuda_on_host"), std::string::npos) << outcome.out;
}

TEST_F(Devices, ReplayOfRunsThatAreNotDeterministicComparesNoNumbers) {
  (void)train("easgd", {"cluster.device=cuda_on_host", "cluster.deterministic=false"}, false);
  const auto refused = troupe({"replay", run_});
  EXPECT_EQ(refused.code, 78);
  EXPECT_NE(refused.err.find("cluster.deterministic = false on cuda_on_host"), std::string::npos) << refused.err;
  EXPECT_EQ(troupe({"replay", run_, "--set", "train.lr=0.04"}).code, 0);
}

TEST_F(Devices, CheckSaysWhichWorkerComputesWhere) {
  const auto checked = troupe(
      {"check", config("easgd"), "--set", "cluster.workers=3", "--set", R"(cluster.devices=["cpu","cuda_on_host"])"});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_NE(checked.out.find("cpu: workers 0, 2; cuda_on_host: worker 1"), std::string::npos) << checked.out;
  EXPECT_NE(checked.err.find("in host memory in one process, and over several processes in host memory: some members"),
            std::string::npos)
      << checked.err;
  const auto device = troupe({"check", config("easgd"), "--set", "cluster.device=cuda_on_host"});
  EXPECT_NE(device.err.find("in device memory in one process, and over several processes in device memory"),
            std::string::npos)
      << device.err;
}

TEST_F(Devices, WhatADeviceDoesNotOfferIsOneLine) {
  struct Wrong {
    std::vector<std::string> settings;
    std::string message;
  };
  for (const auto& [settings, message] : {
           Wrong{{"cluster.precision=fp16"}, R"(cluster.precision = "fp16": a CPU computes in "fp32" or "bf16")"},
           Wrong{{"cluster.precision=tf32", kMixed}, R"(cluster.precision = "tf32": a CPU computes in)"},
           Wrong{{R"(cluster.devices=["cpu","cpu","cpu"])"}, "cluster.devices has 3 values for 2 workers"},
           Wrong{{"cluster.device=gpu"}, R"(cluster.device = "gpu")"},
           Wrong{{R"(cluster.devices=["cpu","cuda:x"])"}, "cluster.devices"},
       }) {
    std::vector<std::string> all{"check", config("easgd")};
    for (const auto& setting : settings) all.insert(all.end(), {"--set", setting});
    const auto outcome = troupe(all);
    EXPECT_EQ(outcome.code, 78) << message;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(DevicesBackends, WorkersOfAHostTakeItsGpusInTurn) {
  const auto ordinal = [](const char* name, int local_rank, int devices) {
    return ordinal_of(*nn::parse_device_name(name), local_rank, devices);
  };
  EXPECT_EQ(ordinal("cuda", 0, 2), 0);
  EXPECT_EQ(ordinal("cuda", 1, 2), 1);
  EXPECT_EQ(ordinal("cuda:local", 6, 4), 2);
  EXPECT_EQ(ordinal("cuda:5", 1, 2), 5) << "loading it says that it is not there";
}

/// A process opens the GPUs of its own workers only, but its loaders may ask for memory before one is open.
TEST(DevicesBackends, TellWhatGpusCanDoBeforeOneIsOpen) {
  const auto backend = make_devices_backend({"cuda_on_host:1"}, 1);
  ASSERT_TRUE(backend) << backend.error().message;
  const auto capabilities = (*backend)->capabilities();
  EXPECT_EQ(capabilities.arena_space, core::MemorySpace::device);
  EXPECT_TRUE(capabilities.takes_bytes);
  EXPECT_EQ((*backend)->name(), "gpu");
  ASSERT_NE(capabilities.batches, nullptr);
  EXPECT_EQ(capabilities.batches->space(), core::MemorySpace::host_pinned);
  const auto batch = core::Buffer::allocate(*capabilities.batches, 100);
  ASSERT_TRUE(batch) << batch.error().message;
  EXPECT_EQ((*backend)->capabilities().batches, capabilities.batches);
}

/// A plan without a part for a device: its choices are made by rule, not measured.
TEST(DevicesBackends, TakeTheirPartOfAPlan) {
  const auto backend = make_devices_backend({"cpu"}, 1);
  ASSERT_TRUE(backend) << backend.error().message;
  nn::ModelConfig model;
  model.name = "lenet";
  const auto graph = nn::build_model(model, {1, 28, 28}, 10);
  core::HostAllocator memory;
  nn::CompileOptions options{.batch = 2, .canonical_arenas = true, .arenas = &memory, .measure = false};
  const auto on = [&](const std::string& device, const nn::Plan* plan) {
    auto own = options;
    own.device_name = device;
    own.plan = plan;
    auto replica = (*backend)->compile(*graph, own);
    EXPECT_TRUE(replica) << replica.error().message;
    return std::move(*replica);
  };
  const auto cpu = on("cpu", nullptr);
  const auto gpu = on("cuda_on_host", nullptr);
  EXPECT_EQ(cpu->layout_fingerprint(), gpu->layout_fingerprint());
  const auto both = nn::joined(cpu->plan(), gpu->plan());
  EXPECT_EQ(on("cpu", &both)->plan().json, cpu->plan().json);
  EXPECT_EQ(on("cuda_on_host:1", &both)->plan().json, gpu->plan().json);
  EXPECT_EQ(on("cuda_on_host", &cpu->plan())->plan().json, gpu->plan().json);
  options.device_name = "npu";
  const auto unknown = (*backend)->compile(*graph, options);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::apps
