#include "sim/cluster/recorded.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "sim/cluster/placement.hpp"

namespace troupe::sim {
namespace {

class Recorded : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-sim-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string write(const std::string& name, const std::string& text) const {
    const auto path = directory_ / name;
    std::ofstream(path) << text;
    return path.string();
  }
  std::string run(const std::string& metrics) const {
    write(
        "config.toml",
        "[model]\nname = \"mlp\"\n[data]\nname = \"glyphs\"\nbatch = 20\n[cluster]\nworkers = 2\nslowdown = [1, 2]\n");
    write("metrics.jsonl", metrics);
    return directory_.string();
  }
  std::filesystem::path directory_;
};

constexpr const char* kStarted = R"({"kind":"started","t":0,"model":"mlp"})"
                                 "\n";

std::string report(int worker, int steps, double compute_s) {
  return R"({"kind":"worker","t":1,"worker":)" + std::to_string(worker) + R"(,"steps":)" + std::to_string(steps) +
         R"(,"compute_s":)" + std::to_string(compute_s) + "}\n";
}

// Worker 0: 2 steps of 3 ms on average, then one of 5 ms; worker 1 slept for half of its time.
TEST_F(Recorded, StepsBetweenReportsHaveTheirMean) {
  const auto recorded = load_recorded(run(kStarted + report(0, 2, 0.006) + report(1, 1, 0.008) + report(0, 2, 0.006) +
                                          R"({"kind":"note","t":1})" + "\n" + report(0, 3, 0.011)));
  ASSERT_TRUE(recorded) << recorded.error().message;
  EXPECT_EQ(recorded->model, "mlp");
  EXPECT_EQ(recorded->batches, std::vector<std::int64_t>{20});
  ASSERT_EQ(recorded->steps[0].size(), 2U);
  EXPECT_NEAR(recorded->steps[0][0].mean_ms, 3, 1e-9);
  EXPECT_EQ(recorded->steps[0][0].count, 2U);
  EXPECT_NEAR(recorded->steps[0][1].mean_ms, 5, 1e-9);
  EXPECT_EQ(recorded->steps[0][1].count, 1U);
  ASSERT_EQ(recorded->steps[1].size(), 1U);
  EXPECT_NEAR(recorded->steps[1][0].mean_ms, 4, 1e-9);
  // The same distribution as if every step had its own report.
  const auto times = measured(recorded->steps[0]);
  ASSERT_EQ(times.measured(), 3U);
  EXPECT_NEAR(times.measured(0), 3e6, 1e-3);
  EXPECT_NEAR(times.measured(1), 3e6, 1e-3);
  EXPECT_NEAR(times.measured(2), 5e6, 1e-3);
  EXPECT_NEAR(times.expected_ns(), 11e6 / 3, 1e-3);
}

TEST_F(Recorded, ResumedSessionsStepsCountFromZero) {
  const auto recorded =
      load_recorded(run(kStarted + report(0, 2, 0.006) + report(1, 1, 0.008) + kStarted + report(0, 1, 0.004)));
  ASSERT_TRUE(recorded) << recorded.error().message;
  ASSERT_EQ(recorded->steps[0].size(), 2U);
  EXPECT_NEAR(recorded->steps[0][1].mean_ms, 4, 1e-9);
}

// The first report of the new session has more steps than the last session had. All of them belong to the new session.
TEST_F(Recorded, LongerResumedSessionCountsFromZero) {
  const auto recorded =
      load_recorded(run(kStarted + report(0, 2, 0.006) + report(1, 1, 0.008) + kStarted + report(0, 10, 0.04)));
  ASSERT_TRUE(recorded) << recorded.error().message;
  ASSERT_EQ(recorded->steps[0].size(), 2U);
  EXPECT_EQ(recorded->steps[0][1].count, 10U);
  EXPECT_NEAR(recorded->steps[0][1].mean_ms, 4, 1e-9);
}

// Version 0.1 counted the replaced worker's steps for its newcomer, but left out its times.
TEST_F(Recorded, ANewcomersTimesAreThoseOfItsOwnSteps) {
  const auto recorded =
      load_recorded(run(kStarted + report(1, 1, 0.008) + report(0, 100, 0.4) + report(0, 102, 0.008)));
  ASSERT_TRUE(recorded) << recorded.error().message;
  ASSERT_EQ(recorded->steps[0].size(), 2U);
  EXPECT_EQ(recorded->steps[0][1].count, 2U);
  EXPECT_NEAR(recorded->steps[0][1].mean_ms, 4, 1e-9);
}

/// Of a session, as programs since 0.2.0 write it. The run's configuration is that of its last session: batch 20, slowdown 1 and 2.
std::string started(int workers, const std::string& batch, int accumulate, const std::string& slowdown) {
  return R"({"kind":"started","t":0,"model":"mlp","workers":)" + std::to_string(workers) + R"(,"batch":)" + batch +
         R"(,"accumulate":)" + std::to_string(accumulate) + R"(,"slowdown":)" + slowdown + "}\n";
}
const std::string kLastSession = started(2, "[20]", 1, "[1.0,2.0]");

// Worker 2 is gone. Session 1: worker 0 was 3 times slower, and took 12 ms; worker 1 took 8 ms.
TEST_F(Recorded, SessionsWithOtherWorkersAndSlowdownsCountAsTheyWere) {
  const auto recorded =
      load_recorded(run(started(3, "[20]", 1, "[3.0,1.0,1.0]") + report(0, 2, 0.024) + report(1, 2, 0.016) +
                        report(2, 9, 0.9) + kLastSession + report(0, 1, 0.004) + report(1, 1, 0.016)));
  ASSERT_TRUE(recorded) << recorded.error().message;
  ASSERT_EQ(recorded->steps.size(), 2U);
  for (std::size_t worker = 0; worker < 2; ++worker) {
    ASSERT_EQ(recorded->steps[worker].size(), 2U);
    EXPECT_EQ(recorded->steps[worker][0].count, 2U);
    EXPECT_EQ(recorded->steps[worker][1].count, 1U);
    for (const auto& steps : recorded->steps[worker]) EXPECT_NEAR(steps.mean_ms, worker == 0 ? 4 : 8, 1e-9);
  }
}

TEST_F(Recorded, SessionsWithOtherBatchesDoNotCount) {
  const auto of_both = report(0, 2, 0.6) + report(1, 2, 0.8);
  for (const auto& other : {started(2, "[1000]", 1, "[1.0]"), started(2, "[20]", 4, "[1.0]")}) {
    const auto recorded =
        load_recorded(run(other + of_both + kLastSession + report(0, 1, 0.004) + report(1, 1, 0.016)));
    ASSERT_TRUE(recorded) << recorded.error().message;
    for (std::size_t worker = 0; worker < 2; ++worker) ASSERT_EQ(recorded->steps[worker].size(), 1U);
    EXPECT_NEAR(recorded->steps[0][0].mean_ms, 4, 1e-9);
    EXPECT_EQ(load_recorded(run(other + of_both + kLastSession + report(0, 1, 0.004))).error().message,
              directory_.string() +
                  "/metrics.jsonl: worker 1 took no step with the data.batch and train.accumulate of "
                  "the run's last session: nothing to forecast from");
  }
  // Worker 0 had the same batch.
  const auto mixed = load_recorded(
      run(started(2, "[20,1000]", 1, "[1.0]") + of_both + kLastSession + report(0, 1, 0.004) + report(1, 1, 0.016)));
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_EQ(mixed->steps[0].size(), 2U);
  EXPECT_EQ(mixed->steps[1].size(), 1U);
}

// Lines of older programs tell no batch. The configurations beside the journal show whether it has changed.
TEST_F(Recorded, EarlierSessionsOfUnknownBatchDoNotCount) {
  const auto metrics =
      kStarted + report(0, 2, 0.6) + report(1, 2, 0.8) + kStarted + report(0, 1, 0.004) + report(1, 1, 0.016);
  const auto all = load_recorded(run(metrics));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->steps[0].size(), 2U);
  std::filesystem::copy_file(directory_ / "config.toml", directory_ / "journal-0002.config.toml");
  write("journal-0002.bin", "");
  EXPECT_EQ(load_recorded(directory_.string())->steps[0].size(), 2U);
  write("journal-0001.bin", "");
  write("journal-0001.config.toml",
        "[model]\nname = \"mlp\"\n[data]\nname = \"glyphs\"\nbatch = 1000\n[cluster]\nworkers = 2\n");
  const auto last = load_recorded(directory_.string());
  ASSERT_TRUE(last) << last.error().message;
  for (std::size_t worker = 0; worker < 2; ++worker) ASSERT_EQ(last->steps[worker].size(), 1U);
  EXPECT_NEAR(last->steps[0][0].mean_ms, 4, 1e-9);
}

