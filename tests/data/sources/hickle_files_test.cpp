// What hickle and theano_alexnet write, as sources and as data sets. The files are written here through HDF5 as hickle's source writes them.
#include "data/sources/hickle_files.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/config.hpp"
#include "tests/data/files/made_npy.hpp"
#include "tests/data/hdf5/made_hdf5.hpp"
#include "tests/data/idx_files.hpp"

namespace troupe::data {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using Wide = std::vector<std::int64_t>;

constexpr ImageSides kSides{3, 5, 4};

std::string hickle_error(const core::Result<std::shared_ptr<const HickleFiles>>& result) {
  if (result) return "no error";
  EXPECT_EQ(result.error().code, core::Errc::data) << result.error().message;
  return result.error().message;
}

/// All images of a source must be those of made_image(), also where reading jumps between its blocks.
void expect_made_images(const SampleSource& source, const ImageSides& sides = kSides) {
  ASSERT_EQ(source.raw_shape(), (RawShape{sides}));
  Bytes bytes;
  for (std::int64_t i = 0; i < source.size(); ++i) {
    const std::int64_t index = i % 2 == 0 ? i / 2 : source.size() - 1 - i / 2;
    const auto label = source.fetch(index, bytes);
    ASSERT_TRUE(label) << label.error().message;
    EXPECT_EQ(*label, source.label(index).value_or(-1));
    EXPECT_EQ(bytes, made_image(index, sides)) << index;
  }
}

/// Labels 0, 1, … for files without any.
class HickleFolder {
 public:
  explicit HickleFolder(std::int64_t labels = 100) {
    Wide values;
    for (std::int64_t i = 0; i < labels; ++i) values.push_back(i);
    write_labels(values);
  }
  void write_labels(const Wide& values) const {
    write_file(labels(), made_npy("<i8", "(" + std::to_string(values.size()) + ",)", values));
  }
  [[nodiscard]] std::filesystem::path labels() const { return folder_.path() / "train_labels.npy"; }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }
  [[nodiscard]] HickleFilesOptions options(const std::vector<std::string>& names) const {
    HickleFilesOptions options;
    for (const auto& name : names) options.files.push_back(file(name));
    options.labels = labels();
    options.classes = 100;
    return options;
  }
  [[nodiscard]] core::Result<std::shared_ptr<const HickleFiles>> open(const std::vector<std::string>& names) const {
    return HickleFiles::open(options(names));
  }

 private:
  TemporaryDirectory folder_;
};

TEST(HickleFilesTest, ArraysOfEveryVersionOfHickleAreRead) {
  // Names and attributes are those of hickle 1.1 (hickle.py), 2.0 (hickle_legacy2.py), 3.4 (legacy_v3/hickle.py), 4.0 and 5.0.
  const auto images = made_images(AxisOrder::c01b, 0, 6, kSides);
  const auto shape = made_shape(AxisOrder::c01b, 6, kSides);
  const HickleFolder folder;
  const auto write = [&](const std::string& name, const std::string& array,
                         const std::vector<std::pair<std::string, std::string>>& root) {
    const MadeHdf5 file(folder.file(name));
    for (const auto& [attribute, value] : root) file.attribute("/", attribute, value);
    file.bytes(array, shape, images);
    file.attribute(array, "type", "ndarray");
  };
  write("v1.hkl", "data", {});
  write("v2.hkl", "data_0", {{"CLASS", "hickle"}, {"VERSION", "2"}, {"type", "hickle"}});
  write("v3.hkl", "data_0", {{"CLASS", "hickle"}, {"VERSION", "3.4.9"}, {"PYTHON_VERSION", "3.6.8"}});
  write("v4.hkl", "data", {{"HICKLE_VERSION", "4.0.4"}, {"HICKLE_PYTHON_VERSION", "3.8.0"}});
  write("v5.hkl", "data", {{"HICKLE_VERSION", "5.0.2"}, {"HICKLE_PYTHON_VERSION", "3.11.2"}});
  for (const auto* name : {"v1.hkl", "v2.hkl", "v3.hkl", "v4.hkl", "v5.hkl"}) {
    const auto source = folder.open({name});
    ASSERT_TRUE(source) << source.error().message;
    EXPECT_EQ((*source)->size(), 6);
    expect_made_images(**source);
  }
}

