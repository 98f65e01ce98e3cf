#include "data/config.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/text/plural.hpp"
#include "data/registry.hpp"
#include "data/statistics.hpp"
#include "data/validation.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using core::Result;
using DatasetResult = Result<std::shared_ptr<const Dataset>>;

/// ImageNet's, as torchvision publishes them.
const std::vector<double> kPictureMean{0.485, 0.456, 0.406}, kPictureDeviation{0.229, 0.224, 0.225};
constexpr std::int64_t kMeasuredSamples = 10'000;  // of streamed images with another number of channels

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const auto& row : dataset_registry()) names.emplace_back(row.name);
  return names;
}

}  // namespace

std::int64_t DataConfig::batches_ahead(std::size_t loaders) const noexcept {
  const auto sharing = static_cast<std::int64_t>(std::max<std::size_t>(loaders, 1));
  const std::int64_t decoders = (decode_threads + sharing - 1) / sharing;
  return decoders > 1 ? std::max(prefetch, decoders + 1) : prefetch;  // one for each decoder, and one that is ready
}

const core::Table<DataConfig>& data_table() {
  using core::at_least;
  using core::between;
  constexpr double kMostBuffers = 65'536;  // each of a batch
  constexpr double kMostPixels = 65'535;   // along a side
  constexpr double kMostSamples = 1e12;
  constexpr double kMostJitter = 10;
  constexpr double kMostPictures = 1e9;  // pixels
  static const core::Table<DataConfig> table{
      "data",
      {{"name", &DataConfig::name, core::one_of(kind_names()), "the data set; required"},
       {"path", &DataConfig::path, core::anything(),
        "directory of its files, relative to the working directory; empty: data/<name>"},
       {"classes", &DataConfig::classes, between(2, 1e6),
        "number of classes, where the data set does not say it: labels are below it"},
       {"shape", &DataConfig::shape, between(1, kMostPixels),
        "synthetic, records: [channels, height, width] of the images; [] is [3, 224, 224], and [1, 28, 28] for "
        "records; hickle: the same where the order of a file's axes cannot be told"},
       {"seed", &DataConfig::seed, at_least(0),
        "glyphs, synthetic: which images are drawn (run.seed shuffles and augments)"},
       {"batch", &DataConfig::batch, between(1, core::kMostCount),
        "samples per worker and step: one number, or a list with one per worker"},
       {"prefetch", &DataConfig::prefetch, between(1, kMostBuffers),
        "batches that a loader keeps ready, of slow steps about a second's worth; more where its share of "
        "decode_threads needs them"},
       {"decode_threads", &DataConfig::decode_threads, between(1, 256), "threads per process that decode and augment"},
       {"shuffle", &DataConfig::shuffle, core::anything(), "visit the samples in a new random order each epoch"},
       {"drop_tail", &DataConfig::drop_tail, core::anything(),
        "leave out an epoch's last incomplete batch instead of filling it from the beginning"},
       {"mean", &DataConfig::mean, core::one_of({"none", "channel", "image"}),
        "what is subtracted: nothing, a mean per channel, a mean per pixel"},
       {"normalise", &DataConfig::normalise, core::anything(), "divide by each channel's standard deviation"},
       {"channel_mean", &DataConfig::channel_mean, between(-10, 10),
        "mean of each channel, with byte 255 as 1; []: measured, or ImageNet's for pictures read from files"},
       {"channel_deviation", &DataConfig::channel_deviation, between(1e-6, 10),
        "standard deviation of each channel, with byte 255 as 1; [] as above"},
       {"statistics", &DataConfig::statistics, core::anything(),
        "file with the means and deviations of the training split, or an .npy file of its mean image; empty: none"},
       {"resize", &DataConfig::resize, between(0, kMostPixels),
        "pictures: the shorter side becomes so many pixels, and the centre square is the image; 0: from data.crop"},
       {"random_resized_crop", &DataConfig::random_resized_crop, core::anything(),
        "pictures: a training image is a random part (8 to 100 % of the area) resized to data.crop"},
       {"brightness", &DataConfig::brightness, between(0, kMostJitter),
        "pictures: a training image's brightness is multiplied by 1 - x to 1 + x, at random"},
       {"contrast", &DataConfig::contrast, between(0, kMostJitter), "the same for contrast"},
       {"saturation", &DataConfig::saturation, between(0, kMostJitter), "the same for saturation"},
       {"crop", &DataConfig::crop, between(0, kMostPixels),
        "side of the square cut out, in pixels: at random to train, the centre to test; 0: the whole image"},
       {"pad", &DataConfig::pad, between(0, 4096), "pixels that a training crop may reach beyond each side"},
       {"mirror", &DataConfig::mirror, core::anything(),
        "exchange left and right of every second training sample, at random"},
       {"window", &DataConfig::window, between(0, kMostSamples),
        "shards, batches, records, hickle: files in random order, and so many consecutive samples shuffled together; "
        "0: "
        "all (hickle: at most one file)"},
       {"max_bad", &DataConfig::max_bad, between(0, kMostSamples),
        "unreadable samples per split and process that are replaced by their neighbours; one more ends the run"},
       {"max_pixels", &DataConfig::max_pixels, between(1, kMostPictures),
        "a picture with more pixels counts as unreadable: it would take too much memory"},
       {"train_samples", &DataConfig::train_samples, between(0, kMostSamples),
        "use so many training samples: the first ones, or of pictures read from files evenly spread ones; 0: all"},
       {"test_samples", &DataConfig::test_samples, between(0, kMostSamples), "the same of the test split; 0: all"},
       {"validation", &DataConfig::validation, validation_rule(),
        "what decides about targets, early stopping, the best checkpoint and plateaus: a share or a count of the "
        "training samples, held out by run.seed, or the test split of a data set of the same kind in another folder"},
       {"stage", &DataConfig::stage, core::anything(),
        "shards, batches, records under mpirun or srun: a directory on each host; before training the ranks read the "
        "files together (MPI-IO), each a part, into copies there; empty: each rank reads the files themselves"}}};
  return table;
}

