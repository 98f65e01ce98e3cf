// `troupe data inspect | convert | mean`: what they say and write is what the data set has, and bad input is one line.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/config.hpp"
#include "data/images/decode.hpp"
#include "tests/apps/program.hpp"
#include "tests/small_config.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int kBadData = 65, kBadUsage = 2, kBadConfig = 78, kIo = 74;

/// `troupe data …` about 40 synthetic images of 3 x 16 x 12 in 4 classes.
Outcome about_synthetic(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "data");
  for (const auto* set : {"data.name=synthetic", "data.shape=[3,16,12]", "data.classes=4", "data.train_samples=40",
                          "data.test_samples=10"})
    arguments.insert(arguments.end(), {"--set", set});
  return troupe(arguments);
}

data::PictureSize size_of_picture(const std::string& path) {
  const auto text = contents(path);
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  return data::picture_size(bytes, 1 << 24).value_or(data::PictureSize{});
}

TEST(DataCommandTest, InspectCountsSamplesByClass) {
  const auto text = about_synthetic({"inspect"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("synthetic: images of 3 x 16 x 12, 4 classes"));
  const auto outcome = about_synthetic({"inspect", "--json", "--decode", "--set", R"(data.validation="8")"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto found = json::parse(outcome.out);
  EXPECT_EQ(found["shape"], json({3, 16, 12}));
  EXPECT_EQ(found["classes"], json({"0", "1", "2", "3"}));
  EXPECT_EQ(found["splits"]["test"]["by_class"], json({3, 3, 2, 2}));
  EXPECT_EQ(found["splits"]["test"]["unreadable"], 0);
  EXPECT_EQ(found["splits"]["train"]["samples"], 32);
  EXPECT_EQ(found["splits"]["validation"]["samples"], 8);
  for (std::size_t k = 0; k < 4; ++k)
    EXPECT_EQ(
        found["splits"]["train"]["by_class"][k].get<int>() + found["splits"]["validation"]["by_class"][k].get<int>(),
        10);
}

TEST(DataCommandTest, ASheetHasARowPerClass) {
  const TemporaryDirectory folder;
  const auto sheet = folder.file("sheets/a.png");
  std::filesystem::create_directory(folder.file("sheets"));
  const auto outcome = about_synthetic({"inspect", "--sheet", sheet, "--columns", "5", "--cell", "20"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(size_of_picture(sheet), (data::PictureSize{5 * 22 + 2, 4 * 22 + 2}));
  const auto augmented = about_synthetic({"inspect", "--sheet", sheet, "--columns", "3", "--cell", "20", "--augmented",
                                          "--set", "data.crop=10", "--set", "data.random_resized_crop=true"});
  ASSERT_EQ(augmented.code, 0) << augmented.err;
  EXPECT_EQ(size_of_picture(sheet), (data::PictureSize{3 * 22 + 2, 4 * 22 + 2}));
}

TEST(DataCommandTest, ConvertedDataAreTheSameData) {
  const TemporaryDirectory folder;
  const auto shards = folder.file("shards"), batches = folder.file("batches");
  const auto outcome =
      about_synthetic({"convert", "--to", "shards", "--picture", "png", "--per-file", "16", "--output", shards});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("train: 40 samples\ntest: 10 samples\n"));
  EXPECT_TRUE(std::filesystem::exists(shards + "/train-00002.tar"));
  const auto again = troupe({"data", "convert", "--set", "data.name=shards", "--set", "data.path=" + shards, "--set",
                             "data.classes=4", "--set", "data.resize=12", "--to", "batches", "--output", batches});
  ASSERT_EQ(again.code, 0) << again.err;
  const auto inspected = troupe({"data", "inspect", "--set", "data.name=batches", "--set", "data.path=" + batches,
                                 "--set", "data.classes=4", "--json"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  const auto found = json::parse(inspected.out);
  EXPECT_EQ(found["shape"], json({3, 12, 12}));
  EXPECT_EQ(found["splits"]["train"]["by_class"], json({10, 10, 10, 10}));
}

TEST(DataCommandTest, MeanWritesWhatTrainingReads) {
  const TemporaryDirectory folder;
  const auto file = folder.file("mean.json");
  const auto outcome = about_synthetic({"mean", "--output", file});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("use it with data.statistics"));
  data::DataConfig config;
  config.name = "synthetic";
  config.shape = {3, 16, 12};
  config.classes = 4;
  config.train_samples = 40;
  config.statistics = file;
  const auto data = data::open_dataset(config, data::Split::train).value();
  const auto measured = data::measure_statistics(*data).value();
  const auto read = data::statistics_of(config, *data).value();
  EXPECT_EQ(read.image_mean, measured.image_mean);
  EXPECT_EQ(read.channel_deviation, measured.channel_deviation);
}

TEST(DataCommandTest, BadInputIsOneLine) {
  const TemporaryDirectory folder;
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::string message;
  };
  const auto photos = folder.file("photos");
  std::filesystem::create_directories(photos + "/train/cat");
  std::filesystem::create_directories(photos + "/test/cat");
  const std::vector<std::string> about_photos{"--set", "data.name=folder", "--set", "data.path=" + photos,
                                              "--set", "data.resize=8"};
  const auto with = [&](std::vector<std::string> first) {
    first.insert(first.end(), about_photos.begin(), about_photos.end());
    return first;
  };
  for (const auto& wrong : std::vector<Case>{
           {{"data", "inspect"}, kBadUsage, "which data set? Give a CONFIG, or --set data.name=NAME"},
           {{"data", "inspect", photos}, kBadUsage, "--set data.name=folder --set data.path=" + photos},
           {with({"data", "inspect"}), kBadData, photos + "/train/cat: a class without pictures (it is empty)"},
           {with({"data", "mean", "--output", folder.file("m")}), kBadData, "a class without pictures"},
           {{"data", "convert", "--set", "data.name=synthetic", "--output", photos}, kBadConfig, "is not empty"},
           {{"data", "convert", "--set", "data.name=synthetic", "--to", "zip", "--output", photos}, kBadUsage, "--to"},
           {{"data", "mean", "--set", "data.name=synthetic"}, kBadUsage, "--output"},
           // Refused at once: measuring all of it would take hours.
           {{"data", "mean", "--set", "data.name=synthetic", "--set", "data.train_samples=1000000", "--output",
             folder.file("none/mean.json")},
            kIo,
            "none/mean.json: No such file or directory"},
           {{"data", "mean", "--set", "data.name=synthetic", "--set", "data.train_samples=1000000", "--output", photos},
            kIo,
            "photos: Is a directory"},
           {{"data", "inspect", "--set", "data.name=synthetic", "--set", "data.shape=[1,8,8]", "--set",
             "data.classes=20", "--sheet", folder.file("x.png"), "--columns", "100", "--cell", "1024"},
            kBadConfig,
            "too large"}}) {
    const auto outcome = troupe(wrong.arguments);
    EXPECT_EQ(outcome.code, wrong.code) << outcome.err;
    EXPECT_TRUE(is_one_line(outcome)) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(wrong.message));
  }
}

TEST(DataCommandTest, UnreadablePicturesAreCountedAndTheirCellsWhite) {
  const TemporaryDirectory folder;
  const auto good = folder.file("good");
  ASSERT_EQ(about_synthetic({"convert", "--to", "folder", "--output", good}).code, 0);
  const auto broken = good + "/train/1/broken.jpg";
  std::ofstream(broken) << "GIF89a";
  const std::vector<std::string> about{
      "data",           "inspect",  "--set",   "data.name=folder",      "--set", "data.path=" + good, "--set",
      "data.resize=12", "--decode", "--sheet", folder.file("sheet.png")};
  const auto outcome = troupe(about);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("train: 1 sample unreadable:\n  " + broken + ": a GIF: JPEG and PNG are read"));
  const auto mean = [&](const std::string& max_bad) {
    return troupe({"data", "mean", "--set", "data.name=folder", "--set", "data.path=" + good, "--set", "data.resize=12",
                   "--set", "data.max_bad=" + max_bad, "--output", folder.file("mean.json")});
  };
  EXPECT_EQ(mean("0").code, kBadData);
  EXPECT_EQ(mean("1").code, 0);
}

TEST(DataCommandTest, ConvertingBeginsWithBothSplits) {
  const TemporaryDirectory folder;
  const auto shards = folder.file("shards"), output = folder.file("output");
  ASSERT_EQ(about_synthetic({"convert", "--to", "shards", "--output", shards}).code, 0);
  std::filesystem::remove(shards + "/test-00000.tar");
  const auto outcome = troupe({"data", "convert", "--set", "data.name=shards", "--set", "data.path=" + shards, "--set",
                               "data.resize=12", "--output", output});
  EXPECT_EQ(outcome.code, kBadData);
  EXPECT_THAT(outcome.err, HasSubstr("no file test*.tar"));
  EXPECT_FALSE(std::filesystem::exists(output));
}

/// Runs train on the same bits from batch files as from the data set that they were made of.
TEST(DataCommandTest, ConvertedDataTrainToTheSameBits) {
  const TemporaryDirectory folder;
  const std::vector<std::string> glyphs{"--set", "data.name=glyphs",     "--set", "data.train_samples=300",
                                        "--set", "data.test_samples=100"};
  const auto with = [&](std::vector<std::string> first) {
    first.insert(first.end(), glyphs.begin(), glyphs.end());
    return first;
  };
  const auto converted = folder.file("batches"), statistics = folder.file("mean.json");
  ASSERT_EQ(
      troupe(with({"data", "convert", "--to", "batches", "--output", converted, "--ordered", "--per-file", "100"}))
          .code,
      0);
  ASSERT_EQ(troupe(with({"data", "mean", "--output", statistics})).code, 0);
  const auto config = folder.write(
      "config.toml", tests::small_config("[run]\nname = \"a\"\nepochs = 1", "[strategy]\nname = \"bsp\"\n"));
  const auto hash = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command{"train",  config,
                                     "--json", "--quiet",
                                     "--set",  "run.dir=" + folder.file("runs"),
                                     "--set",  "data.window=0",
                                     "--set",  "data.shuffle=false",
                                     "--set",  "data.statistics=" + statistics};
    command.insert(command.end(), more.begin(), more.end());
    const auto run = troupe(command);
    EXPECT_EQ(run.code, 0) << run.err;
    const auto summary = json::parse(run.out);
    return std::pair(summary["center_hash"].get<std::string>(), summary["test"]["loss"].get<double>());
  };
  EXPECT_EQ(hash(glyphs), hash({"--set", "data.name=batches", "--set", "data.path=" + converted}));
}

}  // namespace
}  // namespace troupe::apps
