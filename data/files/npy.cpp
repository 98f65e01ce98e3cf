#include "data/files/npy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "data/files/open_file.hpp"

namespace troupe::data {
namespace {

using core::Errc;
using core::fail;
using core::Result;

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kNpyMostHeader = 65'536;  // bytes
constexpr std::size_t kNpyAtOnce = 1 << 20;     // bytes

struct NpyHeader {
  std::string type;
  bool by_columns = false;
  std::vector<std::int64_t> shape;
};

/// The dictionary of a header.
class NpyHeaderText {
 public:
  explicit NpyHeaderText(std::string_view text) : text_(text) {}

  std::optional<NpyHeader> parse() {
    NpyHeader header;
    if (!skip("{")) return std::nullopt;
    bool type = false, order = false, shape = false;
    while (!skip("}")) {
      std::string key;
      if (!quoted(key) || !skip(":")) return std::nullopt;
      if (key == "descr" && quoted(header.type)) {
        type = true;
      } else if (key == "fortran_order" && truth(header.by_columns)) {
        order = true;
      } else if (key == "shape" && sides(header.shape)) {
        shape = true;
      } else {
        return std::nullopt;
      }
      skip(",");
    }
    return type && order && shape ? std::optional(header) : std::nullopt;
  }

 private:
  bool skip(std::string_view word) {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool quoted(std::string& value) {
    if (!skip("'")) return false;
    const auto end = text_.find('\'');
    if (end == text_.npos) return false;
    value = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool truth(bool& value) {
    value = skip("True");
    return value || skip("False");
  }
  bool sides(std::vector<std::int64_t>& shape) {
    constexpr std::size_t kMostSides = 32;
    if (!skip("(")) return false;
    while (!skip(")")) {
      skip("");
      std::int64_t side = -1;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), side);
      if (error != std::errc{} || side < 0 || shape.size() == kMostSides) return false;
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      shape.push_back(side);
      if (!skip(",") && !text_.starts_with(')')) return false;
    }
    return true;
  }

  std::string_view text_;
};

/// A file whose header has been read.
struct NpyFile {
  OpenFile file;
  NpyHeader header;
  std::uint64_t begin = 0;  // of the values
  std::uint64_t count = 0;  // of values

  static tl::unexpected<core::Error> bad(const OpenFile& file, std::string_view what) {
    return fail(Errc::data, fmt::format("{}: {}", file.path(), what));
  }

  static Result<NpyFile> open(const std::filesystem::path& path) {
    auto file = OpenFile::open(path);
    if (!file) return tl::unexpected(std::move(file.error()));
    std::array<std::uint8_t, 12> start{};  // of version 1 with the dictionary's first bytes
    if (auto read = file->read(0, start); !read) return tl::unexpected(read.error());
    if (std::memcmp(start.data(), kNpyMagic.data(), kNpyMagic.size()) != 0 || start[6] < 1 || start[6] > 3)
      return bad(*file, "not a file of numpy.save");
    const bool early = start[6] == 1;
    std::size_t length = start[8] | std::size_t{start[9]} << 8;
    if (!early) length |= std::size_t{start[10]} << 16 | std::size_t{start[11]} << 24;
    if (length > kNpyMostHeader) return bad(*file, fmt::format("a header of {} bytes", length));
    std::vector<std::uint8_t> text(length);
    const std::uint64_t at = early ? 10 : 12;
    if (auto read = file->read(at, text); !read) return tl::unexpected(read.error());
    auto header = NpyHeaderText({reinterpret_cast<const char*>(text.data()), text.size()}).parse();
    if (!header) return bad(*file, "a header that cannot be read: numpy.save an array of plain numbers");
    return NpyFile{*std::move(file), *std::move(header), at + length, 0};
  }

  /// Values have `bytes` each, and fill the rest of the file.
  Result<void> count_values(std::size_t bytes) {
    const std::uint64_t there = (file.size() - begin) / bytes;
    count = 1;
    for (const auto side : header.shape) {
      if (side != 0 && count > there / static_cast<std::uint64_t>(side)) return unfitting();
      count *= static_cast<std::uint64_t>(side);
    }
    return count * bytes == file.size() - begin ? Result<void>{} : unfitting();
  }

  Result<void> unfitting() const {
    return bad(file, fmt::format("{} bytes do not fit the shape that the header says", file.size()));
  }

  /// Hands each value's bytes to `take`.
  template <class Take>
  Result<void> read(std::size_t bytes, const Take& take) const {
    std::vector<std::uint8_t> buffer(std::min<std::uint64_t>(count * bytes, kNpyAtOnce));
    for (std::uint64_t done = 0; done < count * bytes; done += buffer.size()) {
      buffer.resize(std::min<std::uint64_t>(buffer.size(), count * bytes - done));
      if (auto got = file.read(begin + done, buffer); !got) return got;
      for (std::size_t at = 0; at < buffer.size(); at += bytes) take(buffer.data() + at);
    }
    return {};
  }
};

template <class Value>
Value npy_value(const std::uint8_t* bytes) {
  static_assert(std::endian::native == std::endian::little);
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

Result<std::vector<std::int64_t>> read_npy_integers(const std::filesystem::path& path) {
  auto npy = NpyFile::open(path);
  if (!npy) return tl::unexpected(std::move(npy.error()));
  const auto& [type, by_columns, shape] = npy->header;
  if ((type != "<i4" && type != "<i8") || shape.size() != 1)
    return NpyFile::bad(npy->file,
                        fmt::format("{} dimensions of '{}': labels have one, of int32 or int64", shape.size(), type));
  const bool wide = type == "<i8";
  const std::size_t bytes = wide ? 8 : 4;
  if (auto counted = npy->count_values(bytes); !counted) return tl::unexpected(counted.error());
  std::vector<std::int64_t> values;
  values.reserve(npy->count);
  const auto read = npy->read(bytes, [&](const std::uint8_t* at) {
    values.push_back(wide ? npy_value<std::int64_t>(at) : npy_value<std::int32_t>(at));
  });
  if (!read) return tl::unexpected(read.error());
  return values;
}

Result<NpyNumbers> read_npy_numbers(const std::filesystem::path& path) {
  auto npy = NpyFile::open(path);
  if (!npy) return tl::unexpected(std::move(npy.error()));
  const auto& [type, by_columns, shape] = npy->header;
  if ((type != "<f4" && type != "<f8") || by_columns)
    return NpyFile::bad(npy->file, fmt::format("'{}'{}: expected rows of float32 or float64", type,
                                               by_columns ? " in Fortran's order" : ""));
  const bool wide = type == "<f8";
  const std::size_t bytes = wide ? 8 : 4;
  if (auto counted = npy->count_values(bytes); !counted) return tl::unexpected(counted.error());
  NpyNumbers numbers{shape, {}};
  numbers.values.reserve(npy->count);
  const auto read = npy->read(bytes, [&](const std::uint8_t* at) {
    numbers.values.push_back(wide ? npy_value<double>(at) : static_cast<double>(npy_value<float>(at)));
  });
  if (!read) return tl::unexpected(read.error());
  return numbers;
}

}  // namespace troupe::data
