#include "nn/checkpoint/safetensors_header.hpp"

#include <limits>
#include <set>

#include <fmt/format.h>
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

}  // namespace

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
