#include "experiment/settings.hpp"

#include <limits>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "experiment/exchange_check.hpp"

namespace troupe::experiment {
namespace {

constexpr auto kSmallest = "[model]\nname = \"lenet\"\n[data]\nname = \"glyphs\"\n";

core::Result<Settings> settings(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto config = core::Config::parse(schema(), text, "a.toml", overrides);
  if (!config) return tl::unexpected(config.error());
  return resolve(std::move(*config));
}

/// The error of the smallest configuration with one override.
std::string refusal(const std::string& override_text) {
  const auto result = settings(kSmallest, {override_text});
  EXPECT_FALSE(result.has_value()) << override_text;
  if (result) return {};
  EXPECT_EQ(result.error().code, core::Errc::config) << override_text;
  return result.error().message;
}

TEST(SettingsTest, SectionsStandInTheOrderOfAConfig) {
  std::vector<std::string> sections;
  for (const auto& option : schema().options()) {
    const auto section = option.key.substr(0, option.key.find('.'));
    if (sections.empty() || sections.back() != section) sections.push_back(section);
  }
  EXPECT_EQ(sections, (std::vector<std::string>{"run", "model", "data", "train", "strategy", "cluster", "exchange"}));
}

TEST(SettingsTest, EveryOptionHasHelp) {
  for (const auto& option : schema().options()) EXPECT_FALSE(option.help.empty()) << option.key;
}

TEST(SettingsTest, KeysInForceAreThoseThatTheStrategyReads) {
  const auto keys_of = [](const char* strategy) {
    const auto result = settings(kSmallest, {std::string("strategy.name=") + strategy});
    EXPECT_TRUE(result.has_value());
    const auto keys = keys_in_force(result->config);
    for (const auto& key : keys) EXPECT_NO_THROW((void)result->config.value(key)) << key;
    return std::set<std::string>(keys.begin(), keys.end());
  };
  const auto bsp = keys_of("bsp"), easgd = keys_of("easgd");
  EXPECT_TRUE(easgd.contains("strategy.tau") && easgd.contains("train.lr"));
  EXPECT_TRUE(bsp.contains("train.lr"));
  EXPECT_FALSE(bsp.contains("strategy.tau"));
}

/// The largest value of an integer option that still fits the type which the option becomes.
std::int64_t most_of(const std::string& key) {
  constexpr auto kAny = std::numeric_limits<std::int64_t>::max();
  constexpr auto kInt = std::numeric_limits<std::int32_t>::max();
  static const std::map<std::string, std::int64_t> wider{
      {"run.seed", kAny},
      {"data.seed", kAny},  // stays 64 bits
      {"data.train_samples", 1'000'000'000'000},
      {"data.window", 1'000'000'000'000},
      {"data.max_bad", 1'000'000'000'000},
      {"data.test_samples", 1'000'000'000'000}};  // counted in 64 bits
  const auto found = wider.find(key);
  return found == wider.end() ? kInt : found->second;
}

/// The largest integer that the option's rule allows: it allows all values between that and the default.
std::int64_t highest(const core::Option& option) {
  const bool list = std::holds_alternative<std::vector<std::int64_t>>(option.default_value);
  const auto allows = [&](std::int64_t value) {
    return !option.rule.allows || option.rule.allows(list ? core::Value{std::vector{value}} : core::Value{value});
  };
  std::int64_t low = 1;  // of a list that is empty by default
  if (!list) low = std::get<std::int64_t>(option.default_value);
  if (const auto* const values = std::get_if<std::vector<std::int64_t>>(&option.default_value);
      values && !values->empty())
    low = values->front();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
  if (allows(high)) return high;
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (allows(middle) ? low : high) = middle;
  }
  return low;
}

std::vector<std::string> setting(const core::Option& option, const std::string& value) {
  std::vector<std::string> overrides{option.key + "=" + value};
  if (!option.scope.empty()) overrides.push_back("strategy.name=" + option.scope);
  return overrides;
}

TEST(SettingsTest, EveryIntegersBoundFitsTheTypeItIsStoredIn) {
  int integers = 0;
  for (const auto& option : schema().options()) {
    const bool list = std::holds_alternative<std::vector<std::int64_t>>(option.default_value);
    if (!list && !std::holds_alternative<std::int64_t>(option.default_value)) continue;
    ++integers;
    const auto most = most_of(option.key), high = highest(option);
    EXPECT_LE(high, most) << option.key << " (" << option.scope << ")";
    const auto largest = core::Config::parse(schema(), kSmallest, "a.toml", setting(option, std::to_string(high)));
    ASSERT_TRUE(largest) << largest.error().message;
    const auto value = largest->value(option.key);
    EXPECT_EQ(list ? std::get<std::vector<std::int64_t>>(value).at(0) : std::get<std::int64_t>(value), high);
    EXPECT_FALSE(core::Config::parse(schema(), kSmallest, "a.toml", setting(option, "-1"))) << option.key;
    if (high == std::numeric_limits<std::int64_t>::max()) continue;
    const auto above = core::Config::parse(schema(), kSmallest, "a.toml", setting(option, std::to_string(high + 1)));
    ASSERT_FALSE(above) << option.key;
    EXPECT_EQ(above.error().code, core::Errc::config);
  }
  EXPECT_GT(integers, 25);
}

// Numbers that workers and servers compute with become float32: none becomes infinite, and none becomes 0 that was not.
TEST(SettingsTest, EveryNumberHasABoundThatAFloatHolds) {
  for (const auto& option : schema().options()) {
    const bool list = std::holds_alternative<std::vector<double>>(option.default_value);
    if (!list && !std::holds_alternative<double>(option.default_value)) continue;
    for (const auto* beyond : {"1e39", "-1e39", "1e300"})  // infinite as a float32
      EXPECT_FALSE(core::Config::parse(schema(), kSmallest, "a.toml", setting(option, beyond)))
          << option.key << " = " << beyond;
    const bool may_vanish(
        core::Config::parse(schema(), kSmallest, "a.toml", setting(option, "1e-46")));  // 0 as float32
    const bool may_be_0(core::Config::parse(schema(), kSmallest, "a.toml", setting(option, "0")));
    EXPECT_TRUE(may_be_0 || !may_vanish) << option.key;
  }
}

TEST(SettingsTest, KeepCheckpointsIsTheNumberKept) {
  EXPECT_EQ(settings(kSmallest, {"run.keep_checkpoints=1000000000"})->run.keep_checkpoints, 1'000'000'000);
  EXPECT_NE(refusal("run.keep_checkpoints=2147483648").find("must be between 2 and 1,000,000,000"), std::string::npos);
  EXPECT_NE(refusal("run.keep_checkpoints=4294967298").find("must be between 2 and 1,000,000,000"), std::string::npos);
  EXPECT_NE(refusal("data.prefetch=1000000").find("must be between 1 and 65,536"), std::string::npos);
}

TEST(SettingsTest, DefaultsAreTheStructsOwn) {
  const auto s = settings(kSmallest);
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->run.name, "run");
  EXPECT_EQ(s->run.seed, 1);
  EXPECT_EQ(s->cluster.workers, 2);
  EXPECT_EQ(s->exchange.endpoint, "auto");
  EXPECT_EQ(s->strategy, "bsp");
  EXPECT_EQ(s->checkpoint, (CheckpointPeriod{.epochs = 1}));
}

TEST(SettingsTest, SavedConfigurationResolvesToTheSame) {
  const auto s = settings(kSmallest, {"strategy.name=easgd", "strategy.tau=7", "run.checkpoint_every=\"250 steps\"",
                                      "data.batch=[64, 16]"});
  ASSERT_TRUE(s) << s.error().message;
  const auto again = settings(s->config.to_toml());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->config, s->config);
  EXPECT_EQ(again->checkpoint, (CheckpointPeriod{.steps = 250}));
}

