#include "sim/replay/report.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace troupe::replay {

namespace {

template <class T>
T sum(const std::vector<SegmentReport>& segments, T SegmentReport::*field) {
  T all = 0;
  for (const auto& segment : segments) all += segment.*field;
  return all;
}

}  // namespace

bool ReplayReport::complete() const noexcept {
  return missing == 0 && unrecorded == 0 && !segments.empty() &&
         std::ranges::all_of(segments, &SegmentReport::complete);
}
std::size_t ReplayReport::events() const noexcept { return sum(segments, &SegmentReport::events); }
std::size_t ReplayReport::replayed() const noexcept { return sum(segments, &SegmentReport::replayed); }
std::uint64_t ReplayReport::hashes() const noexcept { return sum(segments, &SegmentReport::hashes); }

core::Result<void> ReplayReport::check() const {
  if (replayed() > 0 && (hashes() > 0 || !same_numbers)) return {};
  const bool is_cut = !std::ranges::all_of(segments, &SegmentReport::complete);
  return core::fail(core::Errc::corrupt,
                    fmt::format("{}: nothing was verified: {} of {} events were replayed{}{}", summary.run, replayed(),
                                events(), same_numbers ? ", and no hash was compared" : "",
                                is_cut ? "; the journal is cut off: its file was cut, or its writer was killed" : ""));
}

std::string to_json(const ReplayReport& report) {
  auto line = experiment::to_json(report.summary);
  line.pop_back();  // the closing brace
  return line + fmt::format(
                    ", \"complete\": {}, \"segments\": {}, \"missing\": {}, \"unrecorded\": {}, \"events\": {}, "
                    "\"replayed\": {}, "
                    "\"hashes\": {}}}",
                    report.complete(), report.segments.size(), report.missing, report.unrecorded, report.events(),
                    report.replayed(), report.hashes());
}

}  // namespace troupe::replay
