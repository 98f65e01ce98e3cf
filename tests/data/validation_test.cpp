// The validation split: which samples it takes, and that training and test keep theirs.
#include "data/validation.hpp"

#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "data/config.hpp"
#include "tests/data/idx_files.hpp"
#include "tests/data/made_pictures.hpp"
#include "tests/data/numbered_dataset.hpp"

namespace troupe::data {
namespace {

TEST(ValidationTest, ReadsEveryForm) {
  EXPECT_TRUE(parse_validation("none")->none());
  EXPECT_DOUBLE_EQ(parse_validation("0.125")->share, 0.125);
  EXPECT_EQ(parse_validation("5000")->count, 5000);
  EXPECT_EQ(parse_validation("folder:a/b c")->folder, "a/b c");
  for (const char* bad :
       {"", "0", "0.0", "1.0", "-1", "-0.5", "1.5", "10 %", "folder:", "5000 samples", "nan", "1e3", "."})
    EXPECT_FALSE(parse_validation(bad)) << bad;
}

/// Pixel 0 of sample i is 7 i mod 256: with up to 256 samples it names the sample.
std::set<int> first_pixels(const Dataset& data) {
  std::set<int> all;
  std::vector<std::uint8_t> pixels(1);
  for (std::int64_t k = 0; k < data.size(); ++k) {
    EXPECT_TRUE(data.read(k, pixels));
    all.insert(pixels[0]);
  }
  return all;
}

TEST(ValidationTest, EverySampleIsInExactlyOneSplit) {
  const auto whole = std::make_shared<const NumberedDataset>(256, ImageShape{1, 1, 1});
  for (const char* text : {"0.1", "1", "200", "0.0001"}) {
    const auto held = hold_out(whole, *parse_validation(text), 7).value();
    EXPECT_EQ(held.validation->size(), held_out(*parse_validation(text), 256)) << text;
    auto all = first_pixels(*held.train);
    EXPECT_EQ(all.size(), static_cast<std::size_t>(held.train->size()));
    const auto validation = first_pixels(*held.validation);
    EXPECT_EQ(validation.size(), static_cast<std::size_t>(held.validation->size()));
    all.insert(validation.begin(), validation.end());
    EXPECT_EQ(all.size(), 256U) << text;
  }
}

/// Files of these sizes, one behind the other.
class FilesOfNumbers final : public NumberedDataset {
 public:
  using NumberedDataset::NumberedDataset;
  [[nodiscard]] std::vector<std::int64_t> shard_begins() const override { return {0, 1, 2, 102, 200}; }
};

TEST(ValidationTest, FilesBeginWhereTheirRemainingSamplesDo) {
  const auto whole = std::make_shared<const FilesOfNumbers>(256, ImageShape{1, 1, 1});
  const auto held = hold_out(whole, Validation{.count = 200}, 7).value();
  const auto train = first_pixels(*held.train);
  // From the samples themselves: how many of each file are left.
  std::vector<std::int64_t> expected;
  std::int64_t before = 0;
  const auto begins = whole->shard_begins();
  for (std::size_t file = 0; file < begins.size(); ++file) {
    const auto end = file + 1 < begins.size() ? begins[file + 1] : whole->size();
    std::int64_t left = 0;
    for (auto sample = begins[file]; sample < end; ++sample)
      left += static_cast<std::int64_t>(train.count(7 * sample % 256));
    if (left > 0) expected.push_back(before);
    before += left;
  }
  EXPECT_EQ(held.train->shard_begins(), expected);
  EXPECT_LT(expected.size(), begins.size()) << "a file is held out whole";
  EXPECT_TRUE(hold_out(std::make_shared<const NumberedDataset>(9, ImageShape{1, 1, 1}), Validation{.count = 3}, 7)
                  .value()
                  .train->shard_begins()
                  .empty());
}

TEST(ValidationTest, TheSeedChoosesTheSamples) {
  const auto whole = std::make_shared<const NumberedDataset>(256, ImageShape{1, 1, 1});
  const auto chosen = [&](std::uint64_t seed) {
    return first_pixels(*hold_out(whole, Validation{.count = 30}, seed).value().validation);
  };
  EXPECT_EQ(chosen(1), chosen(1));
  EXPECT_NE(chosen(1), chosen(2));
  EXPECT_NE(chosen(1), first_pixels(NumberedDataset(30, {1, 1, 1}))) << "not the first ones";
}

/// 2,000 draws of 10 of 40: each sample is drawn 500 ± 19 times (binomial); 6 deviations.
TEST(ValidationTest, EverySampleIsHeldOutEquallyOften) {
  const auto whole = std::make_shared<const NumberedDataset>(40, ImageShape{1, 1, 1});
  std::map<int, int> drawn;
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    for (const int pixel : first_pixels(*hold_out(whole, Validation{.count = 10}, seed).value().validation))
      ++drawn[pixel];
  ASSERT_EQ(drawn.size(), 40U);
  for (const auto& [pixel, times] : drawn) EXPECT_NEAR(times, 500, 120) << pixel;
}

TEST(ValidationTest, SomeSamplesMustRemainToTrain) {
  const auto whole = std::make_shared<const NumberedDataset>(10, ImageShape{1, 1, 1});
  EXPECT_TRUE(hold_out(whole, Validation{.count = 9}, 1));
  const auto refused = hold_out(whole, Validation{.count = 10}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::config);
  EXPECT_NE(refused.error().message.find("10 of the 10 training samples"), std::string::npos)
      << refused.error().message;
}

DataConfig with_validation(const std::string& validation) {
  DataConfig config;
  config.name = "glyphs";
  config.train_samples = 200;
  config.test_samples = 50;
  config.validation = validation;
  return config;
}

TEST(ValidationTest, ASourceHasThreeSplits) {
  const auto plain = open_source(with_validation("none"), 3).value();
  EXPECT_EQ(plain.validation, nullptr);
  const auto split = open_source(with_validation("0.25"), 3).value();
  EXPECT_EQ(split.train->size(), 150);
  EXPECT_EQ(split.validation->size(), 50);
  EXPECT_EQ(split.test->size(), plain.test->size());
  EXPECT_EQ(published_samples(with_validation("0.25"), Split::train), 150);
  EXPECT_EQ(published_samples(with_validation("0.25"), Split::test), 50);
}

TEST(ValidationTest, AFolderHasTheSameClasses) {
  const TemporaryDirectory here, there;
  const auto put = [](const std::filesystem::path& folder, const std::string& name) {
    std::filesystem::create_directories(folder / name);
    write_file(folder / name / "x.png", made_png({4, 4}));
  };
  for (const char* split : {"train", "test"})
    for (const char* name : {"ant", "bee"}) put(here.path() / split, name);
  DataConfig config;
  config.name = "folder";
  config.path = here.path().string();
  config.resize = 4;
  config.validation = "folder:" + there.path().string();
  const auto message = [&] {
    const auto opened = open_splits(config, 1);
    return opened ? "no error" : opened.error().message;
  };
  EXPECT_TRUE(message().starts_with("data.validation: data set 'folder' is missing")) << message();
  for (const char* split : {"train", "val"})
    for (const char* name : {"bee", "ant"}) put(there.path() / split, name);
  EXPECT_EQ(message(), "no error");
  for (const char* split : {"train", "val"})
    std::filesystem::rename(there.path() / split / "ant", there.path() / split / "cow");
  EXPECT_NE(message().find("have other names than those of 'folder'"), std::string::npos) << message();
}

TEST(ValidationTest, DrawnDigitsHaveNoFolder) {
  const auto refused = open_source(with_validation("folder:elsewhere"), 3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::config);
}

}  // namespace
}  // namespace troupe::data