TEST(SettingsTest, ListsHoldForAllOrForEachWorker) {
  const auto one = settings(kSmallest, {"cluster.workers=3", "data.batch=32"});
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->batch(2), 32);
  const auto each = settings(kSmallest, {"data.batch=[64, 16]", "cluster.threads_per_worker=[1, 2]"});
  ASSERT_TRUE(each) << each.error().message;
  EXPECT_EQ(each->batch(0), 64);
  EXPECT_EQ(each->batch(1), 16);
  EXPECT_EQ(each->threads(1), 2);

  EXPECT_EQ(refusal("data.batch=[1, 2, 3]"),
            "--set: data.batch has 3 values for 2 workers: give one for all, or one per worker");
  EXPECT_EQ(refusal("cluster.threads_per_worker=[1, 2, 3]"),
            "--set: cluster.threads_per_worker has 3 values for 2 workers: give one for all, or one per worker");
  EXPECT_NE(refusal("cluster.threads_per_worker=[]"), "");
  EXPECT_NE(refusal("data.batch=[]"), "");
}

TEST(SettingsTest, MicroBatchesMustDivideEveryBatch) {
  EXPECT_EQ(refusal("train.accumulate=3"),
            "--set: train.accumulate = 3 must divide data.batch = 64: a step's batch is computed in equal parts");
  const auto one = settings(kSmallest, {"data.batch=[64, 16]", "train.accumulate=8"});
  EXPECT_TRUE(one) << one.error().message;
  EXPECT_FALSE(settings(kSmallest, {"data.batch=[64, 16]", "train.accumulate=32"}));
}

