#include "data/idx.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/idx_files.hpp"
#include "tests/forbidden.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using testing::HasSubstr;

class IdxTest : public testing::Test {
 protected:
  [[nodiscard]] auto open(Split split = Split::train, std::int64_t limit = 0) const {
    return IdxDataset::open({path(), "mnist", 10, limit}, split);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }

  /// Expects that opening fails with `code` and a message that contains all of `words`.
  void expect_error(Errc code, const std::vector<std::string>& words, Split split = Split::train) const {
    const auto opened = open(split);
    ASSERT_FALSE(opened.has_value());
    EXPECT_EQ(opened.error().code, code);
    for (const auto& word : words) EXPECT_THAT(opened.error().message, HasSubstr(word));
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(IdxTest, ReadsPlainFiles) {
  write_data_set(path());
  const auto train = open();
  ASSERT_TRUE(train.has_value()) << train.error().message;
  EXPECT_EQ((*train)->size(), 5);
  EXPECT_EQ((*train)->shape(), (ImageShape{1, 2, 3}));
  EXPECT_EQ((*train)->classes(), 10);
  EXPECT_EQ((*train)->name(), "mnist");
  Bytes pixels(6);
  EXPECT_EQ((*train)->read(4, pixels), 4);
  EXPECT_EQ(pixels, (Bytes{40, 41, 42, 43, 44, 45}));
}

TEST_F(IdxTest, ClassesOfFashionMnistHaveNames) {
  write_data_set(path());
  EXPECT_TRUE(open().value()->class_names().empty());
  const auto clothes = IdxDataset::open({path(), "fashion-mnist", 10, 0}, Split::test).value()->class_names();
  ASSERT_EQ(clothes.size(), 10U);
  EXPECT_EQ(clothes.front(), "T-shirt/top");
  EXPECT_EQ(clothes.back(), "ankle boot");
}

TEST_F(IdxTest, TrainingAndTestFilesDiffer) {
  write_data_set(path());
  const auto test = open(Split::test);
  ASSERT_TRUE(test.has_value()) << test.error().message;
  EXPECT_EQ((*test)->size(), 3);
}

TEST_F(IdxTest, ReadsGzipAndDottedNames) {
  write_gzip(path() / "train-images.idx3-ubyte.gz", images_file(7));
  write_gzip(path() / "train-labels-idx1-ubyte.gz", labels_file(7));
  const auto train = open();
  ASSERT_TRUE(train.has_value()) << train.error().message;
  EXPECT_EQ((*train)->size(), 7);
  Bytes pixels(6);
  EXPECT_EQ((*train)->read(6, pixels), 6);
  EXPECT_EQ(pixels[5], 65);
}

TEST_F(IdxTest, LimitKeepsTheFirstSamples) {
  write_data_set(path());
  const auto some = open(Split::train, 2);
  ASSERT_TRUE(some.has_value()) << some.error().message;
  EXPECT_EQ((*some)->size(), 2);
  Bytes pixels(6);
  EXPECT_EQ((*some)->read(1, pixels), 1);
  EXPECT_EQ(pixels[0], 10);
  const auto all = open(Split::train, 100);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ((*all)->size(), 5);
}

TEST_F(IdxTest, OutsideTheDataIsABug) {
  write_data_set(path());
  const auto train = open();
  ASSERT_TRUE(train.has_value());
  Bytes pixels(6), few(5);
  EXPECT_THROW((void)(*train)->read(5, pixels), std::out_of_range);
  EXPECT_THROW((void)(*train)->read(-1, pixels), std::out_of_range);
  EXPECT_THROW((void)(*train)->read(0, few), std::out_of_range);
}

TEST_F(IdxTest, MissingFilesNameTheExpectedNamesAndTheFolder) {
  expect_error(
      Errc::data,
      {"'mnist' is missing",
       "train-images-idx3-ubyte, train-images-idx3-ubyte.gz, train-images.idx3-ubyte, train-images.idx3-ubyte.gz",
       path().string(), "set data.path"});
  write_file(path() / "train-images-idx3-ubyte", images_file(5));
  expect_error(Errc::data, {"train-labels-idx1-ubyte.gz"});
}

TEST_F(IdxTest, MissingDirectoryIsSaid) {
  const auto opened = IdxDataset::open({path() / "nowhere", "mnist", 10, 0}, Split::train);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Errc::data);
  EXPECT_THAT(opened.error().message, HasSubstr("there is no such directory"));
}

TEST_F(IdxTest, WrongMagicNumberIsRefused) {
  write_data_set(path());
  write_file(path() / "train-images-idx3-ubyte", labels_file(40));
  expect_error(Errc::data,
               {"train-images-idx3-ubyte: not an IDX file of images: it begins with 0x00000801, expected 0x00000803"});
  write_data_set(path());
  write_file(path() / "train-labels-idx1-ubyte", images_file(5));
  expect_error(Errc::data, {"train-labels-idx1-ubyte: not an IDX file of labels", "0x00000803, expected 0x00000801"});
}

TEST_F(IdxTest, EveryTruncationIsFound) {
  write_data_set(path());
  const Bytes whole = images_file(5);  // 16 + 5 · 6 = 46 bytes
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    write_file(path() / "train-images-idx3-ubyte",
               Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
    expect_error(Errc::data, {"train-images-idx3-ubyte: truncated: expected"});
  }
  write_file(path() / "train-images-idx3-ubyte", Bytes(whole.begin(), whole.begin() + 7));
  expect_error(Errc::data, {"expected a header of 16 bytes, found 7"});
  write_file(path() / "train-images-idx3-ubyte",
             Bytes(whole.begin(), whole.begin() + 16 + 6 + 5));  // record 0 and most of 1
  expect_error(Errc::data, {"expected 5 records of 6 bytes = 30 bytes, found 11 (record 1 is incomplete)"});
}

TEST_F(IdxTest, TruncatedLabelsAreFound) {
  write_data_set(path());
  Bytes labels = labels_file(5);
  labels.pop_back();
  write_file(path() / "train-labels-idx1-ubyte", labels);
  expect_error(Errc::data, {"train-labels-idx1-ubyte: truncated", "expected 5 records of 1 bytes = 5 bytes, found 4"});
}

TEST_F(IdxTest, TrailingBytesAreRefused) {
  write_data_set(path());
  write_file(path() / "train-images-idx3-ubyte", images_file(5) + Bytes{0});
  expect_error(Errc::data, {"train-images-idx3-ubyte: trailing bytes after 5 records of 6 bytes"});
}

TEST_F(IdxTest, CountsMustAgree) {
  write_data_set(path());
  write_file(path() / "train-labels-idx1-ubyte", labels_file(4));
  expect_error(Errc::data, {"has 5 images and", "has 4 labels", "train-labels-idx1-ubyte"});
}

TEST_F(IdxTest, LabelOutOfRangeNamesTheRecord) {
  write_data_set(path());
  Bytes labels = labels_file(5);
  labels[8 + 3] = 10;
  write_file(path() / "train-labels-idx1-ubyte", labels);
  expect_error(Errc::data, {"train-labels-idx1-ubyte: record 3: label 10 is not in 0 ... 9"});
}

TEST_F(IdxTest, AbsurdDimensionsAreRefusedBeforeAnyMemoryIsClaimed) {
  write_data_set(path());
  for (const auto& [count, rows, columns] :
       {std::array<std::uint32_t, 3>{0, 2, 3}, {5, 0, 3}, {5, 2, 5000}, {0xffffffff, 2, 3}}) {
    write_file(path() / "train-images-idx3-ubyte",
               big_endian(0x803) + big_endian(count) + big_endian(rows) + big_endian(columns));
    expect_error(Errc::data, {"the header says", "expected 1 to 100000000 records of at most 4096 x 4096"});
  }
  // Within the limits, but 1.6 PB: the file's length shows the error, before any allocation.
  write_file(path() / "train-images-idx3-ubyte",
             big_endian(0x803) + big_endian(100'000'000) + big_endian(4096) + big_endian(4096) + Bytes(100));
  expect_error(Errc::data, {"truncated", "found 100"});
}

TEST_F(IdxTest, TruncatedGzipIsFound) {
  write_data_set(path());
  std::filesystem::remove(path() / "train-images-idx3-ubyte");
  const auto zipped = path() / "train-images-idx3-ubyte.gz";
  write_gzip(zipped, images_file(5));
  const Bytes whole = read_file(zipped);
  for (const std::size_t missing : {std::size_t{1}, std::size_t{8}, whole.size() / 2}) {
    SCOPED_TRACE(missing);
    write_file(zipped, Bytes(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(missing)));
    expect_error(Errc::data, {"train-images-idx3-ubyte.gz: damaged or truncated gzip data"});
  }
}

TEST_F(IdxTest, DamagedGzipIsFound) {
  write_data_set(path());
  std::filesystem::remove(path() / "train-images-idx3-ubyte");
  const auto zipped = path() / "train-images-idx3-ubyte.gz";
  write_gzip(zipped, images_file(5));
  Bytes bytes = read_file(zipped);
  bytes[bytes.size() - 6] ^= 0xff;  // in the checksum
  write_file(zipped, bytes);
  expect_error(Errc::data, {"train-images-idx3-ubyte.gz: damaged or truncated gzip data"});
}

TEST_F(IdxTest, ADirectoryOfThatNameIsNotAFile) {
  std::filesystem::create_directory(path() / "train-images-idx3-ubyte");
  expect_error(Errc::data, {"is missing"});
}

TEST(IdxRealTest, ReadsMnistAsPublished) {
  const auto directory = std::filesystem::path(TROUPE_SOURCE_DIR) / "../shared/data/mnist";
  if (!std::filesystem::exists(directory) || std::filesystem::is_empty(directory))
    GTEST_SKIP() << "no MNIST files in " << directory;
  const auto train = IdxDataset::open({directory, "mnist", 10, 0}, Split::train);
  ASSERT_TRUE(train.has_value()) << train.error().message;
  EXPECT_EQ((*train)->size(), 60'000);
  EXPECT_EQ((*train)->shape(), (ImageShape{1, 28, 28}));
  const auto test = IdxDataset::open({directory, "mnist", 10, 0}, Split::test);
  ASSERT_TRUE(test.has_value()) << test.error().message;
  EXPECT_EQ((*test)->size(), 10'000);
  // The first digits of the published files: 5 0 4 1 9 and 7 2 1 0 4.
  Bytes pixels(784);
  std::vector<std::int32_t> labels;
  for (const auto& data : {*train, *test})
    for (std::int64_t i = 0; i < 5; ++i) labels.push_back(data->read(i, pixels).value());
  EXPECT_EQ(labels, (std::vector<std::int32_t>{5, 0, 4, 1, 9, 7, 2, 1, 0, 4}));
}

TEST_F(IdxTest, AFolderThatMayNotBeReadIsNotMissing) {
  write_data_set(path());
  const tests::Forbidden forbidden(path());
  expect_error(Errc::io, {"cannot read " + path().string() + ": Permission denied"});
}

}  // namespace
}  // namespace troupe::data
