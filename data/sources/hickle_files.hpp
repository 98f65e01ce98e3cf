/// Files of hickle, as Theano-MPI's and theano_alexnet's preprocessing writes them: an HDF5 file per batch of images, with one array of
/// unsigned bytes, [channels, height, width, images] (c01b) or [images, channels, height, width] (bc01). Labels stand in one .npy file for
/// all of them, or in an array of each file.
///
/// In c01b the bytes of one image lie apart, and compressed chunks unpack as a whole: of such files a block of images is read at once and
/// kept (up to 64 MiB, and all kept blocks up to 256 MiB or one block). Of contiguous bc01 files one image is read from its place.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "data/hdf5/image_reader.hpp"
#include "data/sources/block_cache.hpp"
#include "data/sources/source.hpp"

namespace troupe::data {

struct HickleFilesOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path labels;   // NAME_labels.npy; empty: each file has its own
  std::int32_t classes = 0;       // labels are in [0, classes)
  std::optional<RawShape> shape;  // of the images; none: from the first file
  std::int64_t block_bytes = 64LL << 20;
  std::int64_t kept_bytes = 256LL << 20;
};

/// Memory: 4 bytes a sample, what is kept of blocks, and where the array of each file is.
class HickleFiles final : public SampleSource {
 public:
  /// Errc::config: no HDF5 in this build. Errc::data names file and record: what ArrayLibrary::find() says, an order of axes that cannot be
  /// told, images of another shape than the first file's or too large, values beyond the end of the file; labels out of range, fewer labels
  /// than images, neither labels in the file nor a file of them.
  [[nodiscard]] static core::Result<std::shared_ptr<const HickleFiles>> open(const HickleFilesOptions& options);

  [[nodiscard]] std::int64_t size() const noexcept override { return static_cast<std::int64_t>(labels_.size()); }
  [[nodiscard]] std::int32_t classes() const noexcept override { return options_.classes; }
  [[nodiscard]] std::optional<RawShape> raw_shape() const noexcept override { return shape_; }
  [[nodiscard]] std::vector<std::int64_t> shard_begins() const override { return begins_; }
  [[nodiscard]] std::int64_t most_window() const noexcept override { return most_window_; }
  [[nodiscard]] core::Result<std::int32_t> label(std::int64_t index) const override;
  [[nodiscard]] core::Result<std::int32_t> fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const override;
  [[nodiscard]] std::string where(std::int64_t index) const override;

 private:
  explicit HickleFiles(const HickleFilesOptions& options)
      : options_(options), cache_(static_cast<std::size_t>(options.kept_bytes)) {}
  [[nodiscard]] core::Result<void> add(const ArrayLibrary& library, const std::filesystem::path& path);
  [[nodiscard]] core::Result<ImageArray> images_of(const std::string& path, StoredArray array);
  [[nodiscard]] core::Result<void> add_labels(const std::string& path, const std::vector<std::int64_t>& labels,
                                              std::int64_t from, std::int64_t count);
  [[nodiscard]] std::size_t file_of(std::int64_t index) const;
  [[nodiscard]] std::int64_t image_bytes() const noexcept { return shape_[0] * shape_[1] * shape_[2]; }
  [[nodiscard]] core::Result<BlockCache::Block> block_of(std::size_t file, std::int64_t block) const;

  HickleFilesOptions options_;
  RawShape shape_{};
  std::int64_t block_images_ = 1;
  std::int64_t most_window_ = 0;
  std::vector<std::int64_t> listed_labels_;  // of options_.labels, while the files are opened
  std::vector<std::int64_t> begins_;         // [files]: its first sample
  std::vector<ImageArray> arrays_;           // [files]
  std::vector<std::int32_t> labels_;         // [size]
  mutable BlockCache cache_;
};

}  // namespace troupe::data