TEST_F(Recorded, ImpossibleOptionsOfASessionAreRefused) {
  const auto of_both = report(0, 1, 0.004) + report(1, 1, 0.016);
  for (const auto& wrong : {started(2, "[]", 1, "[1.0]"), started(2, "[20]", 1, "[0]"), started(3, "[20,20]", 1, "[1]"),
                            started(2, "\"20\"", 1, "[1]")}) {
    const auto recorded = load_recorded(run(wrong + of_both));
    ASSERT_FALSE(recorded) << wrong;
    EXPECT_EQ(recorded.error().code, core::Errc::data);
    EXPECT_TRUE(recorded.error().message.starts_with(directory_.string() + "/metrics.jsonl:1: "));
  }
}

TEST_F(Recorded, ErrorsNameTheProblem) {
  const auto metrics = directory_.string() + "/metrics.jsonl";
  EXPECT_EQ(load_recorded(directory_.string()).error().code, core::Errc::config);  // no run
  EXPECT_EQ(load_recorded(run(kStarted + report(0, 2, 0.006))).error().message,
            metrics + ": worker 1 took no step: nothing to forecast from");
  EXPECT_EQ(load_recorded(run(kStarted + report(2, 2, 0.006))).error().message, metrics + ":2: worker 2 of 2");
  const auto torn = load_recorded(run(std::string(kStarted) + "{\"kind\":\n" + report(0, 1, 1)));
  EXPECT_EQ(torn.error().code, core::Errc::data);
  EXPECT_EQ(torn.error().message, metrics + ":2: no line of metrics");
}

