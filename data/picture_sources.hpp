/// Opens the data sets of pictures from a configuration, for data/registry.cpp: one function per value of `data.name`. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "data/config.hpp"
#include "data/dataset.hpp"
#include "data/pictures.hpp"
#include "data/registry.hpp"

namespace troupe::data {

using OpenedDataset = core::Result<std::shared_ptr<const Dataset>>;

/// Errors: Errc::config for options that do not fit, others from the sources (data/sources/) and PictureDataset::open().
[[nodiscard]] OpenedDataset open_folder(const DataConfig& config, Split split, std::int64_t limit);
[[nodiscard]] OpenedDataset open_shards(const DataConfig& config, Split split, std::int64_t limit);
[[nodiscard]] OpenedDataset open_csv(const DataConfig& config, Split split, std::int64_t limit);
[[nodiscard]] OpenedDataset open_batches(const DataConfig& config, Split split, std::int64_t limit);
[[nodiscard]] OpenedDataset open_records(const DataConfig& config, Split split, std::int64_t limit);
/// Errc::config: a build without HDF5.
[[nodiscard]] OpenedDataset open_hickle(const DataConfig& config, Split split, std::int64_t limit);
[[nodiscard]] OpenedDataset open_synthetic(const DataConfig& config, Split split, std::int64_t limit);
/// Files that are named one by one, without labels, prepared as the evaluation of `config` prepares its pictures; for data sets of another
/// kind resized to cover an image and cut at the centre. `shape` is of the data set's images; the result's has three channels. Errc::config:
/// images that are no squares.
[[nodiscard]] core::Result<std::shared_ptr<const PictureDataset>> open_named_pictures(const DataConfig& config,
                                                                                      ImageShape shape,
                                                                                      std::vector<std::string> files);
/// The files of both splits, for copies that the processes of a job make (`data.stage`). Errc::config: not a data set in files of many
/// samples; data: none.
[[nodiscard]] core::Result<std::vector<std::string>> files_to_stage(const DataConfig& config);
[[nodiscard]] core::Result<PublishedForm> synthetic_form(const DataConfig& config);

}  // namespace troupe::data
