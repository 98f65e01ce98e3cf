#include "sim/cluster/cluster_file.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "sim/cluster/cluster_tables.hpp"
#include "sim/cluster/placement.hpp"

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

template <class T>
void expect_bounds(const core::Table<T>& table) {
  for (const auto& entry : table.entries()) {
    const auto value = entry.read(table.defaults());
    if (!std::holds_alternative<std::int64_t>(value) && !std::holds_alternative<std::vector<std::int64_t>>(value))
      continue;
    const auto key = table.section() + "." + entry.name;
    // A model's parameters and an epoch's samples have 64 bits, all other values 32.
    const bool wide = entry.name == "parameters" || entry.name == "epoch_samples";
    const auto above =
        wide ? std::int64_t{1'000'000'000'001} : std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
    const bool list = std::holds_alternative<std::vector<std::int64_t>>(value);
    EXPECT_FALSE(entry.rule.allows(list ? core::Value{std::vector{above}} : core::Value{above})) << key;
    EXPECT_FALSE(entry.rule.allows(list ? core::Value{std::vector<std::int64_t>{-1}} : core::Value{std::int64_t{-1}}))
        << key;
  }
}

TEST(ClusterFile, EveryIntegersBoundFitsTheTypeItIsStoredIn) {
  expect_bounds(hosts_table("a"));
  expect_bounds(models_table("a"));
  expect_bounds(network_table());
  expect_bounds(servers_table());
  expect_bounds(steps_table());
  expect_bounds(stragglers_table());
  expect_bounds(slow_table("a"));
  expect_bounds(failures_table());
  expect_bounds(loss_table("a"));
  expect_bounds(collectives_table());
}

TEST(ClusterFile, NamesTheLineAndTheNearestKey) {
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = 3\nstep_sigm = 0.1\n"),
            "c.toml:3: unknown key \"hosts.a.step_sigm\" (nearest: \"hosts.a.step_sigma\")");
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = -3\n"),
            "c.toml:2: hosts.a.step_ms = -3: must be 0, or between 0.000001 and 1,000,000,000");
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = 3\n[netwrok]\nlatency_us = 1\n"),
            "c.toml:3: unknown section [netwrok] (nearest: [network])");
  EXPECT_EQ(error_of("[hosts.a\nstep_ms = 3\n").substr(0, 9), "c.toml:1:");
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = 3\n[models.big]\ntensors = 3\n"),
            "c.toml: missing key \"parameters\" in section [models.big] (of the model)");
}

TEST(ClusterFile, NeedsHostsAndOneSourceOfStepTimes) {
  EXPECT_EQ(error_of("[network]\nlatency_us = 1\n"),
            "c.toml: no hosts: write a section [hosts.NAME] per kind of machine");
  EXPECT_EQ(error_of("[hosts.a]\nstep_ms = 3\nsteps_ms = [3, 4]\n"),
            "c.toml:3: hosts.a.steps_ms: step_ms says how long steps take already: give one of step_ms, image_ms, "
            "steps_ms and profile");
  EXPECT_EQ(error_of("[hosts.a]\nsteps_ms = [3, 4]\nstep_sigma = 0.1\n"),
            "c.toml:3: hosts.a.step_sigma: needs step_ms or image_ms, the mean that steps vary around");
}

TEST(ClusterFile, ExcessiveValuesAreRefusedByLine) {
  for (const std::string section :
       {"[slow.x]\nfrom_s=1e300", "[slow.x]\nto_s=1e300", "[servers]\nper_request_us=1e300",
        "[servers]\nmemory_gb_per_s=1e-300", "[failures]\nmean_time_between_s=1e-30",
        "[failures]\nmean_time_between_s=1e300", "[failures]\nrejoin_s=1e300", "[network]\nlatency_us=1e300",
        "[network]\nper_message_us=1e300", "[network]\ngbit_per_s=1e-300", "[collectives]\nsum_gb_per_s=1e-300",
        "[collectives.ring]\ngb_per_s=-0.5", "[loss.x]\nat_s=1e300", "[hosts.b]\nstep_ms=1e12",
        "[hosts.b]\nimage_ms=1e300", "[hosts.b]\nsteps_ms=[1, 1e300]"}) {
    const auto key = section.substr(section.find('\n') + 1);
    EXPECT_TRUE(error_of("[hosts.a]\nstep_ms = 3\n" + section + "\n").starts_with("c.toml:4: ")) << key;
  }
  for (const std::string key :
       {"parameters=9223372036854775807", "tensors=4294967297", "epoch_samples=9223372036854775807"}) {
    const auto rest = key.starts_with("parameters") ? "" : "\nparameters=3";
    EXPECT_TRUE(error_of("[hosts.a]\nstep_ms = 3\n[models.m]\n" + key + rest + "\n").starts_with("c.toml:4: ")) << key;
  }
}

TEST(ClusterFile, AnOverrideIsNamedByItsFlag) {
  const auto wrong = parse_cluster("[hosts.a]\nstep_ms = 3\n", "c.toml", {"hosts.a.stepms=3"});
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("--cluster-set: unknown key")) << wrong.error().message;
  EXPECT_EQ(parse_cluster("[hosts.a]\nstep_ms = 3\n", "c.toml", {"hosts.a.steps_ms=3"}).error().message.substr(0, 14),
            "--cluster-set:");
}