TEST(HickleFilesTest, DictionariesHaveTheirLabelsInside) {
  const auto images = made_images(AxisOrder::c01b, 0, 4, kSides);
  const auto shape = made_shape(AxisOrder::c01b, 4, kSides);
  const HickleFolder folder;
  struct Names {
    std::vector<std::string> groups;
    std::string images, labels;
  };
  int number = 0;
  for (const auto& [groups, image_path, label_path] : std::vector<Names>{
           {{"data_0", "data_0/images", "data_0/labels"}, "data_0/images/data_0", "data_0/labels/data_0"},      // 2.x
           {{"data_0", "data_0/'data'", "data_0/'labels'"}, "data_0/'data'/data_0", "data_0/'labels'/data_0"},  // 3.x
           {{"data", "data/'x'", "data/'y'"}, "data/'x'/data", "data/'y'/data"},                                // 4.0
           {{"data"}, "data/\"images\"", "data/\"labels\""},                                                    // 5.0
           {{}, "images", "labels"},
           {{}, "data", "label"}}) {
    const auto name = std::to_string(number++) + ".hkl";
    {
      const MadeHdf5 file(folder.file(name));
      for (const auto& group : groups) file.group(group);
      file.bytes(image_path, shape, images);
      file.labels(label_path, {7, 5, 3, 1});
    }
    auto options = folder.options({name});
    options.labels.clear();
    const auto source = HickleFiles::open(options);
    ASSERT_TRUE(source) << image_path << ": " << source.error().message;
    expect_made_images(**source);
    EXPECT_EQ((*source)->label(0), 7) << label_path;
    EXPECT_EQ((*source)->label(3), 1) << label_path;
  }
}

TEST(HickleFilesTest, LabelsInsideMayBeNarrowOrPacked) {
  const HickleFolder folder;
  const auto images = made_images(AxisOrder::bc01, 0, 5, kSides);
  const std::vector<std::int32_t> narrow{4, 3, 2, 1, 0};
  const Bytes bytes{4, 3, 2, 1, 0};
  {
    const MadeHdf5 i32(folder.file("i32")), u8(folder.file("u8")), packed(folder.file("packed"));
    for (const auto* file : {&i32, &u8, &packed}) file->bytes("data", made_shape(AxisOrder::bc01, 5, kSides), images);
    i32.array("labels", H5T_NATIVE_INT32, {5}, narrow.data());
    u8.bytes("labels", {5}, bytes);
    packed.labels("labels", {4, 3, 2, 1, 0}, {.chunk = {2}, .gzip = true});
  }
  for (const auto* name : {"i32", "u8", "packed"}) {
    auto options = folder.options({name});
    options.labels.clear();
    const auto source = HickleFiles::open(options);
    ASSERT_TRUE(source) << name << ": " << source.error().message;
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ((*source)->label(i), 4 - i) << name;
  }
}

