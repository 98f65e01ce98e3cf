// Runs over several sites whose members exchange in device memory: lent in place where the sites map each other's, else messages staged through
// page-locked memory; sums, elastic pairs and shards on the device. Against the same runs with copies in host memory, over every endpoint of
// this build.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "experiment/state/vector_memory.hpp"
#include "gpu/device/faulty_device.hpp"
#include "strategies/registry/registry.hpp"
#include "tests/gpu/arenas/device_runs.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::tests {
namespace {

constexpr const char* kOnDevices = "cluster.device=cuda_on_host";
constexpr const char* kStaged = "exchange.map_devices=false";
constexpr const char* kStrided =
    R"(model.layers=[{type="conv2d", outputs=4, kernel=5, stride=3}, {type="batch_norm"}, {type="relu"},)"
    R"( {type="flatten"}, {type="linear", outputs=10}])";

/// Those that members of one process can use.
std::vector<std::string> endpoints() {
  std::vector<std::string> names;
  const auto built = transport::built_in_endpoints();
  for (const auto& info : transport::endpoint_infos())
    if (!info.needs_job && built.absence(info.name).empty()) names.emplace_back(info.name);
  return names;
}

RunOptions site_options(const std::string& strategy, const std::string& endpoint, const RunOptions& more = {}) {
  auto options = run_options_of(strategy, {"data.train_samples=400", "exchange.endpoint=" + endpoint});
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

nlohmann::json exchange_of(const SmallRun& run) {
  return nlohmann::json::parse(std::ifstream(run.run_directory() / "plan.json")).at("exchange");
}

void expect_replay(const SmallRun& run, const experiment::RunEnd& end) {
  const auto report = replay::replay_run({run.run_directory().string(), {}}, resident());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->hashes(), 0U);
  EXPECT_EQ(report->summary.center_hash, end.summary.center_hash);
}

TEST(DeviceSites, HaveTheBitsOfHostCopiesOverEveryEndpoint) {
  const std::vector<std::pair<std::string, RunOptions>> runs{
      {"bsp", {"model.name=own", kStrided}},
      {"bsp", {"exchange.algorithm=ring", "cluster.workers=3"}},
      {"local_sgd", {"strategy.tau=4"}},
      {"diloco", {"strategy.tau=4", "strategy.fragments=2", "cluster.server_placement=dedicated"}},
      {"easgd",
       {"strategy.tau=2", "cluster.workers=1", "cluster.server_placement=dedicated", "model.name=own", kStrided}},
      {"downpour", {"cluster.workers=1", "cluster.server_placement=dedicated"}},
  };
  ASSERT_GE(endpoints().size(), 3U);
  for (const auto& endpoint : endpoints())
    for (const auto& [strategy, more] : runs) {
      SCOPED_TRACE(testing::Message() << endpoint << " " << strategy << " " << testing::PrintToString(more));
      auto on_device = more;
      on_device.emplace_back(kOnDevices);
      auto in_place = on_device;
      on_device.emplace_back(kStaged);
      SmallRun device(site_options(strategy, endpoint, on_device), resident());
      SmallRun mapped(site_options(strategy, endpoint, in_place), resident());
      SmallRun host(site_options(strategy, endpoint, more), resident());
      const auto end = device.train();
      const auto mapped_end = mapped.train();
      const auto expected = host.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      ASSERT_FALSE(mapped_end.failed) << mapped_end.error.message;
      ASSERT_FALSE(expected.failed) << expected.error.message;
      EXPECT_EQ(mapped.tensors(), host.tensors());
      EXPECT_TRUE(exchange_of(mapped).value("mapped", false));
      EXPECT_FALSE(exchange_of(device).contains("mapped"));
      EXPECT_EQ(device.tensors(), host.tensors());
      EXPECT_EQ(end.summary.test_loss, expected.summary.test_loss);
      EXPECT_TRUE(exchange_of(device).value("on_devices", false));
      EXPECT_FALSE(exchange_of(device).at("packed"));
      EXPECT_FALSE(exchange_of(host).contains("on_devices"));
    }
}

TEST(DeviceSites, RoundOnTheWireAsHostCopiesDo) {
  for (const char* wire : {"exchange.wire=bf16", "exchange.wire=fp16"})
    for (const char* strategy : {"bsp", "local_sgd"}) {
      SCOPED_TRACE(testing::Message() << wire << " " << strategy);
      SmallRun device(site_options(strategy, "tcp", {wire, kOnDevices, "cluster.workers=3"}), resident());
      SmallRun host(site_options(strategy, "tcp", {wire, "cluster.workers=3"}), resident());
      const auto end = device.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      ASSERT_FALSE(host.train().failed);
      EXPECT_EQ(device.tensors(), host.tensors());
      expect_replay(device, end);
    }
  for (const char* strategy : {"easgd", "downpour", "gossip"}) {
    SCOPED_TRACE(strategy);
    SmallRun run(site_options(strategy, "tcp", {"exchange.wire=bf16", kOnDevices}), resident());
    const auto end = run.train();
    ASSERT_FALSE(end.failed) << end.error.message;
    expect_replay(run, end);
  }
}

TEST(DeviceSites, EveryStrategyReplaysWithTheSameHashes) {
  for (const auto& row : strategies::registry())
    for (const RunOptions& more : std::vector<RunOptions>{
             {kOnDevices},
             {kOnDevices, kStaged},
             {kOnDevices, "cluster.workers=3", "train.ema=0.9", "cluster.server_placement=dedicated"}}) {
      SCOPED_TRACE(testing::Message() << row.name << " " << testing::PrintToString(more));
      SmallRun run(site_options(row.name, "inproc", more), resident());
      const auto end = run.train_on_hosts(more.size() < 3 ? std::vector<std::uint32_t>{0, 0, 1}
                                                          : std::vector<std::uint32_t>{0, 0, 0, 1});
      ASSERT_FALSE(end.failed) << end.error.message;
      EXPECT_TRUE(exchange_of(run).value("on_devices", false));
      expect_replay(run, end);
    }
}

// A message that leaves before the device has written the vector, or a vector that is used before it has come, gives other bits.
TEST(DeviceSites, EveryOrderOfTheDevicesWorkGivesTheSameBits) {
  const std::vector<std::pair<const char*, RunOptions>> runs{
      {"bsp", {kStaged}}, {"bsp", {}}, {"bsp", {"exchange.algorithm=shm"}}, {"diloco", {kStaged}}, {"diloco", {}}};
  for (const auto& [strategy, more] : runs) {
    SCOPED_TRACE(testing::Message() << strategy << " " << testing::PrintToString(more));
    auto options = more;
    options.emplace_back(kOnDevices);
    SmallRun plain(site_options(strategy, "inproc", options), resident());
    ASSERT_FALSE(plain.train().failed);
    for (const std::uint64_t seed : {1U, 2U}) {
      const auto scheduled = resident_backend(seed);
      SmallRun run(site_options(strategy, "inproc", options), *scheduled);
      const auto end = run.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      EXPECT_EQ(run.tensors(), plain.tensors()) << "seed " << seed;
    }
  }
}

TEST(DeviceSites, ResumeWithTheirState) {
  for (const char* strategy : {"bsp", "easgd"}) {
    SCOPED_TRACE(strategy);
    SmallRun run(site_options(strategy, "inproc", {kOnDevices}), resident());
    ASSERT_FALSE(run.train().failed);
    const auto end = run.resume({"run.epochs=2"});
    ASSERT_FALSE(end.failed) << end.error.message;
    expect_replay(run, end);
  }
}

// Sums of workers of one host, in the memory of their devices.
TEST(DeviceSites, SumInMappedDeviceMemoryWithTheBitsOfMessages) {
  for (const char* endpoint : {"inproc", "shm"})
    for (const char* strategy : {"bsp", "local_sgd", "mixed", "pairs"}) {
      SCOPED_TRACE(testing::Message() << endpoint << " " << strategy);
      const RunOptions more{"cluster.workers=3", "exchange.algorithm=shm", kOnDevices};
      SmallRun mapped(site_options(strategy, endpoint, more), resident());
      const auto end = mapped.train();
      ASSERT_FALSE(end.failed) << end.error.message;
      EXPECT_TRUE(exchange_of(mapped).value("mapped", false));
      EXPECT_EQ(exchange_of(mapped).at("reductions").at(0).at("algorithm"), "shm");
      expect_replay(mapped, end);
      if (strategy != std::string("bsp") && strategy != std::string("local_sgd")) continue;  // not the same run twice
      SmallRun messages(site_options(strategy, endpoint, {"cluster.workers=3", "exchange.algorithm=asa"}), resident());
      ASSERT_FALSE(messages.train().failed);
      EXPECT_EQ(mapped.tensors(), messages.tensors());
    }
}

// Only members of one host map memory, and sums in it need them all.
TEST(DeviceSites, SumsOverSeveralHostsGoByMessages) {
  const RunOptions more{"cluster.workers=3", "exchange.algorithm=shm", kOnDevices};
  SmallRun apart(site_options("bsp", "inproc", more), resident());
  SmallRun together(site_options("bsp", "inproc", more), resident());
  ASSERT_FALSE(apart.train_on_hosts({0, 0, 0, 1}).failed);
  ASSERT_FALSE(together.train().failed);
  EXPECT_TRUE(exchange_of(apart).value("mapped", false)) << "two workers share a host";
  EXPECT_EQ(exchange_of(apart).at("reductions").at(0).at("algorithm"), "asa");
  EXPECT_EQ(apart.tensors(), together.tensors());
  SmallRun alone(site_options("bsp", "inproc", {kOnDevices}), resident());
  ASSERT_FALSE(alone.train_on_hosts({0, 1, 2}).failed);
  EXPECT_FALSE(exchange_of(alone).contains("mapped"));
}

// A driver, a container or a second device refuses: each call of the sharing fails once.
TEST(DeviceSites, WhatCannotBeMappedTravelsWithTheSameBits) {
  gpu::HostDevice host{gpu::HostDeviceOptions{.hides_memory = true}};
  const auto device = std::make_shared<gpu::FaultyDevice>(host);
  const auto backend = gpu::make_backend({device}, "gpu", core::MemorySpace::device);
  for (const char* strategy : {"bsp", "diloco"}) {
    auto options = site_options(strategy, "shm", {kOnDevices});
    if (strategy == std::string("bsp")) options.emplace_back("exchange.algorithm=shm");
    device->set({});
    SmallRun sound(options, *backend);
    ASSERT_FALSE(sound.train().failed);
    const auto all = device->calls(gpu::CallKind::sharing);
    ASSERT_GT(all, 10U);
    std::size_t staged = 0;
    for (std::uint64_t number = 1; number <= std::min<std::uint64_t>(all, 40); ++number) {
      SCOPED_TRACE(testing::Message() << strategy << ", call " << number << " of " << all);
      device->set(gpu::Fault{.kind = gpu::CallKind::sharing, .number = number});
      SmallRun run(options, *backend);
      const auto end = run.train();
      if (end.failed) {  // memory that the run has begun to use
        EXPECT_TRUE(end.error.code == core::Errc::io || end.error.code == core::Errc::peer_lost) << end.error.message;
        continue;
      }
      EXPECT_EQ(run.tensors(), sound.tensors());
      if (exchange_of(run).contains("mapped")) continue;
      ++staged;
      EXPECT_EQ(exchange_of(run).at("reductions").at(0).at("algorithm"), "asa");
    }
    EXPECT_GE(staged, 6U) << "each of two sites: its memory, the trial, the handle";
  }
  gpu::HostDevice none{gpu::HostDeviceOptions{.hides_memory = true, .shares = ""}};
  const auto unshared =
      gpu::make_backend({std::make_shared<gpu::FaultyDevice>(none)}, "gpu", core::MemorySpace::device);
  SmallRun run(site_options("bsp", "shm", {kOnDevices, "exchange.algorithm=shm"}), *unshared);
  SmallRun sound(site_options("bsp", "shm", {kOnDevices}), resident());
  ASSERT_FALSE(run.train().failed);
  ASSERT_FALSE(sound.train().failed);
  EXPECT_EQ(run.tensors(), sound.tensors());
  EXPECT_FALSE(exchange_of(run).contains("mapped"));
}

// The library of MPI sums in host memory, as members on CPUs do; so does "shm" where devices shall not be mapped.
TEST(DeviceSites, ExchangeInHostMemoryWhereTheConfigurationNeedsIt) {
  const auto decided = [](const RunOptions& options) {
    const SmallRun run(options);
    const auto settings = run.settings();
    return experiment::device_exchange(settings.value());
  };
  EXPECT_TRUE(decided({kOnDevices, "exchange.endpoint=shm"}).possible);
  EXPECT_FALSE(decided({"exchange.endpoint=shm"}).possible);
  EXPECT_EQ(decided({"exchange.endpoint=shm"}).why_not, "") << "there is no device";
  EXPECT_TRUE(decided({kOnDevices, "exchange.endpoint=shm", "exchange.algorithm=shm"}).possible);
  const auto mapped = decided({kOnDevices, "exchange.endpoint=shm", "exchange.algorithm=shm", kStaged});
  EXPECT_FALSE(mapped.possible);
  EXPECT_NE(mapped.why_not.find("exchange.algorithm = \"shm\""), std::string::npos) << mapped.why_not;
  const auto mixed = decided({R"(cluster.devices=["cpu","cuda_on_host"])", "exchange.endpoint=shm"});
  EXPECT_FALSE(mixed.possible);
  EXPECT_NE(mixed.why_not.find("CPU"), std::string::npos) << mixed.why_not;

  SmallRun summed(site_options("bsp", "shm", {kOnDevices, "exchange.algorithm=shm", kStaged}), resident());
  ASSERT_FALSE(summed.train().failed);
  EXPECT_FALSE(exchange_of(summed).contains("on_devices"));
}

/// A backend that has no copier, as one whose module for endpoints is missing.
class WithoutCopier final : public nn::Backend {
 public:
  explicit WithoutCopier(nn::Backend& inner) : inner_(inner) {}
  [[nodiscard]] std::string name() const override { return inner_.name(); }
  [[nodiscard]] nn::Capabilities capabilities() const override { return inner_.capabilities(); }
  [[nodiscard]] core::Allocator& arenas(const nn::CompileOptions& options) noexcept override {
    return inner_.arenas(options);
  }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return inner_.kernels(); }
  [[nodiscard]] const core::Kernels& kernels_for(const core::Allocator& memory) const noexcept override {
    return inner_.kernels_for(memory);
  }
  [[nodiscard]] core::Result<std::shared_ptr<core::DeviceCopier>> copier_for(const core::Allocator&) override {
    return core::fail(core::Errc::config, "it has none");
  }
  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                                   const nn::CompileOptions& options) override {
    return inner_.compile(graph, options);
  }

 private:
  nn::Backend& inner_;
};

