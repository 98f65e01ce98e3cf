// What is written in another form reads as what was there.
#include "data/conversion/convert.hpp"

#include <sys/resource.h>

#include <csignal>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/config.hpp"
#include "data/files/class_list.hpp"
#include "data/images/encode.hpp"
#include "tests/data/idx_files.hpp"
#include "tests/data/made_pictures.hpp"
#include "tests/data/numbered_dataset.hpp"

namespace troupe::data {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr ImageShape kShape{3, 6, 5};
constexpr std::int64_t kSamples = 23;

/// Every sample's label and pixels.
std::multiset<std::pair<std::int32_t, Bytes>> contents(const Dataset& data) {
  std::multiset<std::pair<std::int32_t, Bytes>> all;
  Bytes pixels(static_cast<std::size_t>(data.shape().size()));
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const auto label = data.read(i, pixels);
    EXPECT_TRUE(label) << label.error().message;
    EXPECT_EQ(data.label(i).value_or(-1), *label);
    all.emplace(*label, pixels);
  }
  return all;
}

std::shared_ptr<const Dataset> reopened(const std::string& name, const std::filesystem::path& path,
                                        Split split = Split::train) {
  DataConfig config;
  config.name = name;
  config.path = path.string();
  const auto opened = open_dataset(config, split);
  EXPECT_TRUE(opened) << opened.error().message;
  return opened.value_or(nullptr);
}

TEST(ConvertTest, BatchFilesHoldTheSameBytes) {
  const TemporaryDirectory folder;
  const NumberedDataset data(kSamples, kShape);
  const ConvertOptions options{.form = FileForm::batches, .per_file = 10};
  ASSERT_EQ(convert(data, folder.path(), "train", options).value().samples, kSamples);
  ASSERT_TRUE(convert(NumberedDataset(4, kShape), folder.path(), "test", options));
  const auto train = reopened("batches", folder.path());
  EXPECT_EQ(train->shape(), kShape);
  EXPECT_EQ(contents(*train), contents(data));
  EXPECT_EQ(train->shard_begins(), (std::vector<std::int64_t>{0, 10, 20}));
  EXPECT_EQ(reopened("batches", folder.path(), Split::test)->size(), 4);
}

/// Square: pictures become squares when they are read.
TEST(ConvertTest, PngLosesNothingInShardsAndFolders) {
  constexpr ImageShape kSquare{3, 6, 6};
  const NumberedDataset data(kSamples, kSquare);
  for (const auto& [form, name] : {std::pair(FileForm::shards, "shards"), std::pair(FileForm::folder, "folder")}) {
    const TemporaryDirectory folder;
    const ConvertOptions options{.form = form, .png = true, .per_file = 7};
    ASSERT_TRUE(convert(data, folder.path(), "train", options));
    ASSERT_TRUE(convert(data, folder.path(), "test", options));
    DataConfig config;
    config.name = name;
    config.path = folder.path().string();
    config.resize = 6;
    const auto opened = open_dataset(config, Split::train);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ((*opened)->classes(), 10);
    EXPECT_EQ(contents(**opened), contents(data)) << name;
  }
}

TEST(ConvertTest, PicturesStayAsTheyAreByteForByte) {
  const TemporaryDirectory folder, shards;
  std::multiset<std::pair<std::int32_t, Bytes>> expected;
  for (int i = 0; i < 6; ++i) {
    const bool jpeg = i % 2 == 0;
    const PictureSize size{20 + i, 30 - i};
    const auto bytes = jpeg ? made_jpeg(size, JpegKind::grey, i) : made_png(size, PngKind::rgba, i);
    const std::string class_name = i < 3 ? "ant" : "bee";
    for (const char* split : {"train", "test"}) {
      const auto path = folder.path() / split / class_name / (std::to_string(i) + (jpeg ? ".jpg" : ".png"));
      std::filesystem::create_directories(path.parent_path());
      write_file(path, bytes);
    }
    expected.emplace(i < 3 ? 0 : 1, bytes);
  }
  DataConfig config;
  config.name = "folder";
  config.path = folder.path().string();
  config.resize = 8;
  const auto source = open_dataset(config, Split::train);
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_TRUE(convert(**source, shards.path(), "train", {}));
  ASSERT_TRUE(convert(**source, shards.path(), "test", {}));
  config.name = "shards";
  config.path = shards.path().string();
  const auto back = open_dataset(config, Split::train);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ((*back)->class_names(), (std::vector<std::string>{"ant", "bee"}));
  std::multiset<std::pair<std::int32_t, Bytes>> stored;
  for (std::int64_t i = 0; i < (*back)->size(); ++i) {
    Bytes bytes;
    const auto label = (*back)->stored(i, bytes);
    ASSERT_TRUE(label);
    stored.emplace(*label, bytes);
  }
  EXPECT_EQ(stored, expected);
}

TEST(ConvertTest, TheOrderIsShuffledBySeed) {
  const NumberedDataset data(kSamples, kShape);
  const auto first_labels = [&](std::uint64_t seed, bool shuffled) {
    const TemporaryDirectory folder;
    EXPECT_TRUE(convert(data, folder.path(), "train", {.form = FileForm::batches, .seed = seed, .shuffled = shuffled}));
    const auto back = reopened("batches", folder.path());
    std::vector<std::int32_t> labels;
    for (std::int64_t i = 0; i < back->size(); ++i) labels.push_back(back->label(i).value());
    return labels;
  };
  EXPECT_EQ(first_labels(1, true), first_labels(1, true));
  EXPECT_NE(first_labels(1, true), first_labels(2, true));
  const auto ordered = first_labels(1, false);
  for (std::size_t i = 0; i < ordered.size(); ++i) EXPECT_EQ(ordered[i], static_cast<std::int32_t>(i % 10));
}