std::span<const DatasetKind> dataset_kinds() {
  static const auto kinds = [] {
    std::vector<DatasetKind> all;
    for (const auto& row : dataset_registry()) all.push_back({row.name, row.description, row.streamed});
    return all;
  }();
  return kinds;
}

Result<std::optional<ImageFacts>> image_facts(const DataConfig& config) {
  const auto* const row = find_dataset(config.name);
  if (!row) return std::nullopt;
  const auto form = form_of(*row, config);
  if (!form) return tl::unexpected(form.error());
  if (!*form) return std::nullopt;
  return output_shape(preprocess_options(config), (*form)->shape).map([&](const ImageShape& shape) {
    return std::optional(ImageFacts{shape, (*form)->classes});
  });
}

std::optional<std::int64_t> published_samples(const DataConfig& config, Split split) {
  const auto* const row = find_dataset(config.name);
  if (!row) return {};
  const auto form = form_of(*row, config);
  if (!form || !*form) return {};
  const bool train = split == Split::train;
  const std::int64_t limit = train ? config.train_samples : config.test_samples;
  const std::int64_t all = train ? (*form)->train_samples : (*form)->test_samples;
  const std::int64_t used = limit > 0 ? std::min(limit, all) : all;
  return train ? samples_to_train(config, used) : used;
}

std::int64_t samples_to_train(const DataConfig& config, std::int64_t samples) {
  const auto validation = parse_validation(config.validation).value_or(Validation{});
  return std::max<std::int64_t>(0, samples - held_out(validation, samples));
}

DatasetResult open_dataset(const DataConfig& config, Split split) {
  const auto* const row = find_dataset(config.name);
  if (!row)
    return fail(Errc::config, fmt::format("data.name is '{}': one of {}", config.name, fmt::join(kind_names(), " | ")));
  auto opened = row->open(config, split, split == Split::train ? config.train_samples : config.test_samples);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();  // of an epoch's order (order/sampler.hpp)
  if (opened && (*opened)->size() > kMost)
    return fail(Errc::config,
                fmt::format("data set '{}' has {} samples, and a split can have {}: lower data.{}_samples", config.name,
                            (*opened)->size(), kMost, split == Split::train ? "train" : "test"));
  return opened;
}

Result<std::vector<std::int64_t>> batches_per_worker(const DataConfig& config, std::int64_t workers) {
  const auto count = static_cast<std::size_t>(workers);
  if (config.batch.size() == 1) return std::vector<std::int64_t>(count, config.batch[0]);
  if (config.batch.size() == count) return config.batch;
  return fail(Errc::config, fmt::format("data.batch has {} values for {} workers: give one for all, or one per worker",
                                        config.batch.size(), workers));
}

PreprocessOptions preprocess_options(const DataConfig& config) {
  const Mean mean = config.mean == "none" ? Mean::none : config.mean == "image" ? Mean::image : Mean::channel;
  // A random resized crop is the image already.
  const bool cut = !config.random_resized_crop;
  return {mean, config.normalise, cut ? config.crop : 0, cut ? config.pad : 0, config.mirror};
}