// A damaged count causes neither memory for each step nor an overflow.
TEST_F(Recorded, ImpossibleCountsAndTimesAreRefused) {
  const auto metrics = directory_.string() + "/metrics.jsonl";
  const auto with = [&](const std::string& steps, const std::string& compute_s) {
    return load_recorded(run(kStarted + std::string(R"({"kind":"worker","worker":0,"steps":)") + steps +
                             ",\"compute_s\":" + compute_s + "}\n" + report(1, 1, 0.008)));
  };
  EXPECT_EQ(with("-3", "1").error().message, metrics + ":2: steps = -3: no number of steps");
  EXPECT_EQ(with("1e300", "1").error().message, metrics + ":2: steps = 1e+300: no number of steps");
  EXPECT_EQ(with("9223372036854775807", "1").error().code, core::Errc::data);
  EXPECT_EQ(with("1", "-1").error().message, metrics + ":2: compute_s = -1: no time");
  EXPECT_EQ(with("1", "1e300").error().message, metrics + ":2: a step of 1e+303 ms");
  const auto many = with("100000000000", "1e8");
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_EQ(measured(many->steps[0]).measured(), 100'000'000'000U);
}

TEST_F(Recorded, TruncatedLastLineIsIgnored) {
  EXPECT_TRUE(load_recorded(run(kStarted + report(0, 2, 0.006) + report(1, 1, 0.008) + "{\"kind\":\"wor")));
}

TEST_F(Recorded, AProfileIsOfAModelAndABatch) {
  const auto path = write("p.json", R"({"model":"mlp","batch":20,"steps_ms":[3.5,4.5]})");
  const auto file = parse_cluster("[hosts.a]\ndevices = 2\nprofile = \"" + path + "\"\n", "c.toml").value();
  const auto cluster = place(file, {.workers = 2, .model = "mlp", .batches = {20, 20}});
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->kinds[0].steps[0].measured_ns, (std::vector<double>{3.5e6, 4.5e6}));
  EXPECT_EQ(place(file, {.workers = 2, .model = "mlp", .batches = {20, 30}}).error().message,
            "c.toml:3: " + path +
                " is of mlp with batch 20, and this run has mlp with batch 30: measure that with `troupe bench step "
                "CONFIG --profile FILE`");
  EXPECT_FALSE(place(file, {.workers = 2, .model = "lenet", .batches = {20, 20}}));
}

