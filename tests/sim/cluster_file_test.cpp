#include "sim/cluster_file.hpp"

#include <gtest/gtest.h>

#include "sim/placement.hpp"

namespace troupe::sim {
namespace {

std::string error_of(const std::string& text) {
  const auto file = parse_cluster(text, "c.toml");
  if (file) return "good";
  EXPECT_EQ(file.error().code, core::Errc::config);
  return file.error().message;
}

std::string placing_error(const std::string& text, std::uint32_t workers, std::uint32_t servers) {
  const auto file = parse_cluster(text, "c.toml");
  if (!file) return file.error().message;
  const auto cluster = place(*file, {.workers = workers, .servers = servers});
  if (cluster) return "good";
  EXPECT_EQ(cluster.error().code, core::Errc::config);
  return cluster.error().message;
}

TEST(ClusterFile, NamesTheLineAndTheNearestKey) {
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = 3\nstep_sigm = 0.1\n"),
            "c.toml:3: unknown key \"hosts.a.step_sigm\" (nearest: \"hosts.a.step_sigma\")");
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = -3\n"), "c.toml:2: hosts.a.step_ms = -3: must be ≥ 0");
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = 3\n[netwrok]\nlatency_us = 1\n"),
            "c.toml:3: unknown section [netwrok] (nearest: [network])");
  EXPECT_EQ(error_of("[hosts.a\nstep_ms = 3\n").substr(0, 9), "c.toml:1:");
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = 3\n[models.big]\ntensors = 3\n"),
            "c.toml: missing key \"parameters\" in section [models.big] (of the model)");
}

TEST(ClusterFile, WantsHostsAndOneSourceOfStepTimes) {
  EXPECT_EQ(error_of("[network]\nlatency_us = 1\n"),
            "c.toml: no hosts: write a section [hosts.NAME] per kind of machine");
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = 3\nsteps_ms = [3, 4]\n"),
            "c.toml:3: hosts.a.steps_ms: step_ms says how long steps take already: give one of step_ms, image_ms, "
            "steps_ms and profile");
  EXPECT_EQ(error_of("[hosts.a]\nsteps_ms = [3, 4]\nstep_sigma = 0.1\n"),
            "c.toml:3: hosts.a.step_sigma: needs step_ms or image_ms, the mean that steps vary around");
}

TEST(ClusterFile, KeepsTheOrderOfTheFile) {
  const auto file = parse_cluster("[hosts.z]\nstep_ms = 1\n[hosts.a]\nstep_ms = 2\n", "c.toml");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->hosts[0].name, "z");
  EXPECT_EQ(file->hosts[1].name, "a");
}

TEST(ClusterFile, AModelIsFoundByName) {
  const auto file =
      parse_cluster("[hosts.a]\nstep_ms = 1\n[models.alexnet]\nparameters = 60965224\ntensors = 16\n", "c");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->model("alexnet")->parameters, 60'965'224);
  EXPECT_EQ(file->model("vgg").error().message, "c: no [models.vgg]: there are alexnet");
}

TEST(ClusterFile, AnAlgorithmsOwnSpeedWinsOverThatOfAll) {
  const auto file = parse_cluster(
      "[hosts.a]\nstep_ms = 1\n[collectives]\nsum_gb_per_s = 4\n[collectives.ar]\ngb_per_s = 1\nsum_gb_per_s = 0\n",
      "c");
  ASSERT_TRUE(file);
  const auto cluster = place(*file, {});
  ASSERT_TRUE(cluster);
  const auto& ring = cluster->collectives[static_cast<std::size_t>(Algorithm::ring)];
  EXPECT_EQ(ring.sum.ns, 0.25);
  EXPECT_EQ(ring.rate.ns, 0);
  const auto& ar = cluster->collectives[static_cast<std::size_t>(Algorithm::ar)];
  EXPECT_EQ(ar.sum.ns, 0);
  EXPECT_EQ(ar.rate.ns, 1);
}

constexpr const char* kTwoKinds =
    "[hosts.big]\ncount = 2\ndevices = 4\nstep_ms = 1\n[hosts.small]\ncount = 3\nstep_ms = 2\n";

TEST(Placement, FillsHostsInTheOrderOfTheFile) {
  const auto cluster = place(parse_cluster(kTwoKinds, "c").value(), {.workers = 10, .servers = 3});
  ASSERT_TRUE(cluster);
  std::vector<HostId> hosts;
  for (const auto& worker : cluster->workers) hosts.push_back(worker.host);
  EXPECT_EQ(hosts, (std::vector<HostId>{0, 0, 0, 0, 1, 1, 1, 1, 2, 3}));
  EXPECT_EQ(cluster->servers, (std::vector<HostId>{0, 1, 2}));  // in turn
}

TEST(Placement, DedicatedServersHaveTheirHostsToThemselves) {
  const auto text = std::string("[servers]\nplacement = \"dedicated\"\nhosts = \"big\"\n") + kTwoKinds;
  const auto cluster = place(parse_cluster(text, "c").value(), {.workers = 3, .servers = 3});
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->workers[0].host, 2U);
  EXPECT_EQ(cluster->servers, (std::vector<HostId>{0, 1, 0}));
}

TEST(Placement, SaysWhatDoesNotFit) {
  EXPECT_EQ(
      placing_error(kTwoKinds, 12, 0),
      "c.toml: 12 workers do not fit on 11 devices: raise count or devices of a [hosts.NAME], or lower the number "
      "of workers");
  EXPECT_EQ(
      placing_error("[hosts.a]\ncount = 2\n", 2, 0),
      "c.toml:2: [hosts.a] says nothing of the time that a step takes: set step_ms, image_ms, steps_ms or profile");
  EXPECT_EQ(placing_error("[hosts.a]\nstep_ms = 1\n[servers]\nplacement = \"dedicated\"\nhosts = \"b\"\n", 1, 1),
            "c.toml:5: servers.hosts = \"b\": dedicated servers need the NAME of a [hosts.NAME]");
  EXPECT_EQ(placing_error("[hosts.a]\nstep_ms = 1\ndevices = 0\n", 1, 0).substr(0, 43),
            "c.toml: 1 workers do not fit on 0 devices: ");
}

}  // namespace
}  // namespace troupe::sim
