#include "sim/replay/result/verification.hpp"

#include <array>
#include <filesystem>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/read_text.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::replay {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

Json row_of(const SegmentVerification& found) {
  auto members = Json::object();
  for (const auto& [member, events] : found.members) members[member] = events;
  const auto& d = found.difference;
  return {
      {"segment", found.segment},
      {"bytes", found.bytes},
      {"hashes", found.hashes},
      {"complete", found.complete},
      {"members", members},
      {"difference", d ? Json{{"member", d->member}, {"event", d->event}, {"message", d->message}} : Json(nullptr)}};
}

SegmentVerification segment_of(const Json& row) {
  SegmentVerification found{.segment = row.at("segment"),
                            .bytes = row.at("bytes"),
                            .hashes = row.at("hashes"),
                            .complete = row.at("complete"),
                            .members = row.at("members")};
  if (const auto& d = row.at("difference"); !d.is_null())
    found.difference = Difference{d.at("member"), d.at("event"), d.at("message")};
  return found;
}

}  // namespace

std::string to_json(const std::vector<Verification>& replays) {
  auto rows = Json::array();
  for (const auto& replay : replays) {
    auto segments = Json::array();
    for (const auto& found : replay.segments) segments.push_back(row_of(found));
    rows.push_back({{"at", replay.at}, {"program", replay.program}, {"segments", segments}});
  }
  return Json{{"format", kFormat}, {"replays", rows}}.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

core::Result<std::vector<Verification>> parse_verifications(std::string_view text) try {
  const auto json = Json::parse(text);
  if (const auto format = json.at("format").get<int>(); format != kFormat)
    return core::fail(core::Errc::corrupt,
                      fmt::format("{} has format {}; this program reads {}", kReplayFile, format, kFormat));
  std::vector<Verification> replays;
  for (const auto& row : json.at("replays")) {
    Verification replay{.at = row.at("at"), .program = row.at("program")};
    for (const auto& segment : row.at("segments")) replay.segments.push_back(segment_of(segment));
    replays.push_back(std::move(replay));
  }
  return replays;
} catch (const nlohmann::json::exception& problem) {
  return core::fail(core::Errc::corrupt, fmt::format("{} is damaged: {}", kReplayFile, problem.what()));
}

SegmentFinding newest_of(const std::vector<Verification>& replays, std::int64_t segment, std::uint64_t bytes) {
  for (auto replay = replays.rbegin(); replay != replays.rend(); ++replay)
    for (const auto& found : replay->segments)
      if (found.segment == segment && found.bytes <= bytes) return {&*replay, &found};
  return {};
}

EventFinding newest_about(const std::vector<Verification>& replays, std::int64_t segment, std::uint64_t bytes,
                          std::string_view member, std::uint64_t event) {
  for (auto replay = replays.rbegin(); replay != replays.rend(); ++replay)
    for (const auto& found : replay->segments) {
      if (found.segment != segment || found.bytes > bytes) continue;
      if (const auto& d = found.difference; d && d->member == member && d->event == event) return {&*replay, true};
      const auto reached = found.members.find(std::string(member));
      if (reached != found.members.end() && event < reached->second) return {&*replay, false};
    }
  return {};
}

core::Result<void> remember(const std::string& run_directory, Verification found) {
  const auto path = run_directory + "/" + kReplayFile;
  std::vector<Verification> replays;
  if (std::error_code error; std::filesystem::exists(path, error)) {
    const auto text = core::read_text("result of replays", path);
    if (!text) return core::fail(core::Errc::io, text.error().message);
    auto earlier = parse_verifications(*text);
    if (!earlier)
      return core::fail(earlier.error().code, fmt::format("{}/{}: remove it, and the next replay writes it anew",
                                                          run_directory, earlier.error().message));
    replays = std::move(*earlier);
  }
  replays.push_back(std::move(found));
  if (replays.size() > kMostReplays)
    replays.erase(replays.begin(), replays.end() - static_cast<std::ptrdiff_t>(kMostReplays));
  auto text = to_json(replays);
  for (; text.size() > kMostReplayBytes && replays.size() > 1; text = to_json(replays)) replays.erase(replays.begin());
  const std::array parts{std::as_bytes(std::span(text))};
  return nn::replace_file(nn::system_files(), run_directory, kReplayFile, parts);
}

}  // namespace troupe::replay