/// The test split decides about nothing but the target accuracy.
TEST(SettingsTest, DecisionsNeedAValidationSplit) {
  for (const std::string decision : {"run.patience=3", "run.target_loss=0.5", "train.lr_policy=plateau"}) {
    EXPECT_NE(refusal(decision).find("there is none: set data.validation"), std::string::npos) << refusal(decision);
    const auto s = settings(kSmallest, {decision, "data.validation=\"0.1\""});
    EXPECT_TRUE(s) << s.error().message;
  }
  EXPECT_TRUE(settings(kSmallest, {"run.target_accuracy=0.5"}));
  EXPECT_EQ(settings(kSmallest, {"run.evaluate_every=\"250 steps\""})->evaluation, (CheckpointPeriod{.steps = 250}));
  for (const std::string wrong :
       {"run.evaluate_every=\"10 s\"", "run.evaluate_every=\"never\"", "data.validation=\"1.0\"", "run.monitor=top5",
        "train.label_smoothing=1", "train.ema=1", "run.patience=-1"})
    EXPECT_NE(refusal(wrong), "") << wrong;
}

TEST(SettingsTest, KeysOfPicturesAreRefusedWhereTheyDoNothing) {
  for (const std::string key :
       {"resize=32", "random_resized_crop=true", "brightness=0.4", "contrast=0.4", "saturation=0.4"}) {
    EXPECT_EQ(refusal("data." + key),
              fmt::format("--set: data.{} does nothing to glyphs: it is for folder, shards, csv, "
                          "batches, records, hickle, synthetic; `troupe data convert` makes such files",
                          key.substr(0, key.find('='))));
    const auto s = settings(kSmallest, {"data." + key, "data.name=folder"});
    EXPECT_TRUE(s) << s.error().message;
  }
}

TEST(SettingsTest, ShareOfTheValidationSplitMayBeGivenWithoutQuotes) {
  EXPECT_EQ(settings(kSmallest, {"data.validation=0.1"})->data.validation, "0.1");
  EXPECT_EQ(refusal("data.validation=[1]"),
            "--set: data.validation = [1]: must be text in quotes: \"none\" | \"0.1\" (a share) | \"5000\" (a count) | "
            "\"folder:PATH\"");
}

