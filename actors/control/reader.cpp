#include "actors/control/reader.hpp"

namespace troupe::actors {

namespace {

constexpr std::size_t kNodeBytes = 4 + caf::node_id::default_data::host_id_size;  // process and host
constexpr std::string_view kNoTypes = "@<>";

}  // namespace

bool ValueReader::skip(std::size_t count) noexcept {
  if (count > rest_.size()) return false;
  rest_ = rest_.subspan(count);
  return true;
}

bool ValueReader::length(std::size_t& count) noexcept {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    std::uint8_t byte = 0;
    if (shift > 28 || !number(byte)) return false;
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) break;
  }
  count = value;
  return count <= rest_.size();
}

bool ValueReader::text(std::string& value) {
  std::size_t count = 0;
  if (!length(count)) return false;
  value.assign(rest_.data(), count);
  return skip(count);
}

bool ValueReader::node(std::string& value) {
  const auto begin = rest_;
  std::uint64_t kind = 0;
  if (!number(kind)) return false;
  value.clear();
  if (kind == static_cast<std::uint64_t>(caf::atom(""))) return true;
  if (kind != static_cast<std::uint64_t>(caf::node_id::default_data::class_id) || !skip(kNodeBytes)) return false;
  value.assign(begin.data(), begin.size() - rest_.size());
  return true;
}

bool ValueReader::plain_error() {
  std::uint8_t code = 0;
  std::uint64_t category = 0;
  std::string types, words;
  if (!number(code) || !number(category) || !signature(types)) return false;
  return types == kNoTypes || (types == "@<>+@str" && text(words));
}

bool ValueReader::signature(std::string& names) {
  std::uint16_t type = 0;
  return number(type) && type == 0 && text(names) && names.starts_with(kNoTypes);
}

}  // namespace troupe::actors
