// `troupe export`: weights that come back with --init, and files that say how images are prepared. What ONNX files compute: tests/nn/onnx.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "nn/checkpoint/safetensors.hpp"
#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;

const std::string kExportConfig = tests::small_config("[run]\nname = \"first\"\nepochs = 1", R"([train]
lr = 0.05
[strategy]
name = "bsp"
)");
const std::string kNormModel =
    "model.layers=[{type=\"conv2d\", outputs=3, kernel=5, bias=false}, {type=\"batch_norm\"}, {type=\"linear\", "
    "outputs=10}]";

class ExportTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto outcome = troupe({"train", config_, "--json", "--quiet", "--set", "run.dir=" + folder_.file("runs"),
                                 "--set", "model.name=norm", "--set", kNormModel});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    summary_ = json::parse(outcome.out);
    run_ = summary_["run"];
  }
  Outcome exported(const std::string& form, const std::string& file) const {
    return troupe({"export", run_, "--to", form, file});
  }

  TemporaryDirectory folder_;
  std::string config_ = folder_.write("config.toml", kExportConfig);
  json summary_;
  std::string run_;
};

TEST_F(ExportTest, SafetensorsHaveTheNamesOfAStateDictAndComeBack) {
  const auto file = folder_.file("weights.safetensors");
  const auto outcome = exported("safetensors", file);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(summary_["center_hash"].get<std::string>()), std::string::npos) << outcome.out;
  const auto read = nn::read_safetensors(nn::system_files(), file, nn::Checksums::required);
  ASSERT_TRUE(read) << read.error().message;
  std::set<std::string> names;
  for (const auto& tensor : read->tensors()) names.insert(tensor.name);
  EXPECT_EQ(names, (std::set<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean",
                                          "bn1.running_var", "bn1.num_batches_tracked", "fc1.weight", "fc1.bias"}));
  EXPECT_EQ(read->metadata().at("format"), "pt");
  EXPECT_EQ(read->metadata().at("model"), "norm");
  const auto mean = std::stod(read->metadata().at("mean"));  // glyphs: grey, mostly black
  EXPECT_GT(mean, 0);
  EXPECT_LT(mean, 0.5);
  EXPECT_EQ(read->metadata().at("deviation"), "1");

  const auto evaluated = [&](const std::vector<std::string>& arguments) {
    auto all = arguments;
    all.insert(all.begin(), "eval");
    all.emplace_back("--json");
    const auto result = troupe(all);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(evaluated({file, "--config", run_ + "/config.toml"}), evaluated({run_}));
  const auto again = troupe({"train", run_ + "/config.toml", "--init", file, "--json", "--quiet"});
  EXPECT_EQ(again.code, 0) << again.err;
}

TEST_F(ExportTest, OnnxHasOperatorsWeightsAndThePreprocessing) {
  const auto file = folder_.file("model.onnx");
  ASSERT_EQ(exported("onnx", file).code, 0);
  const auto bytes = contents(file);
  for (const char* text : {"BatchNormalization", "bn1.running_var", "images", "logits", "deviation"})
    EXPECT_NE(bytes.find(text), std::string::npos) << text;
  EXPECT_GT(bytes.size(), 4U * (3 * 25 + 2 * 3 + 3 * 24 * 24 * 10 + 10));
}

TEST_F(ExportTest, BadInputIsOneLineAndWritesNothing) {
  const auto expect = [&](const std::vector<std::string>& arguments, int code) {
    const auto outcome = troupe(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
  };
  const auto file = folder_.file("out");
  expect({"export", run_, file}, 2);
  expect({"export", run_, "--to", "pickle", file}, 2);
  expect({"export", run_, "--to", "onnx"}, 2);
  expect({"export", folder_.file("none"), "--to", "onnx", file}, 78);
  expect({"export", run_, "--to", "onnx", folder_.file("none/out")}, 74);
  expect({"export", run_, "--to", "onnx", file, "--set", "model.layers=[{type=\"linear\", outputs=10}]"}, 78);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(ExportTest, EvalCountsWhichClassesAreTakenForWhich) {
  const auto outcome = troupe({"eval", run_, "--classes", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto report = json::parse(outcome.out);
  const auto plain = troupe({"eval", run_, "--json"});
  EXPECT_FALSE(json::parse(plain.out).contains("confusion"));
  double correct = 0;
  int samples = 0, on_diagonal = 0;
  for (const auto& c : report["classes"]) {
    samples += c["samples"].get<int>();
    correct += c["samples"].get<double>() * c["accuracy"].get<double>();
  }
  EXPECT_EQ(samples, report["samples"]);
  EXPECT_NEAR(correct / samples, report["accuracy"].get<double>(), 1e-12);
  for (const auto& cell : report["confusion"]) {
    samples -= cell[2].get<int>();
    if (cell[0] == cell[1]) on_diagonal += cell[2].get<int>();
  }
  EXPECT_EQ(samples, 0);
  EXPECT_NEAR(on_diagonal, correct, 1e-6);
  const auto table = troupe({"eval", run_, "--classes"});
  EXPECT_NE(table.out.find("most often taken for"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("true class (rows), prediction (columns)"), std::string::npos) << table.out;
}

TEST_F(ExportTest, EvalDrawsTheConfusionMatrix) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const auto outcome = troupe({"eval", run_, "--plot", folder_.file("pictures")});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* name : {"confusion.png", "class-accuracy.png"})
    EXPECT_GT(std::filesystem::file_size(folder_.file("pictures") + "/" + name), 5000U);
}

}  // namespace
}  // namespace troupe::apps