TEST(SettingsTest, ValuesOutOfRangeAreRefused) {
  for (const auto* wrong : {"cluster.workers=0", "cluster.workers=100000", "cluster.servers=0", "run.seed=-1",
                            "run.epochs=0", "run.keep_checkpoints=1", "run.target_accuracy=1.5", "run.max_seconds=-1",
                            "cluster.device=tpu", "cluster.precision=fp8", "exchange.endpoint=pigeon",
                            "exchange.algorithm=magic", "exchange.wire=int8", "run.name=a/b", "run.name=.hidden",
                            "run.name=\"\"", "run.dir=\"\"", "cluster.threads_per_worker=0", "strategy.name=eamsgd2"})
    EXPECT_NE(refusal(wrong), "") << wrong;
}

// Whether the machine has it shows when the backend is made.
TEST(SettingsTest, EveryDeviceIsASetting) {
  EXPECT_EQ(settings(kSmallest, {"cluster.device=cuda"})->cluster.device, "cuda");
}

TEST(SettingsTest, DevicesGoByWorkerAndBeginAgain) {
  const auto mixed = settings(kSmallest, {"cluster.workers=5", R"(cluster.devices=["cuda:1", "cpu", "cuda:1"])"});
  ASSERT_TRUE(mixed) << mixed.error().message;
  EXPECT_EQ(mixed->device(4), "cpu");
  EXPECT_EQ(mixed->devices(), (std::vector<std::string>{"cuda:1", "cpu"}));
  EXPECT_EQ(mixed->backends(), (std::vector<std::string_view>{"gpu", "cpu"}));
  EXPECT_EQ(mixed->compile_options(3).device_name, "cuda:1");
  EXPECT_TRUE(mixed->compile_options(0).canonical_arenas);
  const auto gpus = settings(kSmallest, {"cluster.device=cpu", R"(cluster.devices=["cuda:0", "cuda:1"])",
                                         "cluster.precision=fp16", "cluster.deterministic=false"});
  ASSERT_TRUE(gpus) << gpus.error().message;
  EXPECT_EQ(gpus->backends(), (std::vector<std::string_view>{"gpu"}));
  const auto options = gpus->compile_options(1);
  EXPECT_FALSE(options.canonical_arenas) << "GPUs have one layout of their own";
  EXPECT_FALSE(options.deterministic);
  EXPECT_EQ(options.precision, nn::Precision::fp16);
  EXPECT_EQ(settings(kSmallest, {"cluster.precision=tf32", "cluster.device=cuda"})->precision(), nn::Precision::tf32);
}

TEST(SettingsTest, DevicesThatDoNotFitAreRefused) {
  EXPECT_NE(refusal(R"(cluster.devices=["cpu", "cpu", "cpu"])").find("3 values for 2 workers"), std::string::npos);
  EXPECT_NE(refusal("cluster.precision=tf32").find("a CPU computes in \"fp32\" or \"bf16\""), std::string::npos);
}

