#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "apps/top/screen.hpp"
#include "apps/top/values.hpp"
#include "core/text/plural.hpp"
#include "experiment/report/console_text.hpp"

namespace troupe::apps {
namespace {

using report::Style;

/// Of a line of the state's `members`.
struct Shown {
  const char* text = "";
  Style style = Style::plain;
  bool is_member = true;
};
Shown shown(const std::string& event) {
  if (event == "lost") return {"lost", Style::red, false};
  if (event == "absent") return {"not there yet", Style::yellow, false};
  if (event == "silent") return {"silent", Style::yellow, true};
  if (event == "heard") return {"heard again", Style::plain, true};
  return {"takes part", Style::plain, true};
}

/// The last event of each worker in this session. A worker without one has taken part since it began.
std::map<std::uint64_t, const StateJson*> last_events(const StateJson& state) {
  std::map<std::uint64_t, const StateJson*> last;
  for (const auto& event : list_at(state, "members")) {
    if (text_at(event, "event") == "started")
      last.clear();
    else if (number_at(event, "worker"))
      last[count_at(event, "worker")] = &event;
  }
  return last;
}

/// Bytes by purpose, of all workers in this session.
std::map<std::string, double> traffic_of(const StateJson& state) {
  std::map<std::string, double> bytes;
  for (const auto& worker : list_at(state, "workers"))
    for (const auto& part : list_at(worker, "traffic"))  // [purpose, member, bytes]
      if (part.is_array() && part.size() == 3 && part[0].is_string() && part[2].is_number())
        bytes[part[0].get<std::string>()] += std::max(part[2].get<double>(), 0.0);
  return bytes;
}

}  // namespace

std::vector<ScreenRow> member_rows(const StateJson& state) {
  constexpr std::size_t kWorker = 6, kState = 13, kTime = 9;
  const auto last = last_events(state);
  const auto count = [&](bool members) {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        last, [&](const auto& one) { return shown(text_at(*one.second, "event")).is_member == members; }));
  };
  const auto reported = static_cast<std::uint64_t>(std::ranges::count_if(
      list_at(state, "workers"), [&](const auto& worker) { return !last.contains(count_at(worker, "worker")); }));
  const auto members = reported + count(true);
  std::vector<ScreenRow> rows;
  rows.emplace_back(fmt::format("{} {} part{}", core::counted(members, "worker"), core::noun(members, "takes", "take"),
                                count(false) > 0 ? fmt::format(", {} not", count(false)) : ""),
                    Style::dim);
  for (const auto& [worker, event] : last) {
    const auto [text, style, is_member] = shown(text_at(*event, "event"));
    auto& row = rows.emplace_back();
    row.cell(fmt::format("{}", worker), kWorker).add("  ").cell(text, kState, false, style);
    row.cell(time_value(*event), kTime);
    for (const auto* key : {"node", "reason"})
      if (const auto said = text_at(*event, key); !said.empty()) row.add("  " + said);
  }
  return rows;
}

std::vector<ScreenRow> traffic_rows(const StateJson& state) {
  constexpr std::size_t kPurpose = 12, kBytes = 12, kShare = 8;
  const auto bytes = traffic_of(state);
  std::vector<ScreenRow> rows;
  rows.emplace_back("bytes by purpose, of all workers", Style::dim);
  double all = 0;
  for (const auto& [purpose, sum] : bytes) all += sum;
  for (const auto& [purpose, sum] : bytes) {
    auto& row = rows.emplace_back();
    row.cell(purpose, kPurpose, false).cell(bytes_value(sum), kBytes);
    row.cell(percent_value(all > 0 ? sum / all : 0), kShare);
  }
  if (bytes.empty()) rows.emplace_back("none so far", Style::dim);
  return rows;
}

}  // namespace troupe::apps
