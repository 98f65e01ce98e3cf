#include "apps/grid/status_index.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiment/directory/directory_lock.hpp"

namespace troupe::grid {
namespace {

namespace fs = std::filesystem;
using core::Errc;
using Json = nlohmann::json;

std::string first_line_of_file(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The last record of metrics.jsonl about a begin or an end of the run; null without one.
Json last_turn(const std::string& path) {
  std::ifstream file(path);
  Json last;
  for (std::string line; std::getline(file, line);) {
    if (line.find("\"kind\":\"started\"") == std::string::npos && line.find("\"kind\":\"ended\"") == std::string::npos)
      continue;
    if (auto json = Json::parse(line, nullptr, false); json.is_object()) last = std::move(json);
  }
  return last;
}

bool has_checkpoint(const std::string& run_directory) {
  std::error_code error;
  for (fs::directory_iterator entry(run_directory + "/checkpoints", error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".safetensors") return true;
  return false;
}

constexpr std::array kAll{Errc::usage,    Errc::config,        Errc::data,      Errc::corrupt,  Errc::io,
                          Errc::no_space, Errc::timeout,       Errc::peer_lost, Errc::internal, Errc::interrupted,
                          Errc::diverged, Errc::out_of_memory, Errc::program};
static_assert(kAll.size() == static_cast<std::size_t>(core::kLastErrc) + 1);

int exit_code_of(const std::string& code) {
  const auto found = std::ranges::find_if(kAll, [&](Errc candidate) { return core::name(candidate) == code; });
  return core::exit_code(found == kAll.end() ? Errc::internal : *found);
}

}  // namespace

std::string_view name(Status status) noexcept {
  switch (status) {
    case Status::waiting: return "waiting";
    case Status::done: return "done";
    case Status::diverged: return "diverged";
    case Status::failed: return "failed";
    case Status::interrupted: return "interrupted";
    case Status::running: return "running";
  }
  return "waiting";
}

core::Errc errc_of(int exit_code) noexcept {
  const auto found = std::ranges::find_if(kAll, [&](Errc code) { return core::exit_code(code) == exit_code; });
  return found == kAll.end() ? Errc::internal : *found;
}

Status status_of(int exit_code) noexcept {
  if (exit_code == 0) return Status::done;
  if (exit_code == core::exit_code(Errc::diverged)) return Status::diverged;
  if (exit_code == core::exit_code(Errc::interrupted)) return Status::interrupted;
  return Status::failed;
}

RunStatus run_status_of(const std::string& run_directory) {
  RunStatus run_status;
  run_status.directory = run_directory;
  if (const auto holder = experiment::DirectoryLock::holder(run_directory); holder && *holder) {
    run_status.status = Status::running;
    run_status.error = fmt::format("{} trains in {}", **holder, run_directory);
    return run_status;
  }
  run_status.summary = first_line_of_file(run_directory + "/summary.json");
  const auto turn = last_turn(run_directory + "/metrics.jsonl");
  const bool ended = turn.is_object() && turn.value("kind", "") == "ended";
  if (ended && turn["error"].is_null() && !run_status.summary.empty()) {
    run_status.status = Status::done;
    run_status.exit_code = 0;
    return run_status;
  }
  if (ended && turn["error"].is_object()) {
    run_status.exit_code = exit_code_of(turn["error"].value("code", ""));
    run_status.error = turn["error"].value("message", "");
    if (turn["error"].value("code", "") == core::name(Errc::diverged)) {
      run_status.status = Status::diverged;
      return run_status;
    }
  }
  run_status.status = has_checkpoint(run_directory) ? Status::interrupted : Status::waiting;
  return run_status;
}

core::Result<StatusIndex> read_status_index(const ResolvedGrid& grid) {
  return read_status_index(grid.directory, grid.runs, {});
}

core::Result<StatusIndex> read_status_index(const std::string& parent, std::span<const GridRun> runs,
                                            const std::vector<std::string>& unnamed) {
  StatusIndex status_index{std::vector<RunStatus>(runs.size()), {}};
  std::map<std::string, std::size_t> by_identity;
  for (std::size_t i = 0; i < runs.size(); ++i) by_identity[runs[i].identity] = i;

  std::vector<std::string> directories;
  std::error_code error;
  fs::directory_iterator entry(parent, error);
  if (error == std::errc::no_such_file_or_directory) return status_index;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code no_run;  // a file, or an unreadable directory
    if (fs::exists(entry->path() / "config.toml", no_run)) directories.push_back(entry->path().string());
  }
  if (error) return tl::unexpected(core::from_errno(error.value(), "list", parent));
  std::ranges::sort(directories);  // by time

  constexpr std::array kBest{Status::waiting, Status::failed,   Status::interrupted,
                             Status::running, Status::diverged, Status::done};
  const auto rank = [&](Status status) { return std::ranges::find(kBest, status) - kBest.begin(); };
  for (const auto& directory : directories) {
    const auto identity = identity_of(directory + "/config.toml", unnamed);
    const auto run = identity ? by_identity.find(*identity) : by_identity.end();
    if (run == by_identity.end()) {
      status_index.foreign.push_back(directory);
      continue;
    }
    auto run_status = run_status_of(directory);
    auto& best = status_index.statuses[run->second];
    if (rank(run_status.status) > 0 && rank(run_status.status) >= rank(best.status)) best = std::move(run_status);
  }
  return status_index;
}

}  // namespace troupe::grid