TEST(ClusterFile, ADirectoryIsNoFile) {
  EXPECT_EQ(load_cluster("/tmp").error().message, "cannot read cluster file /tmp: Is a directory");
  EXPECT_EQ(load_cluster("/nowhere/c.toml").error().message,
            "cannot read cluster file /nowhere/c.toml: No such file or directory");
}

constexpr std::string_view kEverySection = R"([hosts.a]
count = 2
devices = 2
step_ms = 5.2
step_sigma = 0.1
gbit_per_s = 1
[network]
latency_us = 30
[servers]
placement = "dedicated"
hosts = "b"
[hosts.b]
steps_ms = [3, 4.5]
[collectives]
tensor_by_tensor = true
[collectives.ar]
gb_per_s = -1
[steps]
buckets = 3
[stragglers]
probability = 0.1
[slow.s]
workers = [0, 1]
to_s = 1
[failures]
rejoin_s = 2
[loss.l]
worker = 1
[models.m]
parameters = 1000
)";

/// A damaged file is either good or gives an error that the user can act on.
void expect_good_or_refused(const std::string& text, const std::string& what) {
  const auto file = parse_cluster(text, "c.toml");
  const auto placed = file ? place(*file, {.workers = 3, .servers = 2}) : tl::unexpected(file.error());
  if (placed) return;
  EXPECT_EQ(placed.error().code, core::Errc::config) << what;
  EXPECT_TRUE(placed.error().message.starts_with("c.toml:")) << what << ": " << placed.error().message;
}

TEST(ClusterFile, TruncatedFileIsParsedOrRefused) {
  ASSERT_TRUE(place(parse_cluster(kEverySection, "c.toml").value(), {.workers = 3, .servers = 2}));
  for (std::size_t end = 0; end < kEverySection.size(); ++end)
    expect_good_or_refused(std::string(kEverySection.substr(0, end)), "cut at " + std::to_string(end));
}

TEST(ClusterFile, FileWithAFlippedBitIsParsedOrRefused) {
  for (std::size_t at = 0; at < kEverySection.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string text(kEverySection);
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      expect_good_or_refused(text, "bit " + std::to_string(bit) + " of byte " + std::to_string(at));
    }
  }
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
  EXPECT_EQ(cluster->servers, (std::vector<HostId>{2, 3, 0}));  // in turn, the least loaded host first
}

TEST(Placement, ServersSitAsTheFileSaysOrElseTheStrategy) {
  const auto servers = [](const std::string& section, const std::string& strategys) {
    const auto file = parse_cluster(section + kTwoKinds, "c.toml").value();
    const auto cluster = place(file, {.workers = 2, .servers = 2, .placement = strategys});
    return cluster ? cluster->servers : std::vector<HostId>{};
  };
  const std::string hosts = "[servers]\nhosts = \"small\"\n";
  EXPECT_EQ(servers(hosts, ""), (std::vector<HostId>{0, 0}));
  EXPECT_EQ(servers(hosts, "colocated"), (std::vector<HostId>{0, 0}));
  EXPECT_EQ(servers(hosts, "dedicated"), (std::vector<HostId>{2, 3}));
  EXPECT_EQ(servers(hosts + "placement = \"colocated\"\n", "dedicated"), (std::vector<HostId>{0, 0}));
  EXPECT_EQ(servers("", "dedicated"), std::vector<HostId>{});  // no host is named
}

TEST(Placement, DedicatedServersHaveTheirHostsToThemselves) {
  const auto text = std::string("[servers]\nplacement = \"dedicated\"\nhosts = \"big\"\n") + kTwoKinds;
  const auto cluster = place(parse_cluster(text, "c").value(), {.workers = 3, .servers = 3});
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->workers[0].host, 2U);
  EXPECT_EQ(cluster->servers, (std::vector<HostId>{0, 1, 0}));
}

TEST(Placement, ImpossiblePlacementIsNamed) {
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

TEST(ClusterFile, StepTimesOfOneModelAreNotThoseOfAnother) {
  const std::string text = "[hosts.a]\nimage_ms = 0.16\nmodel = \"lenet\"\n";
  const auto file = parse_cluster(text, "c.toml").value();
  EXPECT_TRUE(place(file, {.workers = 1, .model = "lenet"}));
  EXPECT_EQ(
      place(file, {.workers = 1, .model = "cifar"}).error().message,
      "c.toml:2: hosts.a.image_ms is the time of lenet, and this run trains cifar: add --measure to time cifar on "
      "this machine, or --from FILE with a profile of it (`troupe bench step CONFIG --profile FILE`)");
  // The model's own time, of [models.cifar] or measured, needs none of the hosts'.
  EXPECT_TRUE(place(file, {.workers = 1, .model = "cifar", .image_ms = 1}));
  EXPECT_TRUE(place(file, {.workers = 1, .model = "cifar", .recorded = {measured(std::vector<double>{1})}}));
  EXPECT_EQ(source_of_times(file, 0), "hosts.a.image_ms of c.toml, for lenet");
  const auto any = parse_cluster("[hosts.a]\nstep_ms = 3\n", "c.toml").value();
  EXPECT_TRUE(place(any, {.workers = 1, .model = "cifar"}));
  EXPECT_EQ(source_of_times(any, 0), "hosts.a.step_ms of c.toml, for any model");
  EXPECT_EQ(error_of("[hosts.a]\nprofile = \"p.json\"\nmodel = \"lenet\"\n"),
            "c.toml:3: hosts.a.model: a profile names its model itself: leave model out");
}

}  // namespace
}  // namespace troupe::sim
