#include "data/picture_sources.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "data/files/class_list.hpp"
#include "data/files/hickle_split.hpp"
#include "data/files/split_files.hpp"
#include "data/hdf5/array_library.hpp"
#include "data/pictures.hpp"
#include "data/sources/batch_files.hpp"
#include "data/sources/hickle_files.hpp"
#include "data/sources/image_folder.hpp"
#include "data/sources/image_list.hpp"
#include "data/sources/named_files.hpp"
#include "data/sources/record_files.hpp"
#include "data/sources/synthetic.hpp"
#include "data/sources/tar_shards.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using core::fail;
using core::Result;

constexpr std::int64_t kMostBytes = 1LL << 30;  // of a picture's file
constexpr std::int64_t kSyntheticTrain = 10'000;
constexpr std::int64_t kSyntheticTest = 1'000;

fs::path path_of(const DataConfig& config) {
  if (!config.staged.empty()) return config.staged;
  return config.path.empty() ? "data/" + config.name : config.path;
}

/// The sides of images, and whether pictures are resized at all.
PictureOptions picture_options(const DataConfig& config, std::int64_t limit, bool plain) {
  PictureOptions options;
  options.name = config.name;
  options.random_resized_crop = config.random_resized_crop;
  options.jitter = {config.brightness, config.contrast, config.saturation};
  options.most_pixels = config.max_pixels;
  options.limit = limit;
  if (config.random_resized_crop) {
    options.side = config.crop;
    // The usual 256 for a crop of 224.
    options.shorter = config.resize > 0 ? config.resize : config.crop * 8 / 7;
  } else if (config.resize > 0 || !plain) {
    options.side = options.shorter = config.resize > 0 ? config.resize : config.crop;
  }
  return options;
}

/// What classes.txt says, or without it the configuration.
struct Classes {
  std::int32_t count = 0;
  std::vector<std::string> names;
};

Result<Classes> classes_of(const DataConfig& config) {
  auto names = class_list(path_of(config));
  if (!names) return tl::unexpected(std::move(names.error()));
  if (names->empty()) return Classes{static_cast<std::int32_t>(config.classes), {}};
  return Classes{static_cast<std::int32_t>(names->size()), std::move(*names)};
}

OpenedDataset opened(const DataConfig& config, std::int64_t limit, std::shared_ptr<const SampleSource> source,
                     const std::vector<std::string>& class_names = {}) {
  if (config.random_resized_crop && config.crop == 0)
    return fail(Errc::config, "data.random_resized_crop needs data.crop: the side of the images in pixels");
  const bool plain = source->raw_shape().has_value();
  auto options = picture_options(config, limit, plain);
  options.class_names = class_names;
  auto data = PictureDataset::open(options, std::move(source));
  if (!data) return tl::unexpected(data.error());
  return *std::move(data);
}

template <class Source>
OpenedDataset opened(const DataConfig& config, std::int64_t limit, Result<std::shared_ptr<const Source>> source,
                     const std::vector<std::string>& class_names = {}) {
  if (!source) return tl::unexpected(source.error());
  return opened(config, limit, std::shared_ptr<const SampleSource>(*std::move(source)), class_names);
}

Result<RawShape> plain_shape(const DataConfig& config, const RawShape& own) {
  if (config.shape.empty()) return own;
  if (config.shape.size() != own.size())
    return fail(Errc::config,
                fmt::format("data.shape has {} values: channels, height and width are needed", config.shape.size()));
  constexpr std::int64_t kMostValues = 1 << 28;
  RawShape shape{config.shape[0], config.shape[1], config.shape[2]};
  if (shape[0] > kMostValues / shape[1] / shape[2])
    return fail(Errc::config, fmt::format("data.shape = [{}, {}, {}] is too large: at most {} values", shape[0],
                                          shape[1], shape[2], kMostValues));
  return shape;
}

}  // namespace

OpenedDataset open_folder(const DataConfig& config, Split split, std::int64_t limit) {
  const auto training = split_folder(config.name, path_of(config), true);
  if (!training) return tl::unexpected(training.error());
  const auto directory = split == Split::train ? training : split_folder(config.name, path_of(config), false);
  if (!directory) return tl::unexpected(directory.error());
  auto classes = class_folders(*training);
  if (!classes) return tl::unexpected(classes.error());
  return opened(config, limit, ImageFolder::open({*directory, *std::move(classes), kMostBytes}));
}

OpenedDataset open_shards(const DataConfig& config, Split split, std::int64_t limit) {
  auto files = split_files(config.name, path_of(config), split == Split::train, ".tar");
  if (!files) return tl::unexpected(files.error());
  const auto classes = classes_of(config);
  if (!classes) return tl::unexpected(classes.error());
  return opened(config, limit, TarShards::open({*std::move(files), classes->count, kMostBytes}), classes->names);
}