TEST(HickleFilesTest, EveryWayToStoreAnArrayReadsAlike) {
  const HickleFolder folder;
  struct Way {
    AxisOrder order;
    Stored stored;
  };
  std::vector<Way> ways{{AxisOrder::c01b, {}}, {AxisOrder::bc01, {}}};
  for (const bool gzip : {false, true})
    for (const bool shuffle : {false, true}) {
      ways.push_back({AxisOrder::c01b, {{2, 3, 4, 4}, shuffle, gzip}});  // cut at the end of each side but one
      ways.push_back({AxisOrder::c01b, {{3, 5, 4, 7}, shuffle, gzip}});
      ways.push_back({AxisOrder::bc01, {{3, 2, 2, 3}, shuffle, gzip}});
    }
  for (const auto& way : ways) {
    write_hickle(folder.file("0.hkl"), 0, 7, kSides, way.order, way.stored);
    write_hickle(folder.file("1.hkl"), 7, 5, kSides, way.order, {});
    for (const std::int64_t block_images : {1, 2, 3, 100}) {
      auto options = folder.options({"0.hkl", "1.hkl"});
      options.block_bytes = block_images * 3 * 5 * 4;
      options.kept_bytes = 2 * options.block_bytes;
      const auto source = HickleFiles::open(options);
      ASSERT_TRUE(source) << source.error().message;
      EXPECT_THAT((*source)->shard_begins(), ElementsAre(0, 7));
      ASSERT_EQ((*source)->size(), 12);
      expect_made_images(**source);
      EXPECT_EQ((*source)->label(11), 11);
      EXPECT_THAT((*source)->where(11), EndsWith("1.hkl: record 4"));
      const bool separate = way.order == AxisOrder::bc01 && way.stored.chunk.empty();
      EXPECT_EQ((*source)->most_window(), separate ? 0 : std::min<std::int64_t>(7, block_images));
    }
  }
}

TEST(HickleFilesTest, LzfIsRead) {
  // h5py's filter 32000. What it cannot shorten stands as it is, with its bit in the mask.
  const HickleFolder folder;
  const auto images = made_images(AxisOrder::bc01, 0, 2, kSides);
  constexpr std::size_t kImage = 3 * 5 * 4;
  Bytes packed;
  for (std::size_t from = 0; from < kImage; from += 30) {
    packed.push_back(29);
    packed.insert(packed.end(), images.begin() + static_cast<std::ptrdiff_t>(from),
                  images.begin() + static_cast<std::ptrdiff_t>(from + 30));
  }
  {
    const MadeHdf5 file(folder.file("0.hkl"));
    file.array("data", H5T_NATIVE_UINT8, {2, 3, 5, 4}, nullptr, {.chunk = {1, 3, 5, 4}, .filter = 32000});
    file.write_chunk("data", {0, 0, 0, 0}, packed);
    file.write_chunk("data", {1, 0, 0, 0}, {images.begin() + kImage, images.end()}, 1);
  }
  const auto source = folder.open({"0.hkl"});
  ASSERT_TRUE(source) << source.error().message;
  expect_made_images(**source);
}

TEST(HickleFilesTest, LongRowsAreReadInSlabs) {
  // A row of all images has 1200 * 1000 bytes: a slab of 4 MiB has three of the four rows.
  const ImageSides sides{1, 4, 1200};
  const HickleFolder folder(1000);
  write_hickle(folder.file("0.hkl"), 0, 1000, sides);
  auto options = folder.options({"0.hkl"});
  options.classes = 1000;
  const auto source = HickleFiles::open(options).value();
  Bytes bytes;
  for (const std::int64_t image : {0, 1, 517, 999}) {
    ASSERT_TRUE(source->fetch(image, bytes));
    EXPECT_EQ(bytes, made_image(image, sides)) << image;
  }
}

TEST(HickleFilesTest, OrderOfTheAxesIsTheFirstFilesOrIsSaid) {
  const HickleFolder folder;
  write_hickle(folder.file("0.hkl"), 0, 4, kSides, AxisOrder::bc01);
  write_hickle(folder.file("1.hkl"), 4, 3, kSides, AxisOrder::bc01);  // alone: three images, or three channels
  expect_made_images(*folder.open({"0.hkl", "1.hkl"}).value());
  write_hickle(folder.file("2.hkl"), 0, 3, kSides, AxisOrder::bc01);
  EXPECT_THAT(hickle_error(folder.open({"2.hkl"})),
              HasSubstr("2.hkl: 'data' is 3 x 3 x 5 x 4: which side is the number of channels (1 or 3) cannot be told: "
                        "set data.shape = [channels, height, width]"));
  auto options = folder.options({"2.hkl"});
  options.shape = kSides;
  expect_made_images(*HickleFiles::open(options).value());
  const ImageSides cube{3, 3, 3};  // both orders fit
  write_hickle(folder.file("3.hkl"), 0, 5, cube, AxisOrder::bc01);
  write_hickle(folder.file("4.hkl"), 5, 3, cube, AxisOrder::bc01);
  expect_made_images(*folder.open({"3.hkl", "4.hkl"}).value(), cube);
  options.shape = RawShape{3, 4, 5};
  EXPECT_THAT(hickle_error(HickleFiles::open(options)),
              HasSubstr("neither its first three sides nor its last three are 3 x 4 x 5 (data.shape)"));
}

