// `troupe data`: what is said of a data set, its sheet, and its other forms, which train as the data set itself.
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/images/decode.hpp"
#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;

std::vector<std::uint8_t> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class DataCommandTest : public testing::Test {
 protected:
  TemporaryDirectory folder_;
  const std::vector<std::string> small_{"--set", "data.name=glyphs",     "--set", "data.train_samples=300",
                                        "--set", "data.test_samples=100"};
  [[nodiscard]] Outcome data(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "data");
    arguments.insert(arguments.end(), small_.begin(), small_.end());
    return troupe(arguments);
  }
};

TEST_F(DataCommandTest, InspectCountsClassesAndDrawsASheet) {
  const auto sheet = folder_.file("sheet.png");
  const auto outcome = data({"inspect", "--sheet", sheet, "--columns", "4", "--cell", "28", "--decode", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto facts = json::parse(outcome.out);
  EXPECT_EQ(facts["shape"], json({1, 28, 28}));
  EXPECT_EQ(facts["splits"]["test"]["samples"], 100);
  std::int64_t counted = 0;
  for (const auto& count : facts["splits"]["train"]["by_class"]) counted += count.get<std::int64_t>();
  EXPECT_EQ(counted, 300);
  EXPECT_EQ(facts["splits"]["train"]["unreadable"], 0);
  const auto size = data::picture_size(bytes_of(sheet), 1'000'000);
  ASSERT_TRUE(size);
  EXPECT_EQ(*size, (data::PictureSize{4 * 30 + 2, 10 * 30 + 2}));
  const auto table = data({"inspect"});
  EXPECT_NE(table.out.find("glyphs: images of 1 x 28 x 28, 10 classes"), std::string::npos) << table.out;
}

TEST_F(DataCommandTest, ConvertedDataTrainsToTheSameBits) {
  const auto converted = folder_.file("batches");
  const auto outcome = data({"convert", "--to", "batches", "--output", converted, "--ordered", "--per-file", "100"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto config = folder_.write(
      "config.toml", tests::small_config("[run]\nname = \"a\"\nepochs = 1", "[strategy]\nname = \"bsp\"\n"));
  const auto hash = [&](std::vector<std::string> more) {
    std::vector<std::string> command{
        "train", config, "--json", "--quiet", "--set", "run.dir=" + folder_.file("runs"), "--set", "data.window=0"};
    command.insert(command.end(), more.begin(), more.end());
    const auto run = troupe(command);
    EXPECT_EQ(run.code, 0) << run.err;
    const auto summary = json::parse(run.out);
    return std::pair(summary["center_hash"].get<std::string>(), summary["test"]["loss"].get<double>());
  };
  const auto statistics = folder_.file("mean.json");
  ASSERT_EQ(data({"mean", "--output", statistics}).code, 0);
  auto itself = small_;
  itself.insert(itself.end(), {"--set", "data.statistics=" + statistics, "--set", "data.shuffle=false"});
  EXPECT_EQ(hash(itself), hash({"--set", "data.name=batches", "--set", "data.path=" + converted, "--set",
                                "data.statistics=" + statistics, "--set", "data.shuffle=false"}));
}

TEST_F(DataCommandTest, BadInputIsOneLine) {
  const auto expect = [&](const Outcome& outcome, int code, const std::string& why) {
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.err;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  };
  expect(troupe({"data", "inspect"}), 78, "missing key \"name\" in section [data]");
  expect(troupe({"data", "inspect", "--set", "data.name=folder", "--set", "data.path=" + folder_.file("none")}), 65,
         "none");
  expect(data({"convert", "--to", "shards"}), 2, "--output");
  expect(data({"convert", "--output", "/proc/none", "--to", "batches"}), 74, "/proc/none");
  expect(data({"mean", "--output", folder_.file("a/b/c.json")}), 74, "c.json");
}

}  // namespace
}  // namespace troupe::apps