// Two models can have one name: mlp with other widths, or two lists of layers.
TEST_F(Recorded, AProfileOfAModelWithOtherParametersIsRefused) {
  const auto path = write("p.json", R"({"model":"mlp","batch":20,"parameters":7960,"steps_ms":[3.5,4.5]})");
  const auto file = parse_cluster("[hosts.a]\ndevices = 2\nprofile = \"" + path + "\"\n", "c.toml").value();
  EXPECT_TRUE(place(file, {.workers = 1, .model = "mlp", .parameters = 7960, .batches = {20}}));
  EXPECT_EQ(place(file, {.workers = 1, .model = "mlp", .parameters = 89'610, .batches = {20}}).error().message,
            "c.toml:3: " + path +
                " is of mlp (7960 parameters) with batch 20, and this run has mlp (89610 parameters) with batch 20: "
                "measure that with `troupe bench step CONFIG --profile FILE`");
}

TEST_F(Recorded, ProfilesInAListGoToTheRanksInTurn) {
  const auto fast = write("fast.json", R"({"model":"mlp","batch":20,"steps_ms":[3]})");
  const auto slow = write("slow.json", R"({"model":"mlp","batch":10,"steps_ms":[4]})");
  const auto file =
      parse_cluster("[hosts.a]\ndevices = 3\nprofile = [\"" + fast + "\", \"" + slow + "\"]\n", "c.toml").value();
  const auto cluster = place(file, {.workers = 3, .model = "mlp", .batches = {20, 10, 20}});
  ASSERT_TRUE(cluster) << cluster.error().message;
  ASSERT_EQ(cluster->kinds[0].steps.size(), 2U);
  EXPECT_EQ(cluster->kinds[0].steps[1].measured_ns, std::vector<double>{4e6});
  EXPECT_EQ(place(file, {.workers = 3, .model = "mlp", .batches = {20, 20, 20}}).error().message,
            "c.toml:3: " + slow +
                " is of mlp with batch 10, and this run has mlp with batch 20: measure that with `troupe bench step "
                "CONFIG --profile FILE`");
}

TEST_F(Recorded, FileThatIsNoProfileIsNamed) {
  for (const std::string text :
       {"", "{}", R"({"model":"mlp","batch":20,"steps_ms":[]})", R"({"model":"mlp","batch":20,"steps_ms":[1,-1]})",
        R"({"model":"mlp","batch":20,"steps_ms":[1,1e300]})", R"({"model":"mlp","batch":20,"steps_ms":[1,)",
        R"({"model":3})", "[]", "3"}) {
    const auto path = write("p.json", text);
    const auto profile = load_profile(path);
    ASSERT_FALSE(profile) << text;
    EXPECT_EQ(profile.error().code, core::Errc::config);
    EXPECT_TRUE(profile.error().message.starts_with(path + ": no step profile: ")) << profile.error().message;
    EXPECT_EQ(profile.error().message.find("json.exception"), std::string::npos) << profile.error().message;
  }
  EXPECT_EQ(load_profile("/nowhere/p.json").error().message,
            "cannot read step profile /nowhere/p.json: No such file or directory");
  EXPECT_EQ(load_profile("/tmp").error().message, "cannot read step profile /tmp: Is a directory");
}

}  // namespace
}  // namespace troupe::sim
