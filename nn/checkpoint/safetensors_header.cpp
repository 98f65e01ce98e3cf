#include "nn/checkpoint/safetensors_header.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "nn/hash.hpp"

namespace troupe::nn {
namespace {

/// More dimensions than tensor libraries support.
constexpr std::size_t kMaxRank = 64;

/// Receives the parser's events and accepts only the header's grammar; the first error stops the parser.
class HeaderReader {
 public:
  using Json = nlohmann::json;

  bool null() { return refuse("a null"); }
  bool boolean(bool) { return refuse("a boolean"); }
  bool number_integer(Json::number_integer_t) { return refuse("a negative number"); }
  bool number_float(Json::number_float_t, const Json::string_t&) { return refuse("a number that is not an integer"); }
  bool binary(Json::binary_t&) { return refuse("binary data"); }

  bool number_unsigned(Json::number_unsigned_t value) {
    if (state_ != State::numbers) return refuse("a number");
    if (value > static_cast<Json::number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
      return refuse("a number above 2^63");
    if (numbers_->size() == kMaxRank) return refuse("a list of more than 64 numbers");
    numbers_->push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(Json::string_t& value) {
    if (state_ == State::metadata) {
      if (!header_.metadata.emplace(key_, std::move(value)).second)
        return fail(fmt::format("metadata key \"{}\" twice", key_));
      return true;
    }
    if (state_ == State::entry && key_ == "dtype") {
      header_.entries.back().dtype = std::move(value);
      return true;
    }
    return refuse("a string");
  }

  bool start_object(std::size_t) {
    if (state_ == State::begin) return go(State::top);
    if (state_ != State::top) return refuse("a nested object");
    if (key_ == kMetadataKey) return go(State::metadata);
    header_.entries.push_back({key_, {}, {}, {}});
    entry_keys_.clear();
    return go(State::entry);
  }

  bool key(Json::string_t& name) {
    key_ = std::move(name);
    if (state_ == State::top && !names_.insert(key_).second) return fail(fmt::format("name \"{}\" twice", key_));
    if (state_ == State::entry) {
      if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
        return fail(fmt::format("unknown key \"{}\" in tensor \"{}\"", key_, header_.entries.back().name));
      if (!entry_keys_.insert(key_).second)
        return fail(fmt::format("key \"{}\" twice in tensor \"{}\"", key_, header_.entries.back().name));
    }
    return true;
  }

  bool end_object() {
    if (state_ == State::entry && entry_keys_.size() != 3)
      return fail(
          fmt::format("tensor \"{}\" without one of dtype, shape and data_offsets", header_.entries.back().name));
    return go(state_ == State::top ? State::end : State::top);
  }

  bool start_array(std::size_t) {
    if (state_ != State::entry || key_ == "dtype") return refuse("a list");
    auto& entry = header_.entries.back();
    numbers_ = key_ == "shape" ? &entry.shape : &entry.data_offsets;
    return go(State::numbers);
  }
  bool end_array() { return go(State::entry); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
    problem_ = fmt::format("not valid JSON near byte {}", position);
    return false;
  }

  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] Header& header() noexcept { return header_; }

 private:
  enum class State { begin, top, metadata, entry, numbers, end };

  bool go(State state) {
    state_ = state;
    return true;
  }
  bool fail(std::string why) {
    problem_ = std::move(why);
    return false;
  }
  bool refuse(std::string_view what) { return fail(fmt::format("{} where the format has none", what)); }

  State state_ = State::begin;
  std::string key_;  // the latest key; in JSON every value of an object has one before it
  std::set<std::string> names_;
  std::set<std::string> entry_keys_;
  std::vector<std::int64_t>* numbers_ = nullptr;
  Header header_;
  std::string problem_;
};

tl::unexpected<std::string> wrong(std::string why) { return tl::unexpected(std::move(why)); }

/// Tensors ordered by offset, without their data; together they must cover `data_bytes` exactly.
tl::expected<std::vector<TensorView>, std::string> place_tensors(std::vector<HeaderEntry> entries,
                                                                 std::uint64_t data_bytes) {
  std::ranges::sort(entries, {}, &HeaderEntry::data_offsets);
  std::vector<TensorView> tensors;
  tensors.reserve(entries.size());
  std::uint64_t end = 0;
  for (auto& entry : entries) {
    const auto from = static_cast<std::uint64_t>(entry.data_offsets[0]);
    const auto to = static_cast<std::uint64_t>(entry.data_offsets[1]);
    const auto dtype = parse_dtype(entry.dtype);
    if (!dtype) return wrong(in_tensor(entry.name, fmt::format("unknown dtype \"{}\"", entry.dtype)));
    if (from != end)
      return wrong(
          in_tensor(entry.name, fmt::format("its data starts at {}, the one before it ends at {}", from, end)));
    if (to < from || to > data_bytes)
      return wrong(
          in_tensor(entry.name, fmt::format("its data is [{}, {}) of {} bytes in the file", from, to, data_bytes)));
    const auto bytes = tensor_bytes(*dtype, entry.shape);
    if (bytes != to - from)
      return wrong(in_tensor(
          entry.name, fmt::format("its data has {} bytes, which is not {} {}", to - from, entry.dtype, entry.shape)));
    tensors.push_back({std::move(entry.name), *dtype, std::move(entry.shape), {}});
    end = to;
  }
  if (end != data_bytes)
    return wrong(fmt::format("the header describes {} bytes of data, the file holds {}", end, data_bytes));
  return tensors;
}

}  // namespace

std::string in_tensor(const std::string& name, const std::string& why) {
  return fmt::format("tensor \"{}\": {}", name, why);
}

std::optional<std::size_t> tensor_bytes(DType dtype, const std::vector<std::int64_t>& shape) noexcept {
  std::size_t bytes = byte_size(dtype);
  for (const auto extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes)) return std::nullopt;
  return bytes;
}

tl::expected<std::size_t, std::string> header_length(Bytes first, std::uint64_t file_bytes) {
  if (file_bytes < kLengthBytes)
    return wrong(fmt::format("{} bytes are too few for a safetensors file: it was cut off", file_bytes));
  std::uint64_t length = 0;
  std::memcpy(&length, first.data(), kLengthBytes);
  if (length > kMaxHeaderBytes)
    return wrong(fmt::format("a header of {} bytes is above the limit of {}: is it a safetensors file?", length,
                             kMaxHeaderBytes));
  if (length > file_bytes - kLengthBytes)
    return wrong(fmt::format("the header should have {} bytes, {} are there: it was cut off", length,
                             file_bytes - kLengthBytes));
  return static_cast<std::size_t>(length);
}

tl::expected<Contents, std::string> parse_contents(std::string_view head, std::uint64_t data_bytes,
                                                   Checksums checksums) {
  auto header = parse_header(head.substr(kLengthBytes));
  if (!header) return wrong("header: " + header.error());
  auto tensors = place_tensors(std::move(header->entries), data_bytes);
  if (!tensors) return wrong(tensors.error());
  Contents contents{std::move(*tensors), std::move(header->metadata)};
  const auto checksum = contents.metadata.find(std::string(kHeaderChecksumKey));
  if (checksum == contents.metadata.end()) {
    if (checksums == Checksums::required) return wrong("the header has no checksum: not written by troupe, or damaged");
    return contents;
  }
  const std::size_t position = header_checksum_position(head);
  if (position == std::string_view::npos || header_checksum(head, position) != checksum->second)
    return wrong("the header's checksum differs");
  contents.metadata.erase(checksum);
  contents.has_checksums = true;
  return contents;
}

tl::expected<void, std::string> take_checksum(Metadata& metadata, const std::string& tensor, const std::string& found) {
  const auto checksum = metadata.find(std::string(kTensorChecksumPrefix) + tensor);
  if (checksum == metadata.end()) return wrong(in_tensor(tensor, "it has no checksum"));
  if (found != checksum->second) return wrong(in_tensor(tensor, "its checksum differs"));
  metadata.erase(checksum);
  return {};
}

tl::expected<Header, std::string> parse_header(std::string_view json) {
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader))
    return tl::unexpected<std::string>(reader.problem());
  for (const auto& entry : reader.header().entries)
    if (entry.data_offsets.size() != 2)
      return tl::unexpected(
          fmt::format("tensor \"{}\": {} data offsets instead of 2", entry.name, entry.data_offsets.size()));
  return std::move(reader.header());
}

std::size_t header_checksum_position(std::string_view head) noexcept {
  // Inside any JSON string the quotes would be escaped, so this can only be the key itself.
  constexpr std::string_view kField = "\"xxh3\":\"";
  const std::size_t at = head.find(kField);
  if (at == std::string_view::npos || at + kField.size() + kChecksumDigits > head.size()) return std::string_view::npos;
  return at + kField.size();
}

std::string header_checksum(std::string_view head, std::size_t position) {
  std::string blank(head);
  blank.replace(position, kChecksumDigits, kChecksumDigits, '0');
  return hash128_hex(std::as_bytes(std::span(blank)));
}

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

}  // namespace troupe::nn