TEST(HickleFilesTest, WrongShapesAndLabelsAreNamed) {
  const HickleFolder folder(5);
  write_hickle(folder.file("0.hkl"), 0, 3, kSides);
  write_hickle(folder.file("1.hkl"), 3, 3, kSides);
  write_hickle(folder.file("2.hkl"), 3, 2, {3, 4, 4});
  EXPECT_TRUE(folder.open({"0.hkl"}));  // labels of samples that filled no batch are left over
  EXPECT_THAT(hickle_error(folder.open({"0.hkl", "1.hkl"})),
              AllOf(HasSubstr("train_labels.npy: 5 labels are fewer than the images of "), HasSubstr("1.hkl")));
  EXPECT_THAT(
      hickle_error(folder.open({"0.hkl", "2.hkl"})),
      HasSubstr("2.hkl: 'data' is 3 x 4 x 4 x 2: neither its first three sides nor its last three are 3 x 5 x 4 "
                "(the images of the first file)"));
  folder.write_labels({0, 100, 2});
  EXPECT_THAT(hickle_error(folder.open({"0.hkl"})),
              HasSubstr("train_labels.npy: record 1: label 100 is not in 0 ... 99"));
  folder.write_labels({0, 1, -1});
  EXPECT_THAT(hickle_error(folder.open({"0.hkl"})), HasSubstr("train_labels.npy: record 2: label -1 is not in 0"));
  auto options = folder.options({"0.hkl"});
  options.labels.clear();
  EXPECT_THAT(hickle_error(HickleFiles::open(options)), HasSubstr("0.hkl: it has no labels beside the images"));
  {
    const MadeHdf5 file(folder.file("3.hkl"));
    file.bytes("data", made_shape(AxisOrder::c01b, 3, kSides), made_images(AxisOrder::c01b, 0, 3, kSides));
    file.labels("labels", {1, 2});
  }
  options.files = {folder.file("3.hkl")};
  EXPECT_THAT(hickle_error(HickleFiles::open(options)), HasSubstr("3.hkl: 2 labels ('labels') for 3 images"));
}

/// A data set in the preprocessing's folders: three training files of four images, and one of validation.
DataConfig write_hickle_set(const std::filesystem::path& folder) {
  for (std::int64_t file = 0; file < 3; ++file)
    write_hickle(folder / "train_hkl" / ("000" + std::to_string(file) + ".hkl"), 4 * file, 4, kSides);
  write_hickle(folder / "val_hkl" / "0000.hkl", 0, 4, kSides);
  Wide labels{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 9, 9};  // two of no batch
  write_file(folder / "train_labels.npy", made_npy("<i8", "(14,)", labels));
  write_file(folder / "val_labels.npy", made_npy("<i4", "(4,)", std::vector<std::int32_t>{3, 2, 1, 0}));
  DataConfig config;
  config.name = "hickle";
  config.path = folder.string();
  config.classes = 12;
  return config;
}

