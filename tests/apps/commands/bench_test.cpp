#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

TEST(BenchTest, StepPrintsItsThreeFigures) {
  const auto outcome = troupe({"bench", "step", "--model", "mlp", "--batch", "4", "--precision", "fp32", "--threads",
                               "1", "--device", "cpu", "--seconds", "0.01", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json.size(), 3u);
  const double images_per_s = json["images_per_s"], ms_per_step = json["ms_per_step"];
  EXPECT_GT(json["gflops"].get<double>(), 0);
  EXPECT_NEAR(images_per_s * ms_per_step / 1000, 4, 0.01);  // samples per step
}

constexpr const char* kOwnModel = R"([model]
name = "own"
layers = [{type = "flatten"}, {type = "linear", outputs = 12}, {type = "relu"}, {type = "linear", outputs = 10}]
[data]
name = "glyphs"
batch = 5
[strategy]
name = "bsp"
)";

// 784·12 + 12 + 12·10 + 10 parameters.
TEST(BenchTest, StepMeasuresTheModelOfAConfiguration) {
  const TemporaryDirectory folder;
  const auto config = folder.write("own.toml", kOwnModel), profile = folder.file("own.json");
  const auto outcome = troupe({"bench", "step", config, "--seconds", "0.01", "--profile", profile});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("own, batch 5, fp32, 1 x cpu: ")) << outcome.out;
  const auto json = nlohmann::json::parse(contents(profile));
  EXPECT_EQ(json["model"], "own");
  EXPECT_EQ(json["batch"], 5);
  EXPECT_EQ(json["parameters"], 9550);
  EXPECT_FALSE(json["steps_ms"].empty());
  const auto other =
      troupe({"bench", "step", config, "--batch", "7", "--set", "model.name=other", "--seconds", "0.01"});
  EXPECT_TRUE(other.out.starts_with("other, batch 7, ")) << other.out << other.err;
  EXPECT_EQ(troupe({"bench", "step", config, "--model", "lenet"}).code, 2);
  EXPECT_EQ(troupe({"bench", "step", "--set", "data.batch=3"}).code, 2);
  EXPECT_EQ(troupe({"bench", "step", folder.file("none.toml")}).code, 78);
}

TEST(BenchTest, ExchangePrintsItsThreeFigures) {
  for (const char* ranks_are : {"--threads", "--processes"}) {
    const auto outcome =
        troupe({"bench", "exchange", ranks_are, "--ranks", "3", "--parameters", "1000", "--rounds", "2", "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json.size(), 3u);
    for (const char* key : {"ms", "gb_per_s", "memcpy_ms"}) EXPECT_GT(json[key].get<double>(), 0) << key;
  }
  EXPECT_EQ(troupe({"bench", "exchange", "--threads", "--processes"}).code, 2);
}

TEST(BenchTest, DeviceMeasuresVectorKernelsAndWaits) {
  const auto outcome = troupe({"bench", "device", "--device", "cuda_on_host", "--parameters", "1000", "--rounds", "1",
                               "--model", "mlp", "--batch", "2", "--precision", "bf16", "--steps", "2", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  std::set<std::string> kernels;
  for (const auto& line : json["vectors"]) kernels.insert(line["kernel"]);
  for (const char* kernel : {"copy", "elastic_pair", "momentum", "adam"})
    EXPECT_TRUE(kernels.contains(kernel)) << kernel;
  EXPECT_GT(json["step"]["ms_per_step"].get<double>(), 0);
  EXPECT_GE(json["step"]["operations_per_step"].get<double>(), 4);
  EXPECT_GE(json["step"]["idle_us_per_step"].get<double>(), 0);
  EXPECT_EQ(troupe({"bench", "device", "--device", "cpu"}).code, 2);
}

TEST(BenchTest, BreakdownNamesEveryLayerAndItsSumIsTheStep) {
  const auto outcome =
      troupe({"bench", "step", "--model", "lenet", "--batch", "4", "--seconds", "0.05", "--breakdown", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  const auto& breakdown = json.at("breakdown");
  double sum = breakdown.at("loss_ms").get<double>() + breakdown.at("optimizer_ms").get<double>();
  double flops = 0;
  std::set<std::string> layers;
  for (const auto& operation : breakdown.at("operations")) {
    sum += operation.at("ms").get<double>();
    flops += operation.at("flops").get<double>();
    layers.insert(operation.at("layer"));
  }
  for (const char* layer : {"conv1", "conv2", "fc1", "fc2"}) EXPECT_TRUE(layers.contains(layer)) << layer;
  // Another window than that of ms_per_step, on a shared machine: only the order of magnitude is certain.
  EXPECT_GT(sum, 0.1 * json.at("ms_per_step").get<double>());
  EXPECT_NEAR(flops, json.at("gflops").get<double>() * 1e6 * json.at("ms_per_step").get<double>(), 1e-6 * flops);

  const auto table = troupe({"bench", "step", "--model", "lenet", "--batch", "4", "--seconds", "0.01", "--breakdown"});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_NE(table.out.find("conv2 backward"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("optimizer"), std::string::npos) << table.out;
  EXPECT_EQ(table.out.find("backward backward"), std::string::npos) << table.out;
}

TEST(BenchTest, ADeviceThatIsNotThereIsExit78) {
  const auto outcome = troupe({"bench", "step", "--device", "cuda", "--batch", "4", "--seconds", "0.01"});
  if (outcome.code == 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(outcome.code, 78) << outcome.err;
  EXPECT_NE(outcome.err.find("device \"cuda\": "), std::string::npos) << outcome.err;
}

TEST(BenchTest, ABreakdownIsOfTheCpu) {
  const auto outcome = troupe({"bench", "step", "--device", "cuda", "--breakdown"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("--breakdown"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace troupe::apps
