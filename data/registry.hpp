/// The registry of data sets by name. A new data set is a reader (one file pair), one row in registry.cpp and a test of the reader.
/// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/error.hpp"
#include "data/config.hpp"
#include "data/dataset.hpp"

namespace troupe::data {

/// The form of a data set, known without opening its files.
struct PublishedForm {
  ImageShape shape;
  std::int32_t classes = 0;
  std::int64_t train_samples = 0;
  std::int64_t test_samples = 0;
};

struct DatasetRow {
  std::string_view name;
  std::string_view description;            // one line
  std::optional<PublishedForm> published;  // none: the files must be opened, or form_of() says it
  /// Opens a split and uses its first `limit` samples; 0: all.
  core::Result<std::shared_ptr<const Dataset>> (*open)(const DataConfig& config, Split split, std::int64_t limit);
  /// The form where it follows from the configuration; null: see `published`.
  core::Result<PublishedForm> (*form_of)(const DataConfig& config) = nullptr;
  bool drawn = false;  // by the program: there are no files
  bool streamed =
      false;  // read while it trains, as PictureDataset: it heeds data.resize and the other keys of pictures
};

[[nodiscard]] std::span<const DatasetRow> dataset_registry();
/// The form of `row`'s data set, if it is known without opening files. Errc::config: from form_of().
[[nodiscard]] core::Result<std::optional<PublishedForm>> form_of(const DatasetRow& row, const DataConfig& config);
/// Null if no data set has this name.
[[nodiscard]] const DatasetRow* find_dataset(std::string_view name);

}  // namespace troupe::data