TEST(DeviceSites, AProcessWithoutACopierExchangesTheSameMessagesInHostMemory) {
  core::HostAllocator host;
  WithoutCopier backend(resident());
  const experiment::ExchangePlan plan{.endpoint = "tcp", .on_devices = true};
  const auto with = experiment::vector_memory(resident(), plan, resident().arenas(), host);
  EXPECT_EQ(with.memory, &resident().arenas());
  EXPECT_NE(with.copier, nullptr);
  const auto without = experiment::vector_memory(backend, plan, resident().arenas(), host);
  EXPECT_EQ(without.memory, &host);
  EXPECT_NE(experiment::describe(without).find("it has none"), std::string::npos);
  const auto on_cpu = experiment::vector_memory(tests::backend(), plan, tests::backend().arenas(), host);
  EXPECT_EQ(on_cpu.memory, &host);
  EXPECT_NE(experiment::describe(on_cpu).find("no device"), std::string::npos);
  const auto alone = experiment::vector_memory(resident(), {}, resident().arenas(), host);
  EXPECT_EQ(alone.memory, &resident().arenas());
  EXPECT_EQ(alone.copier, nullptr) << "in place nothing is staged";

  SmallRun copies(site_options("local_sgd", "tcp", {kOnDevices}), backend);
  SmallRun device(site_options("local_sgd", "tcp", {kOnDevices}), resident());
  ASSERT_FALSE(copies.train().failed);
  ASSERT_FALSE(device.train().failed);
  EXPECT_EQ(copies.tensors(), device.tensors());
}