TEST(SettingsTest, FeaturesMissingInThisBuildNameWhatItHas) {
  EXPECT_NE(refusal("exchange.endpoint=mpi").find("ranks are processes"), std::string::npos);
  EXPECT_NE(refusal("exchange.algorithm=ring").find("use \"auto\" or \"shm\""), std::string::npos);
  EXPECT_NE(refusal("exchange.wire=fp16").find("use \"fp32\""), std::string::npos);
  const auto config = [] {
    return core::Config::parse(schema(), kSmallest, "a.toml", {"exchange.endpoint=mpi", "exchange.algorithm=ar"})
        .value();
  };
  EXPECT_FALSE(resolve(config()));
  EXPECT_TRUE(resolve(config(), Use::processes));
  EXPECT_TRUE(resolve(config(), Use::remains));
  EXPECT_TRUE(settings(kSmallest, {"exchange.algorithm=shm"}));
  EXPECT_TRUE(settings(kSmallest, {"exchange.endpoint=inproc", "exchange.algorithm=ring", "exchange.wire=fp16"}));
  for (const std::string endpoint : {"inproc", "shm"})
    EXPECT_TRUE(settings(kSmallest, {"exchange.endpoint=" + endpoint, "exchange.algorithm=shm"})) << endpoint;
  const auto over = [](const std::string& setting) {
    auto config = core::Config::parse(schema(), kSmallest, "a.toml", {"exchange.algorithm=shm", setting});
    const auto resolved = resolve(std::move(*config), Use::processes);
    return resolved ? std::string() : resolved.error().message;
  };
  EXPECT_EQ(over("exchange.wire=fp32"), "");
  EXPECT_EQ(
      over("exchange.endpoint=tcp"),
      "--set: exchange.algorithm = \"shm\": over exchange.endpoint = \"tcp\" no member maps another's memory: use "
      "\"auto\", or leave the endpoint at \"auto\" where all workers are on one host");
  EXPECT_EQ(over("exchange.wire=bf16"),
            "--set: exchange.wire = \"bf16\": exchange.algorithm = \"shm\" sums where the numbers are and rounds "
            "nothing: use \"fp32\", or exchange.algorithm = \"asa16\"");
}

TEST(SettingsTest, ExchangeOptionsDecideBetweenOneProcessAndSeveral) {
  const auto use = [](std::vector<std::string> overrides) {
    return intended_use(core::Config::parse(schema(), kSmallest, "a.toml", overrides).value());
  };
  EXPECT_EQ(use({}), Use::run);
  EXPECT_EQ(use({"exchange.endpoint=tcp", "exchange.algorithm=ring"}), Use::run);
  EXPECT_EQ(use({"exchange.endpoint=mpi"}), Use::processes);
  EXPECT_EQ(use({"exchange.endpoint=mpi", "exchange.algorithm=shm"}), Use::processes);  // and invalid there
  EXPECT_EQ(use({"exchange.algorithm=ring"}), Use::processes);
  EXPECT_EQ(use({"exchange.wire=fp16"}), Use::processes);
  EXPECT_EQ(use({"exchange.algorithm=ar"}), Use::run);  // invalid everywhere
}

TEST(SettingsTest, ErrorsInAFileNameTheLine) {
  const auto s = settings(std::string(kSmallest) + "[cluster]\nworkers = 2\ndevice = \"tpu\"\n");
  ASSERT_FALSE(s);
  EXPECT_TRUE(s.error().message.starts_with("a.toml:7: cluster.device")) << s.error().message;
}

TEST(SettingsTest, CheckpointPeriodsAreParsed) {
  EXPECT_EQ(parse_checkpoint_period("never"), CheckpointPeriod{});
  EXPECT_EQ(parse_checkpoint_period("1 epoch"), (CheckpointPeriod{.epochs = 1}));
  EXPECT_EQ(parse_checkpoint_period("3 epochs"), (CheckpointPeriod{.epochs = 3}));
  EXPECT_EQ(parse_checkpoint_period("500 steps"), (CheckpointPeriod{.steps = 500}));
  EXPECT_EQ(parse_checkpoint_period("30 s"), (CheckpointPeriod{.seconds = 30}));
  EXPECT_EQ(parse_checkpoint_period("2.5 min"), (CheckpointPeriod{.seconds = 150}));
  for (const auto* wrong : {"", "1", "epoch", "0 epochs", "-1 steps", "1.5 epochs", "1 hour", "1  epoch", " 1 epoch",
                            "1 epoch ", "nan s", "inf s", "1e400 s", "1epoch", "never ever"})
    EXPECT_FALSE(parse_checkpoint_period(wrong)) << wrong;
  EXPECT_NE(refusal("run.checkpoint_every=often").find("\"N epochs\" | \"N steps\""), std::string::npos);
}

}  // namespace
}  // namespace troupe::experiment