TEST(HickleDatasetTest, EachEpochVisitsEverySampleOnceFileByFile) {
  const TemporaryDirectory folder;
  const auto config = write_hickle_set(folder.path());
  const auto source = open_source(config, 5);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->train->size(), 12);
  EXPECT_EQ(source->test->size(), 4);
  std::vector<float> images(static_cast<std::size_t>(12 * source->train->image_shape().size()));
  std::set<std::vector<std::int32_t>> orders;
  for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<std::int32_t> labels(12, -1);
    ASSERT_TRUE(source->train->build({0, epoch, 0, 12, 0}, images, labels));
    orders.insert(labels);
    EXPECT_EQ(std::set(labels.begin(), labels.end()).size(), 12U);
    // data.window is 8192, but a block (here a file) is all that is shuffled together: four labels of one file follow each other.
    for (std::size_t at = 0; at < 12; at += 4)
      for (std::size_t k = 1; k < 4; ++k) EXPECT_EQ(labels[at + k] / 4, labels[at] / 4);
  }
  EXPECT_GT(orders.size(), 10U);  // of 3! (4!)^3
  std::vector<std::int32_t> labels(4);
  ASSERT_TRUE(source->test->build_range(0, 4, images, labels));
  EXPECT_THAT(labels, ElementsAre(3, 2, 1, 0));
}

TEST(HickleDatasetTest, ClassesHaveNamesAndHeldOutSamplesAreLeftOut) {
  const TemporaryDirectory folder;
  auto config = write_hickle_set(folder.path());
  std::string names;
  for (int i = 0; i < 13; ++i) names += "class " + std::to_string(i) + "\n";
  write_file(folder.path() / "classes.txt", {names.begin(), names.end()});
  config.validation = "3";
  const auto splits = open_splits(config, 1);
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_EQ(splits->train->classes(), 13);
  EXPECT_EQ(splits->train->class_names()[12], "class 12");
  EXPECT_EQ(splits->train->size(), 9);
  EXPECT_EQ(splits->validation->size(), 3);
  EXPECT_EQ(splits->train->most_window(), 4);
}

TEST(HickleDatasetTest, TheMeanImageOfThePreprocessingIsSubtracted) {
  const TemporaryDirectory folder;
  auto config = write_hickle_set(folder.path());
  std::vector<double> mean(3 * 5 * 4);
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = 2.0 * static_cast<double>(i);
  const auto file = folder.path() / "img_mean.npy";
  write_file(file, made_npy("<f8", "(3, 5, 4)", mean));
  config.mean = "image";
  config.statistics = file.string();
  const auto source = open_source(config, 1);
  ASSERT_TRUE(source) << source.error().message;
  std::vector<float> image(mean.size());
  std::vector<std::int32_t> label(1);
  ASSERT_TRUE(source->test->build_range(2, 1, image, label));
  const auto pixels = made_image(2, kSides);
  for (std::size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(image[i], (pixels[i] - mean[i]) / 255, 1e-6) << i;

  config.mean = "channel";  // of channel 1: 2 (20 + … + 39) / 20 = 59
  const auto by_channel = open_source(config, 1).value();
  ASSERT_TRUE(by_channel.test->build_range(2, 1, image, label));
  EXPECT_NEAR(image[20], (pixels[20] - 59) / 255.0, 1e-6);

  config.normalise = true;
  const auto without = open_source(config, 1);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, core::Errc::config);
  EXPECT_THAT(without.error().message, HasSubstr("img_mean.npy has no deviations: give data.channel_deviation"));
  config.channel_deviation = {1, 2, 0.5};
  ASSERT_TRUE(open_source(config, 1).value().test->build_range(2, 1, image, label));
  EXPECT_NEAR(image[20], (pixels[20] - 59) / 255.0 / 2, 1e-6);

  write_file(file, made_npy("<f8", "(60,)", mean));
  const auto other = open_source(config, 1);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, core::Errc::data);
  EXPECT_THAT(other.error().message, HasSubstr("img_mean.npy: a mean image of shape 60, and the images are 3 x 5 x 4"));
}

}  // namespace
}  // namespace troupe::data
