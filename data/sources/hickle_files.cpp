#include "data/sources/hickle_files.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/files/npy.hpp"
#include "data/files/open_file.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using core::Result;

constexpr std::int64_t kMostImageBytes = 1LL << 28;
constexpr std::int64_t kMostImagesOfAFile = 1LL << 31;

}  // namespace

/// Which axis is which, and what the other files say.
Result<ImageArray> HickleFiles::images_of(const std::string& path, StoredArray array) {
  const bool first = arrays_.empty();
  const auto expected = first ? options_.shape : std::optional(shape_);
  const auto sides = fmt::format("{}", fmt::join(array.shape, " x "));
  auto order = axis_order(array.shape, expected);
  if (!order && expected)
    return fail(Errc::data, fmt::format("{}: '{}' is {}: neither its first three sides nor its last three are {} ({})",
                                        path, array.name, sides, fmt::join(*expected, " x "),
                                        first ? "data.shape" : "the images of the first file"));
  if (!order)
    return fail(Errc::data, fmt::format("{}: '{}' is {}: which side is the number of channels (1 or 3) cannot be told: "
                                        "set data.shape = [channels, height, width]",
                                        path, array.name, sides));
  // The files of one data set have one order, also where both fit.
  if (!first && arrays_.front().order != *order) {
    const ImageArray other{array, arrays_.front().order};
    if (other.shape() == shape_) order = other.order;
  }
  ImageArray images{std::move(array), *order};
  const RawShape shape = images.shape();
  if (shape[0] > kMostImageBytes / shape[1] / shape[2] || images.images() > kMostImagesOfAFile)
    return fail(Errc::data, fmt::format("{}: '{}' is {}: too large", path, images.array.name, sides));
  if (first) shape_ = shape;
  return images;
}

Result<void> HickleFiles::add_labels(const std::string& path, const std::vector<std::int64_t>& labels,
                                     std::int64_t from, std::int64_t count) {
  for (std::int64_t record = from; record < from + count; ++record) {
    const auto label = labels[static_cast<std::size_t>(record)];
    if (label < 0 || label >= options_.classes)
      return fail(
          Errc::data,
          fmt::format(
              "{}: record {}: label {} is not in 0 ... {}: the data set has {} classes (classes.txt, or data.classes)",
              path, record, label, options_.classes - 1, options_.classes));
    labels_.push_back(static_cast<std::int32_t>(label));
  }
  return {};
}

Result<void> HickleFiles::add(const ArrayLibrary& library, const std::filesystem::path& path) {
  const auto file = OpenFile::open(path);  // names what is wrong before the library opens it
  if (!file) return tl::unexpected(file.error());
  auto found = library.find(path.string());
  if (!found) return tl::unexpected(std::move(found.error()));
  auto images = images_of(path.string(), std::move(found->images));
  if (!images) return tl::unexpected(std::move(images.error()));
  const std::int64_t count = images->images();
  const auto bytes = static_cast<std::uint64_t>(image_bytes()) * static_cast<std::uint64_t>(count);
  if (images->array.chunk.empty() &&
      (images->array.offset > file->size() || bytes > file->size() - images->array.offset))
    return fail(Errc::data, fmt::format("{}: truncated: '{}' has {} bytes from byte {} on, and the file {}",
                                        path.string(), images->array.name, bytes, images->array.offset, file->size()));
  if (!images->separate()) most_window_ = std::max(most_window_, count);
  const std::int64_t begin = size();
  begins_.push_back(begin);
  arrays_.push_back(*std::move(images));
  if (!options_.labels.empty()) {
    if (begin + count > static_cast<std::int64_t>(listed_labels_.size()))
      return fail(Errc::data, fmt::format("{}: {} labels are fewer than the images of {} and the files before it",
                                          options_.labels.string(), listed_labels_.size(), path.string()));
    return add_labels(options_.labels.string(), listed_labels_, begin, count);
  }
  if (!found->labels)
    return fail(Errc::data, fmt::format("{}: it has no labels beside the images, and there is no train_labels.npy (or "
                                        "test_labels.npy, val_labels.npy) in data.path or its folder labels",
                                        path.string()));
  if (found->labels->shape[0] != count)
    return fail(Errc::data, fmt::format("{}: {} labels ('{}') for {} images", path.string(), found->labels->shape[0],
                                        found->labels->name, count));
  const auto labels = read_integers(path.string(), *found->labels);
  if (!labels) return tl::unexpected(labels.error());
  return add_labels(path.string(), *labels, 0, count);
}

Result<std::shared_ptr<const HickleFiles>> HickleFiles::open(const HickleFilesOptions& options) {
  const auto library = array_library();
  if (!library) return tl::unexpected(library.error());
  std::shared_ptr<HickleFiles> source(new HickleFiles(options));
  if (!options.labels.empty()) {
    auto labels = read_npy_integers(options.labels);
    if (!labels) return tl::unexpected(std::move(labels.error()));
    source->listed_labels_ = *std::move(labels);
  }
  for (const auto& file : options.files)
    if (auto added = source->add(**library, file); !added) return tl::unexpected(added.error());
  std::vector<std::int64_t>().swap(source->listed_labels_);
  source->block_images_ = std::max<std::int64_t>(1, options.block_bytes / source->image_bytes());
  source->most_window_ = std::min(source->most_window_, source->block_images_);
  return source;
}

std::size_t HickleFiles::file_of(std::int64_t index) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, index) - begins_.begin()) - 1;
}

std::string HickleFiles::where(std::int64_t index) const {
  const std::size_t file = file_of(index);
  return fmt::format("{}: record {}", options_.files[file].string(), index - begins_[file]);
}

Result<std::int32_t> HickleFiles::label(std::int64_t index) const {
  return labels_.at(static_cast<std::size_t>(index));
}

Result<BlockCache::Block> HickleFiles::block_of(std::size_t file, std::int64_t block) const {
  return cache_.get({file, block}, [&]() -> Result<BlockCache::Bytes> {
    const std::int64_t first = block * block_images_;
    const std::int64_t count = std::min(block_images_, arrays_[file].images() - first);
    BlockCache::Bytes bytes(static_cast<std::size_t>(count * image_bytes()));
    if (auto read = read_images(options_.files[file].string(), arrays_[file], first, count, bytes); !read)
      return tl::unexpected(read.error());
    return bytes;
  });
}

Result<std::int32_t> HickleFiles::fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
  const std::size_t file = file_of(index);
  const std::int64_t record = index - begins_[file];
  bytes.resize(static_cast<std::size_t>(image_bytes()));
  const auto placed = [&](const core::Error& error) {
    return fail(error.code, fmt::format("{} (record {})", error.message, record));
  };
  if (arrays_[file].separate()) {
    if (auto read = read_images(options_.files[file].string(), arrays_[file], record, 1, bytes); !read)
      return placed(read.error());
    return label(index);
  }
  const auto block = block_of(file, record / block_images_);
  if (!block) return placed(block.error());
  std::memcpy(bytes.data(), (*block)->data() + record % block_images_ * image_bytes(), bytes.size());
  return label(index);
}

}  // namespace troupe::data