TEST(ConvertTest, UnreadableSamplesAreLeftOutAsFarAsAllowed) {
  const NumberedDataset data(kSamples, kShape, 7);
  const TemporaryDirectory folder;
  const auto refused = convert(data, folder.path(), "train", {.form = FileForm::batches});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::data);
  EXPECT_THAT(refused.error().message, EndsWith("record 7 is damaged"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "half a file";
  const auto converted = convert(data, folder.path(), "train", {.form = FileForm::batches, .max_bad = 1});
  ASSERT_TRUE(converted);
  EXPECT_EQ(converted->left_out, 1);
  EXPECT_EQ(converted->samples, kSamples - 1);
  EXPECT_THAT(converted->first_error, HasSubstr("record 7"));
}

/// A folder of a class with `name` that has one picture, and one file that is none.
std::shared_ptr<const Dataset> folder_with_a_gif(const TemporaryDirectory& folder, const std::string& name) {
  for (const char* split : {"train", "test"}) {
    const auto path = folder.path() / split / name;
    std::filesystem::create_directories(path);
    write_file(path / "a.jpg", made_jpeg({12, 10}));
    write_file(path / "b.jpg", text_bytes("GIF89a"));
  }
  DataConfig config;
  config.name = "folder";
  config.path = folder.path().string();
  config.resize = 8;
  return open_dataset(config, Split::train).value();
}

TEST(ConvertTest, AFileThatIsNoPictureIsNotCalledOne) {
  const TemporaryDirectory folder, output;
  const auto data = folder_with_a_gif(folder, "cat");
  const auto refused = convert(*data, output.path(), "train", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::data);
  EXPECT_THAT(refused.error().message, HasSubstr("cat/b.jpg: a GIF"));
  const auto converted = convert(*data, output.path(), "train", {.max_bad = 1});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_EQ(converted->samples, 1);
  EXPECT_EQ(converted->left_out, 1);
}

TEST(ConvertTest, ANameOfAClassThatTakesTwoLinesIsRefusedFirst) {
  const TemporaryDirectory folder, output;
  const auto data = folder_with_a_gif(folder, "big\ncat");
  const auto refused = convert(*data, output.path(), "train", {.max_bad = 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::data);
  EXPECT_THAT(refused.error().message, HasSubstr("cannot stand in classes.txt"));
  EXPECT_TRUE(std::filesystem::is_empty(output.path()));
  EXPECT_TRUE(convert(*data, output.path(), "train", {.form = FileForm::folder, .max_bad = 1}));
  for (const auto& names : {std::vector<std::string>{""}, {"cat\r"}, {"cat", "cat"}, {std::string(1001, 'x')}})
    EXPECT_FALSE(write_class_list(output.path(), names));
  EXPECT_TRUE(write_class_list(output.path(), {"cat", "dog"}));
  EXPECT_EQ(class_list(output.path()).value(), (std::vector<std::string>{"cat", "dog"}));
}

/// For its lifetime no file can have more bytes: as on a full disk, in the middle of a write.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : signal_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  sighandler_t signal_;
};

TEST(ConvertTest, ABatchFileThatDoesNotFitIsAnErrorAndGoes) {
  const NumberedDataset data(40, {3, 40, 40});
  const TemporaryDirectory folder;
  // The images fit, and with header and labels they do not.
  const FileLimit limit(40 * 3 * 40 * 40 + 100);
  const auto refused = convert(data, folder.path(), "train", {.form = FileForm::batches});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::io);
  EXPECT_THAT(refused.error().message, HasSubstr("train-00000.batch: File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "half a file";
}

TEST(ConvertTest, AnInterruptLeavesWholeFiles) {
  const NumberedDataset data(kSamples, {3, 6, 6});
  const TemporaryDirectory folder;
  std::int64_t done = 0;
  const auto result = convert(
      data, folder.path(), "train", {.per_file = 10}, [&](std::int64_t n) { done = n; }, [&] { return done == 15; });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, core::Errc::interrupted);
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files.insert(entry.path().filename());
  EXPECT_EQ(files, (std::set<std::string>{"train-00000.tar"}));
}

TEST(ConvertTest, ImagesThatNoPictureHoldsAreRefused) {
  const TemporaryDirectory folder;
  const auto refused = convert(NumberedDataset(3, {2, 4, 4}), folder.path(), "train", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::Errc::config);
  EXPECT_THAT(refused.error().message, HasSubstr("images of 2 channels"));
}

TEST(ClassListTest, WhatIsWrongIsNamed) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(class_list(folder.path()).value().empty());
  const auto message = [&](const std::string& text) {
    write_file(folder.path() / "classes.txt", text_bytes(text));
    const auto names = class_list(folder.path());
    return names ? "no error" : names.error().message;
  };
  EXPECT_EQ(message("\xEF\xBB\xBF"
                    "cat\r\ndog\n"),
            "no error");
  EXPECT_EQ(class_list(folder.path()).value(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_THAT(message(""), HasSubstr("line 1: no name of a class"));
  EXPECT_THAT(message("cat\n\ndog\n"), HasSubstr("line 2: no name of a class"));
  EXPECT_THAT(message("cat\ndog\ncat\n"), HasSubstr("line 3: the class 'cat' comes twice"));
  EXPECT_THAT(message(std::string(5000, 'x')), HasSubstr("line 1: a name of 5000 bytes"));
}

}  // namespace
}  // namespace troupe::data
