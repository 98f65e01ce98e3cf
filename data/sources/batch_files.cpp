#include "data/sources/batch_files.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "data/files/open_file.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using core::Result;

constexpr char kMagic[] = "TRPBATCH";
constexpr std::size_t kMagicBytes = 8;
constexpr std::uint32_t kVersion = 1;
constexpr std::int64_t kLabelBytes = 4;
constexpr std::int64_t kMostSide = 65'535;  // pixels
constexpr std::int64_t kMostImages = 1LL << 40;

template <class T>
void put(std::uint8_t* to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

template <class T>
T take(const std::uint8_t* from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(T{from[i]} << (8 * i));
  return value;
}

Result<BatchFileHeader> header_of(const OpenFile& file) {
  std::array<std::uint8_t, BatchFileHeader::kBytes> bytes{};
  if (auto read = file.read(0, bytes); !read) return tl::unexpected(read.error());
  if (std::memcmp(bytes.data(), kMagic, kMagicBytes) != 0 || take<std::uint32_t>(bytes.data() + 8) != kVersion)
    return fail(Errc::data, fmt::format("{}: not a batch file of version {}", file.path(), kVersion));
  BatchFileHeader header;
  for (std::size_t k = 0; k < 3; ++k) header.shape[k] = take<std::uint32_t>(bytes.data() + 12 + 4 * k);
  header.images = static_cast<std::int64_t>(take<std::uint64_t>(bytes.data() + 24));
  if (std::ranges::any_of(header.shape, [](auto side) { return side < 1 || side > kMostSide; }) || header.images < 1 ||
      header.images > kMostImages || header.image_bytes() > (1LL << 31))
    return fail(Errc::data, fmt::format("{}: the header says {} images of {} x {} x {}", file.path(), header.images,
                                        header.shape[0], header.shape[1], header.shape[2]));
  // By division: a product of absurd numbers could wrap around.
  const std::uint64_t body = file.size() - BatchFileHeader::kBytes;
  const auto each = static_cast<std::uint64_t>(kLabelBytes + header.image_bytes());
  if (body % each != 0 || body / each != static_cast<std::uint64_t>(header.images))
    return fail(Errc::data,
                fmt::format("{}: {} bytes do not fit a header that says {} images of {} x {} x {}", file.path(),
                            file.size(), header.images, header.shape[0], header.shape[1], header.shape[2]));
  return header;
}

}  // namespace

std::array<std::uint8_t, BatchFileHeader::kBytes> to_bytes(const BatchFileHeader& header) {
  std::array<std::uint8_t, BatchFileHeader::kBytes> bytes{};
  std::memcpy(bytes.data(), kMagic, kMagicBytes);
  put(bytes.data() + 8, kVersion);
  for (std::size_t k = 0; k < 3; ++k) put(bytes.data() + 12 + 4 * k, static_cast<std::uint32_t>(header.shape[k]));
  put(bytes.data() + 24, static_cast<std::uint64_t>(header.images));
  return bytes;
}

Result<void> BatchFiles::add(const std::filesystem::path& path) {
  const auto file = OpenFile::open(path);
  if (!file) return tl::unexpected(file.error());
  const auto header = header_of(*file);
  if (!header) return tl::unexpected(header.error());
  if (begins_.empty()) shape_ = header->shape;
  if (header->shape != shape_)
    return fail(Errc::data,
                fmt::format("{}: images of {} x {} x {}, and the first file's are {} x {} x {}", path.string(),
                            header->shape[0], header->shape[1], header->shape[2], shape_[0], shape_[1], shape_[2]));
  begins_.push_back(size());
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(header->images * kLabelBytes));
  if (auto read = file->read(BatchFileHeader::kBytes, bytes); !read) return read;
  for (std::int64_t record = 0; record < header->images; ++record) {
    const auto label =
        static_cast<std::int32_t>(take<std::uint32_t>(bytes.data() + static_cast<std::size_t>(record * kLabelBytes)));
    if (label < 0 || label >= options_.classes)
      return fail(
          Errc::data,
          fmt::format(
              "{}: record {}: label {} is not in 0 ... {}: the data set has {} classes (classes.txt, or data.classes)",
              path.string(), record, label, options_.classes - 1, options_.classes));
    labels_.push_back(label);
  }
  return {};
}

Result<std::shared_ptr<const BatchFiles>> BatchFiles::open(const BatchFilesOptions& options) {
  std::shared_ptr<BatchFiles> source(new BatchFiles);
  source->options_ = options;
  for (const auto& file : options.files)
    if (auto added = source->add(file); !added) return tl::unexpected(added.error());
  return source;
}

std::size_t BatchFiles::file_of(std::int64_t index) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, index) - begins_.begin()) - 1;
}

std::string BatchFiles::where(std::int64_t index) const {
  const std::size_t file = file_of(index);
  return fmt::format("{}: record {}", options_.files[file].string(), index - begins_[file]);
}

Result<std::int32_t> BatchFiles::label(std::int64_t index) const { return labels_.at(static_cast<std::size_t>(index)); }

Result<std::int32_t> BatchFiles::fetch(std::int64_t index, std::vector<std::uint8_t>& bytes) const {
  const std::size_t at = file_of(index);
  const auto file = OpenFile::open(options_.files[at]);
  if (!file) return tl::unexpected(file.error());
  const std::int64_t past = at + 1 < begins_.size() ? begins_[at + 1] : size();
  const std::int64_t image_bytes = shape_[0] * shape_[1] * shape_[2];
  bytes.resize(static_cast<std::size_t>(image_bytes));
  const std::int64_t offset = static_cast<std::int64_t>(BatchFileHeader::kBytes) + (past - begins_[at]) * kLabelBytes +
                              (index - begins_[at]) * image_bytes;
  if (const auto read = file->read(static_cast<std::uint64_t>(offset), bytes); !read)
    return tl::unexpected(of_record(read.error(), where(index)));
  return label(index);
}

}  // namespace troupe::data
