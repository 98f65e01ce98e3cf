#include "data/idx.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include "data/files/found.hpp"

namespace troupe::data {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using core::fail;
using core::Result;

constexpr std::uint32_t kImagesMagic = 0x00000803;  // unsigned bytes, three dimensions
constexpr std::uint32_t kLabelsMagic = 0x00000801;  // unsigned bytes, one dimension
constexpr std::uint32_t kLargestSide = 4096;        // pixels
constexpr std::uint32_t kLargestCount = 100'000'000;
constexpr std::size_t kReadAtOnce = std::size_t{1} << 22;  // bytes

/// A plain or gzipped file, read from front to back.
class ByteStream {
 public:
  static Result<ByteStream> open(const fs::path& path) {
    errno = 0;
    gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) return tl::unexpected(core::from_errno(errno != 0 ? errno : ENOMEM, "open", path.string()));
    gzbuffer(file, 1u << 18);
    return ByteStream(file, path.string());
  }
  ByteStream(ByteStream&& other) noexcept : file_(std::exchange(other.file_, nullptr)), path_(std::move(other.path_)) {}
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ByteStream& operator=(ByteStream&&) = delete;
  ~ByteStream() {
    if (file_ != nullptr) gzclose_r(file_);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Returns the bytes read: fewer than requested only at the end of the file.
  Result<std::size_t> read(std::uint8_t* to, std::size_t bytes) {
    std::size_t done = 0;
    while (done < bytes) {
      const auto want = static_cast<unsigned>(std::min(bytes - done, kReadAtOnce));
      errno = 0;
      const int got = gzread(file_, to + done, want);
      const int system_error = errno;
      int code = Z_OK;
      const char* text = gzerror(file_, &code);
      if (got < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR) {
        if (code == Z_ERRNO) return tl::unexpected(core::from_errno(system_error, "read", path_));
        if (code == Z_MEM_ERROR) return tl::unexpected(core::from_errno(ENOMEM, "decompress", path_));
        return fail(Errc::data,
                    fmt::format("{}: damaged or truncated gzip data after {} bytes ({}): fetch the file again", path_,
                                position_ + done + static_cast<std::size_t>(std::max(got, 0)), text));
      }
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    position_ += done;
    return done;
  }

 private:
  ByteStream(gzFile file, std::string path) : file_(file), path_(std::move(path)) {}
  gzFile file_;
  std::string path_;
  std::size_t position_ = 0;  // bytes, of the uncompressed data
};

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

/// The contents of one IDX file.
struct IdxFile {
  std::string path;
  std::vector<std::uint32_t> dimensions;
  std::vector<std::uint8_t> bytes;
};

Result<std::vector<std::uint32_t>> read_header(ByteStream& stream, std::uint32_t magic) {
  const std::size_t dimensions = magic & 0xff;
  std::array<std::uint8_t, 16> header{};
  const std::size_t size = 4 + 4 * dimensions;
  const auto got = stream.read(header.data(), size);
  if (!got) return tl::unexpected(got.error());
  if (*got >= 4 && big_endian(header.data()) != magic)
    return fail(Errc::data,
                fmt::format("{}: not an IDX file of {}: it begins with 0x{:08x}, expected 0x{:08x}", stream.path(),
                            magic == kImagesMagic ? "images" : "labels", big_endian(header.data()), magic));
  if (*got < size)
    return fail(Errc::data,
                fmt::format("{}: truncated: expected a header of {} bytes, found {}", stream.path(), size, *got));
  std::vector<std::uint32_t> result;
  for (std::size_t d = 0; d < dimensions; ++d) result.push_back(big_endian(header.data() + 4 + 4 * d));
  return result;
}

Result<void> check_dimensions(const std::string& path, const std::vector<std::uint32_t>& dimensions) {
  bool sane = dimensions[0] >= 1 && dimensions[0] <= kLargestCount;
  for (std::size_t d = 1; d < dimensions.size(); ++d)
    sane = sane && dimensions[d] >= 1 && dimensions[d] <= kLargestSide;
  if (sane) return {};
  return fail(Errc::data, fmt::format("{}: the header says {}: expected 1 to {} records{}", path,
                                      fmt::join(dimensions, " x "), kLargestCount,
                                      dimensions.size() > 1 ? fmt::format(" of at most {0} x {0}", kLargestSide) : ""));
}

Result<IdxFile> read_idx_file(const fs::path& path, std::uint32_t magic) {
  auto stream = ByteStream::open(path);
  if (!stream) return tl::unexpected(stream.error());
  auto dimensions = read_header(*stream, magic);
  if (!dimensions) return tl::unexpected(dimensions.error());
  if (auto ok = check_dimensions(stream->path(), *dimensions); !ok) return tl::unexpected(ok.error());
  std::uint64_t expected = 1;
  for (const auto d : *dimensions) expected *= d;

  IdxFile file{stream->path(), *dimensions, {}};
  // Grows in steps: a header that claims more than the file holds must not allocate that memory.
  while (file.bytes.size() < expected) {
    const std::size_t before = file.bytes.size();
    const auto step =
        static_cast<std::size_t>(std::min<std::uint64_t>(expected - before, std::max(kReadAtOnce, before)));
    file.bytes.resize(before + step);
    const auto got = stream->read(file.bytes.data() + before, step);
    if (!got) return tl::unexpected(got.error());
    if (*got < step) {
      const std::uint64_t found = before + *got;
      return fail(
          Errc::data,
          fmt::format("{}: truncated: expected {} records of {} bytes = {} bytes, found {} (record {} is incomplete)",
                      file.path, file.dimensions[0], expected / file.dimensions[0], expected, found,
                      found / (expected / file.dimensions[0])));
    }
  }
  std::uint8_t extra = 0;
  const auto more = stream->read(&extra, 1);
  if (!more) return tl::unexpected(more.error());
  if (*more != 0)
    return fail(Errc::data, fmt::format("{}: trailing bytes after {} records of {} bytes", file.path,
                                        file.dimensions[0], expected / file.dimensions[0]));
  return file;
}

Result<fs::path> find(const IdxOptions& options, const std::string& stem, const std::string& kind) {
  std::vector<std::string> names;
  for (const char* separator : {"-", "."})
    for (const char* suffix : {"", ".gz"})
      names.push_back(fmt::format("{}{}{}-ubyte{}", stem, separator, kind, suffix));
  for (const auto& name : names) {
    std::error_code ignored;
    if (const auto status = fs::status(options.directory / name, ignored);
        fs::exists(status) && !fs::is_directory(status))
      return options.directory / name;
  }
  const std::string directory = options.directory.empty() ? "." : options.directory.string();
  const auto what_to_do = options.fetchable ? how_to_fetch(options.name, directory)
                                            : "put the files there or set data.path to the directory that has them";
  return tl::unexpected(
      not_found(directory, fmt::format("data set '{}' is missing: no {} in {}{}: {}", options.name,
                                       fmt::join(names, ", "), directory, found_in(directory), what_to_do)));
}

Result<IdxFile> find_and_read(const IdxOptions& options, const std::string& stem, const std::string& kind,
                              std::uint32_t magic) {
  auto path = find(options, stem, kind);
  if (!path) return tl::unexpected(path.error());
  return read_idx_file(*path, magic);
}

Result<void> check_labels(const IdxFile& labels, std::int32_t classes) {
  for (std::size_t record = 0; record < labels.bytes.size(); ++record)
    if (labels.bytes[record] >= classes)
      return fail(Errc::data, fmt::format("{}: record {}: label {} is not in 0 ... {}", labels.path, record,
                                          labels.bytes[record], classes - 1));
  return {};
}

}  // namespace

Result<std::shared_ptr<const IdxDataset>> IdxDataset::open(const IdxOptions& options, Split split) {
  const std::string prefix = split == Split::train ? "train" : "t10k";
  auto images = find_and_read(options, prefix + "-images", "idx3", kImagesMagic);
  if (!images) return tl::unexpected(images.error());
  auto labels = find_and_read(options, prefix + "-labels", "idx1", kLabelsMagic);
  if (!labels) return tl::unexpected(labels.error());
  if (images->dimensions[0] != labels->dimensions[0])
    return fail(Errc::data, fmt::format("{} has {} images and {} has {} labels: they do not belong together",
                                        images->path, images->dimensions[0], labels->path, labels->dimensions[0]));
  if (auto ok = check_labels(*labels, options.classes); !ok) return tl::unexpected(ok.error());

  std::shared_ptr<IdxDataset> data(new IdxDataset);
  data->name_ = options.name;
  data->shape_ = {1, images->dimensions[1], images->dimensions[2]};
  data->classes_ = options.classes;
  data->pixels_ = std::move(images->bytes);
  data->labels_ = std::move(labels->bytes);
  if (options.limit > 0 && options.limit < data->size()) {
    data->labels_.resize(static_cast<std::size_t>(options.limit));
    data->pixels_.resize(static_cast<std::size_t>(options.limit * data->shape_.size()));
    data->pixels_.shrink_to_fit();
  }
  return data;
}

std::vector<std::string> IdxDataset::class_names() const {
  if (name_ != "fashion-mnist") return {};  // digits are their own names
  // Of the table in the data set's own README.
  return {"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"};
}

Result<std::int32_t> IdxDataset::read(std::int64_t index, std::span<std::uint8_t> pixels) const {
  const auto record = static_cast<std::size_t>(index);
  const auto bytes = static_cast<std::size_t>(shape_.size());
  if (index < 0 || record >= labels_.size() || pixels.size() != bytes)
    throw std::out_of_range(
        fmt::format("record {} of {} into {} of {} bytes", index, labels_.size(), pixels.size(), bytes));
  std::memcpy(pixels.data(), pixels_.data() + record * bytes, bytes);
  return labels_[record];
}

}  // namespace troupe::data
