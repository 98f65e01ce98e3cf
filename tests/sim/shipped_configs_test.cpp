// Every strategy trains from every configuration in configs/ when only the strategy's name changes. The runs are short and in virtual time,
// so that asynchronous strategies take the same order of exchanges on every machine; glyphs stand in for data that is not shipped. Most
// configurations differ in options that another strategy does not read: runs with equal settings are one run.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpu/backend.hpp"
#include "nn/zoo/models.hpp"
#include "sim/forecast/forecast.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::sim {
namespace {

constexpr const char* kClusterOfConfigs =
    "[hosts.node]\ncount = 8\nstep_ms = 4\nstep_sigma = 0.2\n[network]\nlatency_us = 50\ngbit_per_s = 1\n";

/// The papers' networks are too large for so many runs.
bool is_too_large(const std::string& file) {
  constexpr std::int64_t kMostParameters = 5'000'000;
  const auto config = core::Config::load(experiment::schema(), file, {});
  if (!config) return false;  // the test reports the error
  const auto& zoo = nn::model_zoo();
  const auto model = std::ranges::find(zoo, config->get(nn::model_table()).name, &nn::ZooEntry::name);
  return model != zoo.end() && model->parameters > kMostParameters;
}

std::vector<std::string> shipped() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(TROUPE_SOURCE_DIR "/configs"))
    if (entry.path().extension() == ".toml" && !is_too_large(entry.path().string()))
      files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

/// Three epochs of about ten steps per worker.
core::Result<experiment::Settings> short_run(const std::string& file, const std::string& strategy) {
  const auto as_shipped = core::Config::load(experiment::schema(), file, {});
  if (!as_shipped) return tl::unexpected(as_shipped.error());
  const auto data = as_shipped->get(data::data_table());
  const auto workers = as_shipped->get(experiment::cluster_table()).workers;
  const auto batch = std::min<std::int64_t>(data.batch.front(), 16);
  const std::int64_t steps = batch == 1 ? 200 : 12;
  std::vector<std::string> overrides{"run.epochs=3",
                                     "run.name=short",
                                     "data.name=glyphs",
                                     "data.path=",
                                     "data.test_samples=10",
                                     fmt::format("data.batch={}", batch),
                                     fmt::format("data.train_samples={}", steps * batch * workers),
                                     fmt::format("strategy.name={}", strategy)};
  return core::Config::load(experiment::schema(), file, overrides).and_then([](core::Config config) {
    return experiment::resolve(std::move(config), experiment::Use::forecast);
  });
}

/// Each different run once: its settings, and the configurations that lead to it.
std::map<std::string, std::pair<experiment::Settings, std::string>> different_runs(const std::string& strategy) {
  std::map<std::string, std::pair<experiment::Settings, std::string>> runs;
  for (const auto& file : shipped()) {
    auto settings = short_run(file, strategy);
    if (!settings) {
      ADD_FAILURE() << settings.error().message;
      continue;
    }
    const auto text = settings->config.to_toml();
    runs.try_emplace(text, std::move(*settings), "").first->second.second += " " + file;
  }
  return runs;
}

class StrategyOnShippedConfigs : public testing::TestWithParam<std::string> {};

TEST_P(StrategyOnShippedConfigs, Trains) {
  const auto backend = cpu::make_backend();
  const auto runs = different_runs(GetParam());
  ASSERT_FALSE(runs.empty());
  for (const auto& [text, run] : runs) {
    const auto& [settings, files] = run;
    SCOPED_TRACE(files);
    const auto end = forecast({.settings = settings,
                               .cluster = parse_cluster(kClusterOfConfigs, "c.toml", {}).value(),
                               .gradients = backend.get()});
    ASSERT_TRUE(end) << end.error().message;
    const auto& epochs = end->result.learned->epochs;
    ASSERT_EQ(epochs.size(), 3U);
    EXPECT_LT(epochs.back().train_loss, epochs.front().train_loss);
    EXPECT_LT(epochs.back().train_loss, 3) << "the loss of guessing is ln 10";
  }
}

INSTANTIATE_TEST_SUITE_P(Of, StrategyOnShippedConfigs, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& row : strategies::registry()) names.push_back(row.name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

/// The paper's settings: TensorFlow's RMSProp on the server, and four replicas that act as one worker.
TEST(ShippedConfigs, ResNet50TrainsAsInThePaper) {
  auto config = core::Config::load(experiment::schema(), TROUPE_SOURCE_DIR "/configs/resnet50-campos.toml", {});
  ASSERT_TRUE(config) << config.error().message;
  const auto settings = experiment::resolve(std::move(*config));
  ASSERT_TRUE(settings) << settings.error().message;
  const auto spec = experiment::build_run_spec(*settings, false);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_TRUE(spec->settings->config.unused().empty());
  EXPECT_EQ(spec->needs.server_states, 1);
  EXPECT_EQ(spec->needs.server_state_of, "rmsprop");
  EXPECT_EQ(settings->train.epsilon, 1);
  EXPECT_EQ(settings->train.beta2, 0.9);
  EXPECT_EQ(settings->batch(0) * 4, 128);
}

}  // namespace
}  // namespace troupe::sim
