#include "transport/net/refusal.hpp"

#include <algorithm>

namespace troupe::transport {

namespace {

constexpr std::size_t kLongestText = 256;

}  // namespace

std::string printable_text(std::span<const std::byte> bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kLongestText));
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace troupe::transport
