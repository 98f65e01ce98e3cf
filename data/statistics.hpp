/// Statistics of a training split in a file, so that a run need not measure them: what `data.statistics` names. JSON:
///
///     {"shape": [3, 224, 224], "channel_mean": […], "channel_deviation": […], "image_mean": […]}
///
/// A file NAME.npy has a mean image alone, [channels, height, width] of float32 or float64, with byte 255 as 255: Theano-MPI's img_mean.npy.
///
/// In JSON byte 255 is 1. `image_mean` is channel by channel, row by row, and may be empty. Thread rule: pure but for the file.
#pragma once

#include <filesystem>

#include "core/error.hpp"
#include "data/dataset.hpp"
#include "data/preprocessing.hpp"

namespace troupe::data {

/// Replaces the file as a whole. Errc::io, no_space.
[[nodiscard]] core::Result<void> write_statistics(const std::filesystem::path& path, const Statistics& statistics,
                                                  ImageShape shape);

/// Errc::data names the file: no such JSON, another number of channels than `shape`, a number that no image has, a deviation that is not
/// above 1e-7. An image mean of another size than `shape` reads as empty; in a .npy file it is an error. The statistics of a .npy file have no
/// channel_deviation. Errc::io.
[[nodiscard]] core::Result<Statistics> read_statistics(const std::filesystem::path& path, ImageShape shape);

}  // namespace troupe::data