Result<Statistics> statistics_of(const DataConfig& config, const Dataset& train) {
  const auto channels = static_cast<std::size_t>(train.shape().channels);
  Statistics result;
  if (!config.statistics.empty()) {
    auto read = read_statistics(config.statistics, train.shape());
    if (!read) return read;
    result = *std::move(read);
  } else if (train.streamed() && channels == kPictureMean.size()) {
    result = {kPictureMean, kPictureDeviation, {}};
  } else if (config.channel_mean.empty() || config.channel_deviation.empty() || config.mean == "image") {
    const StatisticsLimits some{.samples = kMeasuredSamples, .max_bad = config.max_bad};
    auto measured = measure_statistics(train, train.streamed() ? some : StatisticsLimits{});
    if (!measured) return measured;
    result = *std::move(measured);
    if (train.streamed()) result.image_mean.clear();
  }
  if (!config.channel_mean.empty()) result.channel_mean = config.channel_mean;
  if (!config.channel_deviation.empty()) result.channel_deviation = config.channel_deviation;
  if (result.channel_deviation.empty()) {  // of a mean image
    if (config.normalise)
      return fail(Errc::config,
                  fmt::format("{} has no deviations: give data.channel_deviation, or name a file of `troupe "
                              "data mean` (data.statistics), or set data.normalise = false",
                              config.statistics));
    result.channel_deviation.assign(channels, 1.0);
  }
  for (const auto& [key, values] : {std::pair("data.channel_mean", &result.channel_mean),
                                    std::pair("data.channel_deviation", &result.channel_deviation)})
    if (values->size() != channels)
      return fail(Errc::config,
                  fmt::format("{} has {}, and the images have {}", key, core::counted(values->size(), "value"),
                              core::counted(channels, "channel")));
  if (config.mean == "image" && result.image_mean.empty())
    return fail(Errc::config,
                fmt::format("data.mean = \"image\" needs a file with the mean of the {} x {} images of '{}' "
                            "(data.statistics): reading all of them at each start would take too long",
                            train.shape().height, train.shape().width, config.name));
  return result;
}

namespace {

/// Null without a validation split; `train` loses the samples that are held out.
DatasetResult open_validation(const DataConfig& config, std::uint64_t seed, std::shared_ptr<const Dataset>& train) {
  const auto validation = parse_validation(config.validation).value_or(Validation{});
  if (validation.none()) return nullptr;
  if (!validation.folder.empty()) {
    if (const auto* const row = find_dataset(config.name); row && row->drawn)
      return fail(Errc::config, fmt::format("data.validation: {} are drawn, not read from a folder: give a share or a "
                                            "count",
                                            config.name));
    auto elsewhere = config;
    elsewhere.path = validation.folder;
    elsewhere.staged.clear();
    elsewhere.test_samples = 0;
    auto opened = open_dataset(elsewhere, Split::test);
    if (!opened) opened.error().message.insert(0, "data.validation: ");
    return opened;
  }
  auto held = hold_out(train, validation, seed);
  if (!held) return tl::unexpected(held.error());
  train = held->train;
  return held->validation;
}

}  // namespace

Result<Splits> open_splits(const DataConfig& config, std::uint64_t seed) {
  auto train = open_dataset(config, Split::train);
  if (!train) return tl::unexpected(train.error());
  const auto validation = open_validation(config, seed, *train);
  if (!validation) return tl::unexpected(validation.error());
  const auto test = open_dataset(config, Split::test);
  if (!test) return tl::unexpected(test.error());
  const ImageShape shape = (*train)->shape(), other = (*test)->shape();
  if (shape != other)
    return fail(
        Errc::data,
        fmt::format(
            "data set '{}': training images are {} x {} x {} and test images {} x {} x {}: they do not belong together",
            config.name, shape.channels, shape.height, shape.width, other.channels, other.height, other.width));
  if (*validation && ((*validation)->shape() != shape || (*validation)->classes() != (*train)->classes()))
    return fail(Errc::data, fmt::format("{}: the data set in the folder of data.validation has other images or classes "
                                        "than data set '{}': they do not belong together",
                                        config.validation, config.name));
  if (*validation && !(*validation)->class_names().empty() && !(*train)->class_names().empty() &&
      (*validation)->class_names() != (*train)->class_names())
    return fail(Errc::data, fmt::format("{}: the classes of the data set in the folder of data.validation have other "
                                        "names than those of '{}': they do not belong together",
                                        config.validation, config.name));
  return Splits{*train, *test, *validation};
}

Result<Source> open_source(const DataConfig& config, std::uint64_t seed) {
  const auto splits = open_splits(config, seed);
  if (!splits) return tl::unexpected(splits.error());
  const ImageShape shape = splits->train->shape();
  const PreprocessOptions options = preprocess_options(config);
  Statistics statistics;
  if (options.mean != Mean::none || options.normalise) {
    auto known = statistics_of(config, *splits->train);
    if (!known) return tl::unexpected(known.error());
    statistics = *std::move(known);
  }
  auto preprocess = Preprocess::create(options, shape, statistics);
  if (!preprocess) return tl::unexpected(preprocess.error());
  const BatchLimits limits{.window = config.window, .max_bad = config.max_bad};
  const Order order = config.shuffle ? Order::shuffled : Order::sequential;
  const auto in_order = [&](const std::shared_ptr<const Dataset>& split) {
    return std::make_shared<const BatchBuilder>(split, *preprocess, seed, Order::sequential, limits);
  };
  return Source{std::make_shared<const BatchBuilder>(splits->train, *preprocess, seed, order, limits),
                in_order(splits->test), splits->validation ? in_order(splits->validation) : nullptr};
}

}  // namespace troupe::data
