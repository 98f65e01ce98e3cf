// `train --init`: a new run with a checkpoint's weights; `train --dry-run`: what a run would be; `eval` of a checkpoint alone.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "nn/checkpoint/checkpoint.hpp"
#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;

const std::string kInitConfig = tests::small_config("[run]\nname = \"first\"\nepochs = 1", R"([train]
lr = 0.05
momentum = 0.9
[strategy]
name = "bsp"
)");

class InitTest : public testing::Test {
 protected:
  /// The summary of a run called `name`.
  json train(const std::string& name, const std::vector<std::string>& more = {}) const {
    const auto outcome = attempt(name, more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  }
  Outcome attempt(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> all{"train", config_,           "--json", "--quiet", "--set", "run.dir=" + runs(),
                                 "--set", "run.name=" + name};
    all.insert(all.end(), more.begin(), more.end());
    return troupe(all);
  }
  json resume(const std::string& run, const std::vector<std::string>& more) const {
    std::vector<std::string> all{"train", "--resume", run, "--json", "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    const auto outcome = troupe(all);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  }
  std::string runs() const { return folder_.file("runs"); }
  std::size_t count_runs() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(runs()), {}));
  }
  static json evaluated(const std::vector<std::string>& arguments) {
    auto all = arguments;
    all.insert(all.begin(), "eval");
    all.emplace_back("--json");
    const auto outcome = troupe(all);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? json::parse(outcome.out) : json();
  }
  /// Oldest first.
  static std::vector<std::string> checkpoints(const std::string& run) {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints"))
      if (entry.path().extension() == ".safetensors") paths.push_back(entry.path().string());
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  static std::string newest(const std::string& run) {
    const auto all = checkpoints(run);
    return all.empty() ? std::string() : all.back();
  }
  static void expect_replays(const json& summary) {
    const auto outcome = troupe({"replay", summary["run"], "--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (outcome.code != 0) return;
    const auto report = json::parse(outcome.out);
    EXPECT_EQ(report["center_hash"], summary["center_hash"]);
    EXPECT_TRUE(report["complete"]);
    EXPECT_GT(report["hashes"].get<int>(), 0);
  }

  TemporaryDirectory folder_;
  std::string config_ = folder_.write("config.toml", kInitConfig);
};

TEST_F(InitTest, ANewRunBeginsWithTheCheckpointsWeights) {
  const auto first = train("first");
  const auto second = train("second", {"--init", first["run"]});
  EXPECT_EQ(second["steps"], first["steps"]);  // of a run of its own
  EXPECT_NE(second["center_hash"], first["center_hash"]);
  const auto run = second["run"].get<std::string>();
  EXPECT_EQ(evaluated({run + "/journal-0001.start.safetensors"})["hash"], first["center_hash"]);
  const auto kept = checkpoints(run);  // of its beginning, and of its only epoch
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(evaluated({kept.front()})["hash"], first["center_hash"]);
  EXPECT_EQ(evaluated({kept.back()})["hash"], second["center_hash"]);
  EXPECT_LT(second["train"]["loss"], first["train"]["loss"]);
  const auto checkpoint = newest(first["run"]);
  EXPECT_NE(contents(run + "/config.toml").find("init = \"" + checkpoint + "\""), std::string::npos);
  EXPECT_NE(contents(run + "/metrics.jsonl").find("begins with the weights of " + checkpoint), std::string::npos);
  // The file and the directory name the same weights, and so does the run's own configuration.
  EXPECT_EQ(train("third", {"--init", checkpoint})["center_hash"], second["center_hash"]);
  const auto again = troupe({"train", run + "/config.toml", "--json", "--quiet"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out)["center_hash"], second["center_hash"]);
}

TEST_F(InitTest, ReplayAndResumeNeedTheFirstRunNoMore) {
  const auto first = train("first");
  const auto whole = train("whole", {"--init", first["run"], "--set", "run.epochs=2"});
  auto parts = train("parts", {"--init", first["run"]});
  std::filesystem::remove_all(first["run"].get<std::string>());
  expect_replays(parts);
  parts = resume(parts["run"], {"--set", "run.epochs=2"});
  EXPECT_EQ(parts["center_hash"], whole["center_hash"]);
  EXPECT_EQ(parts["steps"], whole["steps"]);
  expect_replays(parts);
}

// Servers, an average beside the centre, peer messages, and running statistics: each begins with the file's.
TEST_F(InitTest, EveryKindOfStrategyBeginsAndReplays) {
  const auto first = train("first");
  for (const char* strategy : {"easgd", "downpour", "mixed", "gossip", "diloco"}) {
    SCOPED_TRACE(strategy);
    const auto name = std::string("strategy.name=") + strategy;
    const auto second = train(strategy, {"--init", first["run"], "--set", name, "--set", "train.optimizer=sgd"});
    ASSERT_TRUE(second.is_object());
    expect_replays(second);
  }
  const std::string normalised =
      "model.layers=[{type=\"conv2d\", outputs=3, kernel=5, bias=false}, {type=\"batch_norm\"}, {type=\"linear\", "
      "outputs=10}]";
  const auto norm = train("norm", {"--set", "model.name=norm", "--set", normalised});
  const auto next = train("next", {"--set", "model.name=norm", "--set", normalised, "--init", norm["run"]});
  expect_replays(next);
}

TEST_F(InitTest, AnotherModelIsRefusedBeforeTheRunBegins) {
  const auto first = train("first");
  const std::string file = newest(first["run"]);
  const auto expect = [&](const std::vector<std::string>& more, int code, const std::string& why) {
    const auto outcome = attempt("other", more);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
    EXPECT_EQ(count_runs(), 1U);
  };
  expect({"--init", file, "--set", "model.widths=[25]"}, 78, "tensor \"fc1.weight\"");
  expect({"--init", file, "--set", "model.widths=[24, 10]"}, 78, "tensor \"fc3.weight\"");
  const auto deep = train("deep", {"--set", "model.widths=[24, 10]"});
  std::filesystem::remove_all(first["run"].get<std::string>());
  expect({"--init", deep["run"]}, 78, "tensor \"fc3.");
  expect({"--init", folder_.file("none")}, 78, "none does not exist");
  expect({"--set", "run.init=" + folder_.file("none")}, 78, "none does not exist");
  expect({"--init", folder_.write("empty.safetensors", "")}, 65, "empty.safetensors");
  expect({"--init", runs()}, 78, "not a run directory");
  const auto resumed = troupe({"train", "--resume", deep["run"], "--set", "run.init=x", "--set", "run.epochs=2"});
  EXPECT_EQ(resumed.code, 78) << resumed.err;
  EXPECT_EQ(troupe({"train", "--resume", deep["run"], "--init", file}).code, 2);
  const auto checked = troupe({"check", config_, "--set", "run.init=" + deep["run"].get<std::string>()});
  EXPECT_EQ(checked.code, 78) << checked.out;
}

/// The tensors of a checkpoint's model as another program writes them: no metadata, no checksums.
std::string foreign_file(const std::string& checkpoint) {
  const auto loaded = nn::load_checkpoint(checkpoint);
  EXPECT_TRUE(loaded) << loaded.error().message;
  std::string header = "{", data;
  for (const auto& tensor : loaded->file.tensors()) {
    if (!tensor.name.starts_with("fc")) continue;
    header += fmt::format("{}\"{}\":{{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", tensor.name, tensor.shape, data.size(),
                          data.size() + tensor.data.size());
    data.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  header += "}";
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

TEST_F(InitTest, WeightsOfAnotherProgramBeginARun) {
  const auto first = train("first");
  const auto weights = folder_.write("weights.safetensors", foreign_file(newest(first["run"])));
  const auto second = train("second", {"--init", weights});
  EXPECT_EQ(second["center_hash"], train("third", {"--init", first["run"]})["center_hash"]);
  expect_replays(second);
  EXPECT_EQ(evaluated({weights, "--config", first["run"].get<std::string>() + "/config.toml"}),
            evaluated({first["run"]}));
}

TEST_F(InitTest, HostileWeightsAreOneLineAndNoRun) {
  const auto whole = foreign_file(newest(train("first")["run"]));
  std::uint64_t header = 0;
  std::memcpy(&header, whole.data(), sizeof(header));
  const auto with = [&](std::size_t at, const std::string& bytes) {
    auto text = whole;
    return text.replace(at, bytes.size(), bytes);
  };
  const auto expect = [&](const std::string& text, const std::string& why) {
    const auto file = folder_.write("w.safetensors", text);
    for (const auto& more : {std::vector<std::string>{"--init", file}, {"--init", file, "--partial"}}) {
      const auto outcome = attempt("hostile", more);
      EXPECT_EQ(outcome.code, 65) << outcome.err;
      EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
      EXPECT_NE(outcome.err.find("w.safetensors: " + why), std::string::npos) << outcome.err;
    }
    const auto evaluated = troupe({"eval", file, "--config", config_});
    EXPECT_EQ(evaluated.code, 65) << evaluated.err;
    EXPECT_TRUE(is_one_line(evaluated)) << evaluated.err;
  };
  expect(whole.substr(0, 5), "5 bytes are too few");
  expect(whole.substr(0, whole.size() - 4), "tensor \"fc2.");
  expect(whole + "x", "the header describes");
  expect(with(7, "\x7f"), "a header of");
  expect(with(whole.find("F32"), "F33"), "tensor \"fc1.");
  expect(with(whole.find("fc2."), "fc1."), "header: name \"fc1.");
  expect(with(8 + header + 40, std::string("\0\0\x80\x7f", 4)), "tensor \"fc1.");
  EXPECT_EQ(count_runs(), 1U);
}

TEST_F(InitTest, PartialTakesWhatFitsAndTheRunReplays) {
  const auto first = train("first");
  const auto weights = folder_.write("weights.safetensors", foreign_file(newest(first["run"])));
  const std::vector<std::string> deep{"--init", weights, "--set", "model.widths=[24, 10]"};
  const auto refused = attempt("deep", deep);  // the file's last layer is as large as this model's second
  EXPECT_EQ(refused.code, 78);
  EXPECT_NE(refused.err.find("--partial"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("tensor \"fc3.weight\": it is missing, the model needs [10, 10]"), std::string::npos)
      << refused.err;
  auto partial = deep;
  partial.emplace_back("--partial");
  const auto second = train("deep", partial);
  const auto run = second["run"].get<std::string>();
  EXPECT_NE(contents(run + "/metrics.jsonl").find("4 tensors taken; fresh: tensor \\\"fc3.weight"), std::string::npos);
  EXPECT_NE(contents(run + "/config.toml").find("init_partial = true"), std::string::npos);
  std::filesystem::remove(weights);
  expect_replays(second);
  EXPECT_EQ(attempt("x", {"--partial"}).code, 2);
  EXPECT_EQ(attempt("x", {"--set", "run.init_partial=true"}).code, 78);
}

TEST_F(InitTest, EvalOfACheckpointThatWasCopiedOutOfItsRun) {
  const auto first = train("first");
  const auto within = evaluated({first["run"]});
  const auto alone = folder_.file("elsewhere/best.safetensors");
  std::filesystem::create_directories(folder_.file("elsewhere"));
  std::filesystem::copy_file(newest(first["run"]), alone);
  std::filesystem::rename(config_, folder_.file("elsewhere/small.toml"));  // the folder above has no config.toml
  EXPECT_EQ(evaluated({alone}), within);
  EXPECT_EQ(evaluated({alone, "--set", "data.test_samples=50"})["samples"], 50);
  EXPECT_EQ(evaluated({alone, "--config", folder_.file("elsewhere/small.toml")}), within);

  // Version 0.1 wrote no configuration into its checkpoints.
  const auto loaded = nn::load_checkpoint(alone);
  ASSERT_TRUE(loaded) << loaded.error().message;
  auto metadata = loaded->file.metadata();
  metadata.erase("config");
  ASSERT_TRUE(nn::write_checkpoint(nn::system_files(), folder_.file("elsewhere"), "old.safetensors", loaded->step,
                                   loaded->file.tensors(), metadata));
  const auto old = folder_.file("elsewhere/old.safetensors");
  const auto refused = troupe({"eval", old});
  EXPECT_EQ(refused.code, 78);
  EXPECT_NE(refused.err.find("--config FILE"), std::string::npos) << refused.err;
  EXPECT_EQ(evaluated({old, "--config", folder_.file("elsewhere/small.toml")}), within);
}

// 784·24 + 24 + 24·10 + 10 parameters; 60 steps of 20 samples an epoch.
TEST_F(InitTest, DryRunSaysWhatARunWouldBeAndWritesNothing) {
  const auto before = folder_.entries();
  const auto outcome = troupe({"train", config_, "--dry-run", "--json", "--set", "run.dir=" + runs()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(folder_.entries(), before);
  const auto j = json::parse(outcome.out);
  EXPECT_EQ(j["parameters"], 19'090);
  EXPECT_EQ(j["flops"], 2.0 * (2 * 784 * 24 + 3 * 24 * 10));  // no gradient of the images
  ASSERT_EQ(j["layers"].size(), 3U);
  EXPECT_EQ(j["layers"][0], (json{{"name", "fc1"},
                                  {"type", "linear"},
                                  {"output", "24"},
                                  {"parameters", 784 * 24 + 24},
                                  {"flops", 2.0 * 2 * 784 * 24},
                                  {"activation_bytes", 20 * 24 * 4}}));
  EXPECT_EQ(j["layers"][1]["type"], "sigmoid");
  EXPECT_EQ(j["steps_per_epoch"], 60);
  EXPECT_EQ(j["steps"], 60);
  EXPECT_EQ(j["samples"], 1200);
  ASSERT_EQ(j["memory"].size(), 1U);
  const auto& memory = j["memory"][0];
  EXPECT_GE(memory["parameters"].get<int>(), 4 * 19'090);
  EXPECT_EQ(memory["gradients"], memory["parameters"]);
  EXPECT_EQ(memory["optimizer"], memory["parameters"]);  // momentum: one vector
  EXPECT_GT(memory["workspace"].get<int>(), 0);
  int sum = 0;
  for (const char* part : {"parameters", "gradients", "optimizer", "strategy", "statistics", "workspace"})
    sum += memory[part].get<int>();
  EXPECT_EQ(memory["total"], sum);
  EXPECT_GT(j["forecast_s"].get<double>(), 0);
  EXPECT_TRUE(j["step_times"].get<std::string>().starts_with("measured now on this machine")) << j["step_times"];
}

// Activations are of a part of the batch; the sum of gradients is one vector more.
TEST_F(InitTest, DryRunCountsTheMemoryOfMicroBatches) {
  const auto memory = [&](int parts) {
    const auto outcome = troupe({"train", config_, "--dry-run", "--json", "--set", "data.batch=600", "--set",
                                 "train.accumulate=" + std::to_string(parts)});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  };
  const auto whole = memory(1), parts = memory(20);
  EXPECT_EQ(parts["layers"][0]["activation_bytes"], 30 * 24 * 4);
  const auto workspace = [](const json& j) { return j["memory"][0]["workspace"].get<int>(); };
  const int gradients = parts["memory"][0]["gradients"];
  EXPECT_GT(workspace(parts), gradients);
  EXPECT_LT(workspace(parts) - gradients, workspace(whole));
}

TEST_F(InitTest, DryRunNeedsNoDataOfAPublishedForm) {
  const auto config =
      folder_.write("mnist.toml", "[model]\nname = \"lenet\"\n[data]\nname = \"mnist\"\npath = \"nowhere\"\n");
  const auto outcome = troupe({"train", config, "--dry-run", "--set", "strategy.name=bsp"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("431,080"), std::string::npos) << outcome.out;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

// 60 steps by two workers that need 40 ms for each, in step: 30 · 40 ms, as the profile says, on two cores or more.
TEST_F(InitTest, DryRunTakesTheTimesOfAProfile) {
  const auto profile = folder_.write("p.json", R"({"model":"mlp","batch":20,"parameters":19090,"steps_ms":[30,50]})");
  const std::vector<std::string> dry{"train", config_, "--dry-run", "--json", "--profile", profile};
  const auto outcome = troupe(dry);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto j = json::parse(outcome.out);
  EXPECT_EQ(j["step_times"], "of the profile " + profile);
  EXPECT_DOUBLE_EQ(j["forecast_s"].get<double>(), 30e-3 * j["memory"][0]["step_ms"].get<double>());
  EXPECT_GE(j["memory"][0]["step_ms"].get<double>(), 40 - 1e-9);
  auto other = dry;
  other.insert(other.end(), {"--set", "model.widths=[12]"});
  const auto refused = troupe(other);
  EXPECT_EQ(refused.code, 78);
  EXPECT_NE(refused.err.find("(19090 parameters)"), std::string::npos) << refused.err;
  EXPECT_EQ(troupe({"train", config_, "--profile", profile}).code, 2);
  EXPECT_EQ(troupe({"train", config_, "--dry-run", "--nodes", "127.0.0.1:1"}).code, 2);
}

}  // namespace
}  // namespace troupe::apps
