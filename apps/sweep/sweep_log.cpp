#include "apps/sweep/sweep_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/grid/results.hpp"
#include "core/text/read_text.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::apps {
namespace {

using OrderedJson = nlohmann::ordered_json;
using core::Errc;
using core::Result;

constexpr int kFormat = 2;

std::string_view name_of(SweepEvent::Kind kind) {
  switch (kind) {
    case SweepEvent::Kind::begin: return "begin";
    case SweepEvent::Kind::score: return "score";
    case SweepEvent::Kind::pause: return "pause";
    case SweepEvent::Kind::failed: break;
  }
  return "failed";
}

OrderedJson event_json(const SweepEvent& event) {
  if (event.kind == SweepEvent::Kind::pause) return {{"kind", name_of(event.kind)}, {"t", event.t}};
  OrderedJson json{
      {"kind", name_of(event.kind)}, {"t", event.t}, {"trial", event.step.trial}, {"rung", event.step.rung}};
  if (event.kind == SweepEvent::Kind::begin && event.step.rung == 0) {
    json["settings"] = OrderedJson::object();
    for (const auto& [key, value] : event.settings) json["settings"][key] = value;
  }
  if (event.kind == SweepEvent::Kind::score) {
    json["score"] = event.result.score ? OrderedJson(*event.result.score) : OrderedJson(nullptr);
    json["last"] = event.result.last;
    if (event.result.diverged_after) json["diverged_after"] = *event.result.diverged_after;
  }
  if (event.kind == SweepEvent::Kind::failed) json["error"] = event.error;
  return json;
}

SweepEvent event_of(const OrderedJson& json) {
  SweepEvent event;
  const auto kind = json.at("kind").get<std::string>();
  event.kind = kind == "begin"   ? SweepEvent::Kind::begin
               : kind == "score" ? SweepEvent::Kind::score
               : kind == "pause" ? SweepEvent::Kind::pause
                                 : SweepEvent::Kind::failed;
  event.t = json.at("t").get<double>();
  if (event.kind == SweepEvent::Kind::pause) return event;
  event.step = {json.at("trial").get<std::size_t>(), json.at("rung").get<std::size_t>()};
  if (json.contains("settings"))
    for (const auto& [key, value] : json["settings"].items())
      event.settings.emplace_back(key, value.get<std::string>());
  if (event.kind == SweepEvent::Kind::score) {
    if (!json.at("score").is_null()) event.result.score = json["score"].get<double>();
    event.result.last = json.at("last").get<bool>();
    if (json.contains("diverged_after")) event.result.diverged_after = json["diverged_after"].get<double>();
  }
  if (event.kind == SweepEvent::Kind::failed) event.error = json.at("error").get<std::string>();
  return event;
}

tl::unexpected<core::Error> damaged(const std::string& path, std::size_t line) {
  return core::fail(Errc::corrupt,
                    fmt::format("{}:{}: no line of a sweep; remove the sweep's directory, or what is from "
                                "this line on",
                                path, line));
}

std::string first_line(const SweepIdentity& identity) {
  return grid::one_line(
      {{"kind", "sweep"}, {"format", kFormat}, {"fingerprint", identity.fingerprint}, {"settings", identity.settings}});
}

/// Whether a log that begins with `first` is of this sweep. Throws as nlohmann::json, where it is no such line.
Result<void> check_first(const OrderedJson& first, const std::string& path, const SweepIdentity& identity) {
  const auto format = first.at("format").get<int>();
  if (format > kFormat)
    return core::fail(Errc::config,
                      fmt::format("{}: a later release of troupe has begun this sweep: go on with that one", path));
  const auto& fingerprint = first.at("fingerprint");
  const bool same =
      format == 1 ? fingerprint == identity.whole
                  : fingerprint == identity.fingerprint &&
                        are_same_settings(first.at("settings").get<std::vector<std::string>>(), identity.settings);
  if (same) return {};
  return core::fail(Errc::config,
                    fmt::format("{}: these runs were begun with other ranges, rungs, metric or settings: give the "
                                "sweep's file another name, or remove that directory",
                                path));
}

std::string path_in(const std::string& directory) { return directory + "/" + kSweepLog; }

/// The whole log; empty where there is none. A part of it would pass for a log whose last line is incomplete.
Result<std::string> text_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    if (error) return tl::unexpected(core::from_errno(error.value(), "read", path));
    return std::string();
  }
  return core::read_text("the sweep's log", path).map_error([](core::Error reason) {
    return core::Error{Errc::io, std::move(reason.message)};
  });
}

}  // namespace

Result<std::vector<SweepEvent>> read_sweep_log(const std::string& directory, const SweepIdentity& identity) {
  const auto path = path_in(directory);
  const auto text = text_of(path);
  if (!text) return tl::unexpected(text.error());
  return parse_sweep_log(*text, path, identity);
}

Result<std::vector<SweepEvent>> parse_sweep_log(std::string_view text, const std::string& path,
                                                const SweepIdentity& identity) {
  std::vector<SweepEvent> events;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    if (end == std::string_view::npos) break;  // a killed sweep's last line
    ++number;
    const auto json = OrderedJson::parse(text.substr(at, end - at), nullptr, false);
    at = end + 1;
    if (!json.is_object()) return damaged(path, number);
    try {
      if (number > 1) {
        events.push_back(event_of(json));
        continue;
      }
      if (json.at("kind") != "sweep") return damaged(path, number);
      if (auto same = check_first(json, path, identity); !same) return tl::unexpected(std::move(same.error()));
    } catch (const nlohmann::json::exception&) {
      return damaged(path, number);
    }
  }
  return events;
}

Result<SweepLog> SweepLog::open(const std::string& directory, const SweepIdentity& identity) {
  const auto path = path_in(directory);
  auto text = text_of(path);
  if (!text) return tl::unexpected(text.error());
  auto events = parse_sweep_log(*text, path, identity);
  if (!events) return tl::unexpected(std::move(events.error()));
  const auto first = first_line(identity);
  text->resize(text->rfind('\n') + 1);  // npos + 1 = 0
  if (!text->empty() && !text->starts_with(first)) {
    text->replace(0, text->find('\n') + 1, first);
    const std::array parts{std::as_bytes(std::span(*text))};
    if (auto replaced = nn::replace_file(nn::system_files(), directory, kSweepLog, parts); !replaced)
      return tl::unexpected(std::move(replaced.error()));
  }
  core::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) return tl::unexpected(core::from_errno(errno, "open", path));
  if (::ftruncate(file.get(), static_cast<off_t>(text->size())) != 0)
    return tl::unexpected(core::from_errno(errno, "truncate", path));
  SweepLog log(path, std::move(file));
  log.before_ = std::move(*events);
  if (text->empty())
    if (auto begun = log.write(first); !begun) return tl::unexpected(std::move(begun.error()));
  return log;
}

Result<void> SweepLog::append(const SweepEvent& event) { return write(grid::one_line(event_json(event))); }

Result<void> SweepLog::write(const std::string& line) {
  for (std::string_view rest = line; !rest.empty();) {
    const auto count = ::write(file_.get(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return tl::unexpected(core::from_errno(errno, "write", path_));
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  if (::fdatasync(file_.get()) != 0) return tl::unexpected(core::from_errno(errno, "write", path_));
  return {};
}

}  // namespace troupe::apps
