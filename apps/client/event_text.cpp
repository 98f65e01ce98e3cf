#include "apps/client/event_text.hpp"

#include <utility>

namespace troupe::apps {

bool EventText::take(char c) {
  const bool second = std::exchange(after_return_, c == '\r') && c == '\n';
  if (second) return false;  // of "\r\n"
  if (c == '\r' || c == '\n') return end_of_line();
  if (line_.size() < kLongest)
    line_ += c;
  else
    too_long_ = true;
  return false;
}

bool EventText::end_of_line() {
  const auto line = std::exchange(line_, {});
  if (line.empty()) {
    const bool whole = std::exchange(has_data_, false) && !too_long_;
    if (!whole) {
      kind_.clear();
      data_.clear();
    }
    too_long_ = false;
    return whole;
  }
  const auto colon = line.find(':');
  const auto field = std::string_view(line).substr(0, colon);
  auto value = colon == std::string::npos ? std::string_view() : std::string_view(line).substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    too_long_ = too_long_ || data_.size() + value.size() > kLongest;
    if (too_long_) value = {};
    if (has_data_ && !too_long_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (field == "event") {
    kind_ = value;
  } else if (field == "id" && value.find('\0') == value.npos) {
    id_ = value;
  }
  return false;
}

ServerEvent EventText::end() {
  ServerEvent event{.data = std::exchange(data_, {}), .id = id_};
  if (auto kind = std::exchange(kind_, {}); !kind.empty()) event.kind = std::move(kind);
  return event;
}

}  // namespace troupe::apps
