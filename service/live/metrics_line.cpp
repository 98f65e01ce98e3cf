#include "service/live/metrics_line.hpp"

namespace troupe::service {

nlohmann::ordered_json metrics_line(std::string_view text) {
  using nlohmann::ordered_json;
  constexpr int kDeepest = 32;
  auto line = ordered_json::parse(
      text, [](int depth, ordered_json::parse_event_t, ordered_json&) { return depth < kDeepest; }, false);
  return line.is_object() ? line : ordered_json();
}

}  // namespace troupe::service
