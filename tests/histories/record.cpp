#include "tests/histories/record.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/journal.hpp"
#include "experiment/directory/run_records.hpp"
#include "strategies/host/journal_codec.hpp"

namespace troupe::histories {

namespace fs = std::filesystem;
using experiment::RunRecordKind;
using nlohmann::json;

namespace {

core::Result<void> add(const core::JournalRecord& record, Segment& to) {
  if (strategies::is_worker_event(record.kind)) {
    const auto event = strategies::decode_worker_event(record);
    if (!event) return tl::unexpected(event.error());
    if (const auto* started = std::get_if<strategies::Started>(&event->event))
      to.entries.emplace_back(Begun{event->worker, started->step});
    if (const auto* done = std::get_if<strategies::StepDone>(&event->event))
      to.entries.emplace_back(Trained{event->worker, done->step});
    return {};
  }
  const auto kind = static_cast<RunRecordKind>(record.kind);
  if (kind == RunRecordKind::lease_granted || kind == RunRecordKind::lease_with_factor) {
    const auto granted = experiment::decode_lease(record);
    if (!granted) return tl::unexpected(granted.error());
    const auto& lease = granted->lease;
    to.entries.emplace_back(Granted{granted->worker, {lease.index, lease.epoch, lease.first, lease.count}});
  }
  if (kind == RunRecordKind::lost) {
    const auto lost = experiment::decode_lost(record);
    if (!lost) return tl::unexpected(lost.error());
    Lost entry{lost->worker, lost->again, {}};
    for (const auto& lease : lost->leases)
      entry.pieces.push_back({lease.index, lease.epoch, lease.first, lease.samples});
    to.entries.emplace_back(std::move(entry));
  }
  if (kind == RunRecordKind::end) to.closed = true;
  return {};
}

/// Reads the header of a checkpoint file (docs/formats/checkpoint.md): 8 bytes of length, then JSON.
core::Result<Start> read_start(const std::string& path) try {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t length = 0;
  for (int k = 0; k < 8; ++k) length |= static_cast<std::uint64_t>(file.get() & 0xff) << (8 * k);
  std::string header(std::min<std::uint64_t>(length, 16U << 20), '\0');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  const auto metadata = json::parse(header).at("__metadata__");
  const auto leases = json::parse(metadata.at("leases").get<std::string>());
  const auto totals = json::parse(metadata.at("totals").get<std::string>());
  Start start{.epoch = leases.at("epoch"),
              .next_lease = leases.at("next_index"),
              .free = {},
              .steps = totals.at("steps"),
              .samples = totals.at("samples"),
              .resumed = !metadata.contains("members")};
  for (const auto& range : leases.at("free")) start.free.emplace_back(range.at(0), range.at(1));
  return start;
} catch (const json::exception& e) {
  return core::fail(core::Errc::corrupt, path + ": " + e.what());
}

std::optional<double> number(const json& object, const char* key) {
  const auto value = object.at(key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

/// Every complete line as JSON; a line that is not JSON is an error.
core::Result<std::vector<json>> read_lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<json> lines;
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // still being written
    lines.push_back(json::parse(line, nullptr, false));
    if (lines.back().is_discarded())
      return core::fail(core::Errc::corrupt, fmt::format("{}: line {}: {}", path, lines.size(), line));
  }
  return lines;
}

std::string metrics(const std::string& run) { return run + "/metrics.jsonl"; }

}  // namespace

core::Result<std::vector<Segment>> read_segments(const std::string& run) {
  std::map<int, std::string> files;
  for (const auto& entry : fs::directory_iterator(run)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("journal-") && name.ends_with(".bin")) files.emplace(std::stoi(name.substr(8)), entry.path());
  }
  std::vector<Segment> segments;
  for (const auto& [number, path] : files) {
    const auto contents = core::read_journal(path);
    if (!contents) return tl::unexpected(contents.error());
    auto& segment = segments.emplace_back(Segment{.number = number});
    const auto start = fmt::format("{}/journal-{:04}.start.safetensors", run, number);
    if (fs::exists(start)) {
      auto read = read_start(start);
      if (!read) return tl::unexpected(read.error());
      segment.start = std::move(*read);
    }
    for (const auto& record : contents->records)
      if (auto added = add(record, segment); !added)
        return core::fail(core::Errc::corrupt, path + ": " + added.error().message);
  }
  return segments;
}

core::Result<std::vector<Reported>> read_reports(const std::string& run) try {
  const auto lines = read_lines(metrics(run));
  if (!lines) return tl::unexpected(lines.error());
  std::vector<Reported> sessions;
  for (const auto& line : *lines) {
    const std::string kind = line.at("kind");
    if (kind == "started") sessions.push_back({.from = line.at("epoch_position")});
    if (sessions.empty()) continue;
    if (kind == "ended") sessions.back().ended = true;
    if (kind != "epoch") continue;
    sessions.back().epochs.push_back({.epoch = line.at("epoch"),
                                      .steps = line.at("steps"),
                                      .train_loss = number(line.at("train"), "loss"),
                                      .test_loss = number(line.at("test"), "loss"),
                                      .images_per_s = number(line.at("train"), "images_per_s")});
  }
  return sessions;
} catch (const json::exception& e) {
  return core::fail(core::Errc::corrupt, metrics(run) + ": " + e.what());
}

Progress::Progress(const std::string& run) : file_(metrics(run)) {}

void Progress::look() {
  file_.clear();
  for (std::string part; std::getline(file_, part);) {
    line_ += part;
    if (file_.eof()) return;  // the rest of the line is still to come
    const auto line = json::parse(line_, nullptr, false);
    line_.clear();
    if (line.is_discarded()) continue;
    const std::string kind = line.value("kind", "");
    if (kind == "started") {
      ++sessions_;
      steps_.clear();
    }
    if (kind == "worker") steps_[line.value("worker", 0U)] = line.value("steps", std::uint64_t{0});
    if (kind == "epoch") epoch_ = line.value("epoch", 0U);
  }
}

std::uint64_t Progress::steps() const {
  std::uint64_t sum = 0;
  for (const auto& [worker, count] : steps_) sum += count;
  return sum;
}

std::vector<std::string> temporaries(const std::string& run) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(run))
    if (entry.path().filename().string().find(".tmp") != std::string::npos) found.push_back(entry.path());
  return found;
}

}  // namespace troupe::histories