OpenedDataset open_csv(const DataConfig& config, Split split, std::int64_t limit) {
  const auto training = split_file(config.name, path_of(config), true, ".csv");
  if (!training) return tl::unexpected(training.error());
  const auto file = split == Split::train ? training : split_file(config.name, path_of(config), false, ".csv");
  if (!file) return tl::unexpected(file.error());
  auto classes = listed_classes(*training);
  if (!classes) return tl::unexpected(classes.error());
  return opened(config, limit,
                ImageList::open({*file, *std::move(classes), static_cast<std::int32_t>(config.classes), kMostBytes}));
}

OpenedDataset open_batches(const DataConfig& config, Split split, std::int64_t limit) {
  auto files = split_files(config.name, path_of(config), split == Split::train, ".batch");
  if (!files) return tl::unexpected(files.error());
  const auto classes = classes_of(config);
  if (!classes) return tl::unexpected(classes.error());
  return opened(config, limit, BatchFiles::open({*std::move(files), classes->count}), classes->names);
}

OpenedDataset open_records(const DataConfig& config, Split split, std::int64_t limit) {
  const auto shape = plain_shape(config, {1, 28, 28});
  if (!shape) return tl::unexpected(shape.error());
  auto files = split_files(config.name, path_of(config), split == Split::train, ".rec");
  if (!files) return tl::unexpected(files.error());
  const auto classes = classes_of(config);
  if (!classes) return tl::unexpected(classes.error());
  return opened(config, limit, RecordFiles::open({*std::move(files), *shape, classes->count}), classes->names);
}

OpenedDataset open_hickle(const DataConfig& config, Split split, std::int64_t limit) {
  if (const auto library = array_library(); !library)
    return fail(library.error().code, "data.name = \"hickle\": " + library.error().message);
  const auto shape = plain_shape(config, {});
  if (!shape) return tl::unexpected(shape.error());
  auto files = hickle_split(config.name, path_of(config), split == Split::train);
  if (!files) return tl::unexpected(files.error());
  const auto classes = classes_of(config);
  if (!classes) return tl::unexpected(classes.error());
  HickleFilesOptions options;
  options.files = std::move(files->files);
  options.labels = std::move(files->labels);
  options.classes = classes->count;
  if (!config.shape.empty()) options.shape = *shape;
  return opened(config, limit, HickleFiles::open(options), classes->names);
}

OpenedDataset open_synthetic(const DataConfig& config, Split split, std::int64_t limit) {
  const auto shape = plain_shape(config, {3, 224, 224});
  if (!shape) return tl::unexpected(shape.error());
  const bool train = split == Split::train;
  const std::int64_t samples = limit > 0 ? limit : train ? kSyntheticTrain : kSyntheticTest;
  return opened(config, 0,
                std::shared_ptr<const SampleSource>(std::make_shared<const SyntheticImages>(
                    SyntheticOptions{*shape, static_cast<std::int32_t>(config.classes), samples,
                                     static_cast<std::uint64_t>(config.seed), train})));
}

Result<std::shared_ptr<const PictureDataset>> open_named_pictures(const DataConfig& config, ImageShape shape,
                                                                  std::vector<std::string> files) {
  if (shape.height != shape.width)
    return fail(Errc::config, fmt::format("the model's images are {} x {}: pictures are cut to squares only",
                                          shape.height, shape.width));
  auto options = picture_options(config, 0, false);
  if (!config.random_resized_crop) options.shorter = shape.height;
  options.side = shape.height;
  return PictureDataset::open(options, std::make_shared<const NamedFiles>(std::move(files), kMostBytes));
}

Result<std::vector<std::string>> files_to_stage(const DataConfig& config) {
  const auto ending = config.name == "shards"    ? ".tar"
                      : config.name == "batches" ? ".batch"
                      : config.name == "records" ? ".rec"
                                                 : "";
  if (*ending == '\0')
    return fail(Errc::config,
                fmt::format("data.stage is for shards, batches and records, not for data.name = \"{}\"", config.name));
  std::vector<std::string> names;
  for (const bool train : {true, false}) {
    const auto files = split_files(config.name, path_of(config), train, ending);
    if (!files) return tl::unexpected(files.error());
    for (const auto& file : *files) names.push_back(fs::absolute(file).string());
  }
  const auto classes = class_list_file(path_of(config));
  std::error_code none;
  if (fs::exists(classes, none)) names.push_back(fs::absolute(classes).string());
  return names;
}

Result<PublishedForm> synthetic_form(const DataConfig& config) {
  const auto data = open_synthetic(config, Split::train, config.train_samples);
  if (!data) return tl::unexpected(data.error());
  const auto samples = [](std::int64_t limit, std::int64_t own) { return limit > 0 ? limit : own; };
  return PublishedForm{(*data)->shape(), static_cast<std::int32_t>(config.classes),
                       samples(config.train_samples, kSyntheticTrain), samples(config.test_samples, kSyntheticTest)};
}

}  // namespace troupe::data