TEST(DeviceSites, ADeviceThatIsLostEndsTheRunAsItsFailure) {
  gpu::HostDevice host{gpu::HostDeviceOptions{.hides_memory = true}};
  const auto device = std::make_shared<gpu::FaultyDevice>(host);
  const auto backend = gpu::make_backend({device}, "gpu", core::MemorySpace::device);
  for (const char* strategy : {"bsp", "easgd", "gossip"})
    for (const auto kind : {gpu::CallKind::copy, gpu::CallKind::synchronize, gpu::CallKind::launch}) {
      const auto options = site_options(strategy, "inproc", {kOnDevices});
      device->set({});
      ASSERT_FALSE(SmallRun(options, *backend).train().failed);
      const auto all = device->calls(kind);
      for (const std::uint64_t number : {all / 3, all * 2 / 3}) {
        SCOPED_TRACE(testing::Message() << strategy << ", " << to_string(kind) << " " << number << " of " << all);
        device->set(gpu::Fault{.kind = kind, .number = number, .lost = true});
        SmallRun run(options, *backend);
        const auto end = run.train();
        EXPECT_TRUE(device->struck());
        EXPECT_TRUE(end.failed);
        EXPECT_TRUE(end.error.code == core::Errc::io || end.error.code == core::Errc::peer_lost) << end.error.message;
      }
    }
}

}  // namespace
}  // namespace troupe::tests
