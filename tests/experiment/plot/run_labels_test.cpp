#include "experiment/plot/run_labels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/folder.hpp"

namespace troupe::plot {
namespace {

using testing::ElementsAre;

class RunLabelsTest : public testing::Test {
 protected:
  void run(const std::string& name, const std::string& strategy, const std::string& config = {}) {
    directories_.push_back(folder_.file(name));
    folder_.write(name + "/metrics.jsonl", R"({"kind":"started","t":0,"strategy":")" + strategy + "\"}\n");
    if (!config.empty()) folder_.write(name + "/config.toml", config);
  }
  std::vector<std::string> labels() const {
    const auto runs = read_runs(directories_);
    EXPECT_TRUE(runs.has_value());
    std::vector<std::string> all;
    for (const auto& run : *runs) all.push_back(run.label);
    return all;
  }

 private:
  const tests::Folder folder_;
  std::vector<std::string> directories_;
};

TEST_F(RunLabelsTest, EqualNamesHaveTheirTimeAndThenANumber) {
  for (const auto* name : {"a/20260102-030405-x", "a/20260102-030406-x", "b/20260102-030405-x", "a/20260102-030405-y"})
    run(name, "easgd");
  EXPECT_THAT(labels(), ElementsAre("20260102-030405-x", "20260102-030406-x", "20260102-030405-x-2", "y"));
}

TEST_F(RunLabelsTest, EqualNamesHaveTheStrategyThatDiffers) {
  run("20260102-030405-glyphs-easgd", "easgd", "[strategy]\nname = \"easgd\"\ntau = 4\n");
  run("20260102-030406-glyphs-easgd", "bsp", "[strategy]\nname = \"bsp\"\n");
  EXPECT_THAT(labels(), ElementsAre("glyphs-easgd (easgd)", "glyphs-easgd (bsp)"));
}

TEST_F(RunLabelsTest, EqualNamesAndStrategiesHaveTheOnlyOptionThatDiffers) {
  run("20260102-030405-x", "easgd", "[run]\nname = \"x\"\ndir = \"a\"\n[strategy]\ntau = 4  # auto: why\nbeta = 0.5\n");
  run("20260102-030406-x", "easgd", "[run]\nname = \"x\"\ndir = \"b\"\n[strategy]\ntau = 10\nbeta = 0.5\n");
  run("20260102-030407-x", "bsp", "[train]\nlr = 0.5\n");
  EXPECT_THAT(labels(), ElementsAre("x (easgd, tau=4)", "x (easgd, tau=10)", "x (bsp)"));
}

TEST_F(RunLabelsTest, WhereSeveralOptionsDifferTheTimeTells) {
  run("20260102-030405-x", "easgd", "[strategy]\ntau = 4\nbeta = 0.5\n");
  run("20260102-030406-x", "easgd", "[strategy]\ntau = 10\nbeta = 0.25\n");
  EXPECT_THAT(labels(), ElementsAre("20260102-030405-x", "20260102-030406-x"));
}

TEST(LabelTest, DropsTheTimeOnly) {
  EXPECT_EQ(label_of("runs/20260102-030405-a-b/"), "a-b");
  EXPECT_EQ(label_of("runs/2026-a-b"), "2026-a-b");
}

TEST(LabelTest, IsAPartOfAFilesName) {
  EXPECT_EQ(file_part("glyphs (easgd, path=/data/a)"), "glyphs-easgd-path=-data-a");
  EXPECT_EQ(file_part("20260102-030405-x-2"), "20260102-030405-x-2");
}

}  // namespace
}  // namespace troupe::plot
