#include "experiment/accounts/traffic.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "strategies/host/events.hpp"

namespace troupe::experiment {

std::string_view name(Purpose purpose) noexcept {
  static constexpr std::array<std::string_view, 5> kNames{"push", "pull", "exchange", "peer", "collective"};
  return kNames[static_cast<std::size_t>(purpose)];
}

Purpose purpose_of(strategies::Transfer transfer) noexcept {
  switch (transfer) {
    case strategies::Transfer::push: return Purpose::push;
    case strategies::Transfer::pull: return Purpose::pull;
    case strategies::Transfer::push_pull: return Purpose::exchange;
  }
  return Purpose::exchange;
}

void count(std::vector<Traffic>& rows, const Traffic& more) {
  const auto before = [](const Traffic& a, const Traffic& b) {
    return std::pair(a.purpose, a.member) < std::pair(b.purpose, b.member);
  };
  const auto place = std::lower_bound(rows.begin(), rows.end(), more, before);
  if (place != rows.end() && !before(more, *place))
    place->bytes += more.bytes;
  else
    rows.insert(place, more);
}

std::uint64_t total_bytes(const std::vector<Traffic>& rows) noexcept {
  std::uint64_t sum = 0;
  for (const auto& row : rows) sum += row.bytes;
  return sum;
}

}  // namespace troupe::experiment
