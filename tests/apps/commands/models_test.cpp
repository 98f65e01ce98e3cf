#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "nn/layers_config.hpp"
#include "tests/apps/program.hpp"

namespace troupe::apps {
namespace {

TEST(ModelsTest, JsonIsALinePerModelWithItsTotal) {
  const auto outcome = troupe({"models", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::map<std::string, std::int64_t> parameters;
  std::map<std::string, std::string> inputs;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    parameters[json["model"]] = json["parameters"];
    inputs[json["model"]] = json["input"];
  }
  EXPECT_EQ(inputs["cifar"], "3x28x28");
  EXPECT_EQ(inputs["lenet"], "1x28x28");
  EXPECT_EQ(inputs["alexnet"], "3x227x227");
  // mlp 784·100 + 100 + 100·100 + 100 + 100·10 + 10; lenet 20·25 + 20 + 50·20·25 + 50 + 500·800 + 500 + 10·500 + 10
  EXPECT_EQ(parameters.size(), 12U);
  EXPECT_EQ(parameters["mlp"], 89'610);
  EXPECT_EQ(parameters["lenet"], 431'080);
  EXPECT_EQ(parameters["cifar"], 351'946);
  EXPECT_EQ(parameters["alexnet"], 60'965'224);  // Krizhevsky et al. 2012, as Caffe counts it
}

TEST(ModelsTest, PlainListNamesThem) {
  const auto outcome = troupe({"models"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("lenet"), std::string::npos);
  EXPECT_NE(outcome.out.find("431,080"), std::string::npos);
}

TEST(ModelsTest, LayersAreListedWithTheirDefaults) {
  const auto outcome = troupe({"models"});
  for (const char* row : {"  dropout                rate = 0.5\n",
                          "  pool                   kind = \"max\", kernel = 2, stride = the kernel",
                          "outputs (required), kernel (required), stride = 1", "  relu                   no keys\n",
                          "  every layer  name; inputs: names of earlier layers", "  a block      layers, and name"})
    EXPECT_NE(outcome.out.find(row), std::string::npos) << outcome.out;
  EXPECT_NE(troupe({"train", "--help", "model"}).out.find("  dropout                rate = 0.5\n"), std::string::npos);
}

TEST(ModelsTest, DocumentationListsEveryLayerAndKey) {
  const auto page = contents(TROUPE_SOURCE_DIR "/docs/formats/configuration.md");
  for (const auto& type : nn::layer_types()) {
    const auto name = page.find("`" + type.name + "`");
    ASSERT_NE(name, std::string::npos) << type.name;
    const auto row = page.substr(name, page.find('\n', name) - name);
    for (const auto& key : type.keys) EXPECT_NE(row.find(key.name), std::string::npos) << type.name << " " << key.name;
  }
}

}  // namespace
}  // namespace troupe::apps
