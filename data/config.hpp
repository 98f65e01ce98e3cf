/// The [data] section of a configuration, and the functions that open its data set (names: data/registry.hpp). Thread rule: plain
/// values and pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "data/batch_builder.hpp"
#include "data/dataset.hpp"
#include "data/preprocessing.hpp"

namespace troupe::data {

struct DataConfig {
  std::string name;                        // one of dataset_kinds(); no default
  std::string path;                        // directory, relative to the working directory; empty: the data set's own
  std::int64_t classes = 10;               // labels are in [0, classes), where the data set does not say it
  std::vector<std::int64_t> shape;         // channels, height, width: synthetic, records, hickle; empty: their own
  std::int64_t seed = 1;                   // glyphs, synthetic: which images are drawn
  std::vector<std::int64_t> batch = {64};  // samples per worker and step: one for all, or one per worker
  std::int64_t prefetch = 4;               // batches that a loader keeps ready
  std::int64_t decode_threads = 1;
  bool shuffle = true;
  bool drop_tail = false;
  std::string mean = "channel";  // none | channel | image
  bool normalise = false;
  std::vector<double> channel_mean;       // with byte 255 as 1; empty: measured
  std::vector<double> channel_deviation;  // the same
  std::string statistics;                 // a file of write_statistics(); empty: none
  std::int64_t resize = 0;                // pixels; pictures: length of the shorter side; 0: from crop
  bool random_resized_crop = false;
  double brightness = 0;  // jitter: factors in [1 − x, 1 + x]
  double contrast = 0;
  double saturation = 0;
  std::int64_t crop = 0;  // pixels; 0: none
  std::int64_t pad = 0;   // pixels
  bool mirror = false;
  std::int64_t window = 8192;             // samples of shards that are shuffled together; 0: all
  std::int64_t max_bad = 0;               // samples of a split that may be unreadable
  std::int64_t max_pixels = 100'000'000;  // of a picture
  std::int64_t train_samples = 0;         // so many: the first ones, of pictures evenly spread ones; 0: all
  std::int64_t test_samples = 0;
  std::string validation = "none";  // data/validation.hpp
  std::string stage;                // directory for copies that the ranks of a job make; empty: none
  std::string staged{};             // no key: the directory of this process's copies; empty: none

  /// How many batches each of `loaders` loaders of a process holds beside the one that its worker computes: `prefetch`, or more where its share of
  /// decode_threads would find no batch to fill.
  [[nodiscard]] std::int64_t batches_ahead(std::size_t loaders) const noexcept;
};

[[nodiscard]] const core::Table<DataConfig>& data_table();

/// One value of `data.name`.
struct DatasetKind {
  std::string_view name;
  std::string_view description;  // one line
  bool streamed = false;         // its samples are read and prepared while it trains: data.resize, jitter
};
[[nodiscard]] std::span<const DatasetKind> dataset_kinds();

/// What a model must match: the shape of the images in batches, and the number of classes.
struct ImageFacts {
  ImageShape shape;
  std::int32_t classes = 0;
};
/// The facts without opening files, for data sets with a published form; none for data sets that must be opened. Errc::config: the
/// crop is too large, with the same message as on opening.
[[nodiscard]] core::Result<std::optional<ImageFacts>> image_facts(const DataConfig& config);

/// The number of samples of a split as published (or drawn), after the configuration's limit and without those held out for validation;
/// none for data sets that must be opened.
[[nodiscard]] std::optional<std::int64_t> published_samples(const DataConfig& config, Split split);

/// One split, after the configuration's limit. Errc::config: the name is unknown, a path is needed, or it has 2^32 samples or more. Errc::data, io: from the
/// format's reader.
[[nodiscard]] core::Result<std::shared_ptr<const Dataset>> open_dataset(const DataConfig& config, Split split);

/// Of a training split of `samples` samples, those that remain to train. 0 where the validation split would take all.
[[nodiscard]] std::int64_t samples_to_train(const DataConfig& config, std::int64_t samples);

/// `data.batch` as one number per worker. Errc::config if its length is neither 1 nor `workers`.
[[nodiscard]] core::Result<std::vector<std::int64_t>> batches_per_worker(const DataConfig& config,
                                                                         std::int64_t workers);

[[nodiscard]] PreprocessOptions preprocess_options(const DataConfig& config);

/// The splits of a data set as they are read.
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
  std::shared_ptr<const Dataset> validation{};  ///< null: none
};

/// `seed` is the run's: it decides which samples are held out. Errors as open_dataset() and hold_out(), and Errc::data if the splits differ
/// in shape or classes, or the validation split's classes have other names.
[[nodiscard]] core::Result<Splits> open_splits(const DataConfig& config, std::uint64_t seed);

/// All data for a process: its splits, preprocessed with the training split's statistics. Copies share the data.
struct Source {
  std::shared_ptr<const BatchBuilder> train;
  std::shared_ptr<const BatchBuilder> test;
  std::shared_ptr<const BatchBuilder> validation{};  ///< null: none
};

/// The statistics that `train` is preprocessed with: of the file, of ImageNet (streamed pictures of three channels), or measured without the
/// samples that are unreadable, up to config.max_bad; given ones replace theirs. Errc::config: given ones that do not fit; a mean image
/// without a file for streamed data. Others: from the readers.
[[nodiscard]] core::Result<Statistics> statistics_of(const DataConfig& config, const Dataset& train);

/// Opens the splits and measures the statistics if they are needed. `seed` is the run's. Errors as open_splits() and statistics_of().
[[nodiscard]] core::Result<Source> open_source(const DataConfig& config, std::uint64_t seed);

}  // namespace troupe::data
