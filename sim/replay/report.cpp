#include "sim/replay/report.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::replay {

namespace {

template <class T>
T sum(const std::vector<SegmentReport>& segments, T SegmentReport::*field) {
  T all = 0;
  for (const auto& segment : segments) all += segment.*field;
  return all;
}

std::string_view reason(bool has_all_ends) {
  return has_all_ends ? "no segment has the steps between (the journal was off, or could not be written)"
                      : "what came between was lost with the end of their records (a process was killed, or lost, "
                        "before it had written them)";
}

}  // namespace

void ReplayReport::note_before(const std::string& path, std::uint64_t from, std::uint64_t to, bool has_all_ends) {
  if (to <= from) return;
  unrecorded += to - from;
  notes.push_back({experiment::Note::Level::warning,
                   fmt::format("{}: it begins at step {}, and the segments before it end at step {}: {}", path, to,
                               from, reason(has_all_ends))});
}

void ReplayReport::note_after(const std::string& path, std::uint64_t from, std::uint64_t to, bool has_all_ends) {
  if (to <= from) return;
  unrecorded += to - from;
  notes.push_back(
      {experiment::Note::Level::warning, fmt::format("{}: the segments end at step {}, and the run at step {}: {}",
                                                     path, from, to, reason(has_all_ends))});
}

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

std::optional<ReplayReport::Recorded> ReplayReport::Recorded::of(std::string_view summary) try {
  const auto json = nlohmann::json::parse(summary);
  const auto number = [](const nlohmann::json& value) {
    return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
  };
  const auto& test = json.at("test");
  return Recorded{.test_loss = number(test.at("loss")),
                  .test_accuracy = number(test.at("accuracy")),
                  .steps = json.at("steps"),
                  .samples = json.at("samples"),
                  .center_hash = json.at("center_hash")};
} catch (const nlohmann::json::exception&) {
  return std::nullopt;  // a run that trains or was killed has none
}

std::string to_json(const ReplayReport& report) {
  auto line = experiment::to_json(report.summary);
  line.pop_back();  // the closing brace
  const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; };
  const auto recorded = report.recorded
                            ? fmt::format("{{\"test_loss\": {}, \"test_accuracy\": {}, \"center_hash\": \"{}\"}}",
                                          number(report.recorded->test_loss), number(report.recorded->test_accuracy),
                                          report.recorded->center_hash)
                            : "null";
  return line + fmt::format(
                    ", \"complete\": {}, \"segments\": {}, \"missing\": {}, \"unrecorded\": {}, \"events\": {}, "
                    "\"replayed\": {}, "
                    "\"hashes\": {}, \"recorded\": {}}}",
                    report.complete(), report.segments.size(), report.missing, report.unrecorded, report.events(),
                    report.replayed(), report.hashes(), recorded);
}

}  // namespace troupe::replay
