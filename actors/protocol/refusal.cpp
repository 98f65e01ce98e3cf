#include "actors/protocol/refusal.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace troupe::actors {

namespace {

constexpr std::size_t kLongestText = 2000;
constexpr std::size_t kMostNames = 4096;  // senders that are counted

}  // namespace

std::optional<std::string> RefusalCount::add(const std::string& who, const std::string& why) {
  if (counts_.size() >= kMostNames && !counts_.contains(who)) return {};
  const auto count = ++counts_[who];
  if (!std::has_single_bit(count)) return {};
  const auto times = count > 1 ? fmt::format(" ({} times so far)", count) : std::string{};
  return fmt::format("a message from {} was refused: {}{}", who, one_line(why), times);
}

bool RefusalCount::enough(const std::string& who) const {
  const auto found = counts_.find(who);
  return found != counts_.end() && found->second % kMost == 0;
}

std::string one_line(const std::string& text) {
  auto line = text.substr(0, kLongestText);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  return line;
}

}  // namespace troupe::actors
