#include "apps/top/values.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "experiment/report/console_text.hpp"

namespace troupe::apps {

std::string whole_text(std::optional<double> number) {
  constexpr double kMost = 1e15;
  if (!number || *number < 0 || *number > kMost) return "-";
  return report::grouped(static_cast<std::uint64_t>(*number));
}

std::string rate_value(std::optional<double> number) {
  constexpr double kWhole = 100, kTenths = 10;
  if (!number || *number < 0) return "-";
  if (*number >= kWhole) return whole_text(std::round(*number));
  return *number >= kTenths ? fmt::format("{:.1f}", *number) : fmt::format("{:.2f}", *number);
}

std::string percent_value(std::optional<double> share) {
  return share && std::abs(*share) < 1e6 ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

std::string seconds_value(std::optional<double> seconds) {
  constexpr double kMinute = 60, kHour = 3600, kMost = 1e12;
  if (!seconds || *seconds < 0 || *seconds > kMost) return "-";
  if (*seconds < kMinute) return fmt::format("{:.1f} s", *seconds);
  if (*seconds < kHour) return fmt::format("{:.1f} min", *seconds / kMinute);
  return fmt::format("{:.1f} h", *seconds / kHour);
}

std::string bytes_value(double bytes) {
  constexpr double kStep = 1000;
  constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= kStep && unit + 1 < kUnits.size(); ++unit) bytes /= kStep;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits.at(unit));
}

std::string time_value(const StateJson& moment) {
  const auto whole = number_at(moment, "wall_s");
  return report::clock_time((whole ? whole : number_at(moment, "t")).value_or(-1));
}

std::string loss_value(std::optional<double> loss) { return loss ? report::loss_text(*loss) : "-"; }

}  // namespace troupe::apps
