#include "service/live/metrics_line.hpp"

namespace troupe::service {

nlohmann::ordered_json metrics_line(std::string_view text) {
  using nlohmann::ordered_json;
  using Event = ordered_json::parse_event_t;
  constexpr int kDeepest = 32, kMostKeys = 4096;
  constexpr std::size_t kHarmless = 4096;  // bytes: whatever they say. Most lines are shorter, and parsed faster so
  int keys = 0;
  const auto keeps = [&keys](int depth, Event event, ordered_json&) {
    return depth < kDeepest && (event != Event::key || ++keys <= kMostKeys);
  };
  auto line =
      text.size() <= kHarmless ? ordered_json::parse(text, nullptr, false) : ordered_json::parse(text, keeps, false);
  return line.is_object() ? line : ordered_json();
}

}  // namespace troupe::service
