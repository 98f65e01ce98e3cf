#include "apps/grid/pool/run_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/grid/progress.hpp"

namespace troupe::grid {
namespace {

namespace fs = std::filesystem;
using core::Result;

constexpr core::Duration kFirstPatience = std::chrono::seconds(2);
constexpr core::Duration kMostPatience = std::chrono::seconds(60);
constexpr std::string_view kScratch = ".children-";  // begin of a pool's folder in the grid's directory
constexpr int kMostLosses = 5;                       // of nodes under one run: then the run is what ends them

/// The error of a failed child: its last line, without the program's name. A child that was killed has none, but lines of progress.
std::string error_of(const std::string& err, int exit_code) {
  const auto end = err.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const auto begin = err.rfind('\n', end);
  const auto line = err.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1);
  constexpr std::string_view kProgram = "troupe: ";
  if (line.starts_with(kProgram)) return line.substr(kProgram.size());
  constexpr int kSignalled = 128;
  if (!progress_of(line).empty() && exit_code > kSignalled)
    return fmt::format("killed by signal {}, at {}", exit_code - kSignalled, progress_of(line));
  return line;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Whether a run has reached the end that its records tell of since it had the summary `before`.
bool has_ended(const RunStatus& records, const std::string& before) {
  return (records.status == Status::done || records.status == Status::diverged) && records.summary != before;
}

}  // namespace

Result<std::unique_ptr<RunPool>> RunPool::make(PoolOptions options, std::string directory) {
  auto scratch = fmt::format("{}/{}XXXXXX", directory, kScratch);
  if (::mkdtemp(scratch.data()) == nullptr) return tl::unexpected(core::from_errno(errno, "create", scratch));
  return std::unique_ptr<RunPool>(new RunPool(std::move(options), std::move(directory), std::move(scratch)));
}

void RunPool::remove_leftovers(const std::string& directory) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().starts_with(kScratch)) leftovers.push_back(entry->path());
  for (const auto& leftover : leftovers) fs::remove_all(leftover, error);
}

RunPool::RunPool(PoolOptions options, std::string directory, std::string scratch)
    : options_(std::move(options)),
      directory_(std::move(directory)),
      scratch_(std::move(scratch)),
      children_(options_.executable, scratch_) {
  for (const auto& nodes : options_.slots) slots_.push_back({nodes});
  useful_ = options_.clock->now();
}

RunPool::~RunPool() {
  std::error_code ignored;
  fs::remove_all(scratch_, ignored);
}

RunPool::Slot* RunPool::free_slot() {
  const auto found = std::ranges::find_if(
      slots_, [now = options_.clock->now()](const Slot& slot) { return !slot.run && slot.free_at <= now; });
  return found == slots_.end() ? nullptr : &*found;
}

bool RunPool::has_room() const { return const_cast<RunPool*>(this)->free_slot() != nullptr; }

bool RunPool::is_hopeless() const {
  const auto unused = [](const Slot& slot) { return !slot.run && slot.patience > core::Duration{}; };
  return std::ranges::all_of(slots_, unused) && core::seconds(options_.clock->now() - useful_) > kSavingDeadline_s;
}

Result<void> RunPool::begin(std::size_t id, const GridRun& run, const std::string& directory,
                            const std::vector<std::string>& overrides) {
  auto* const slot = free_slot();
  const auto directory_file = scratch_file(id, "directory");
  std::error_code ignored;
  fs::remove(directory_file, ignored);  // of an earlier session
  // progress_of() reads its progress
  std::vector<std::string> arguments{"train", "--json", "--plain", "--directory-file", directory_file};
  if (!directory.empty()) {
    const bool elsewhere = !slot->nodes.empty() && latest_[id] != slot;
    arguments.insert(arguments.end(), {"--resume", directory});
    if (options_.replan || elsewhere) arguments.emplace_back("--replan");
  } else {
    const auto config = scratch_file(id, "toml");
    if (!(std::ofstream(config) << run.settings.config.to_toml() << std::flush))
      return tl::unexpected(core::from_errno(errno, "write", config));
    arguments.push_back(config);
  }
  for (const auto& override_text : overrides) arguments.insert(arguments.end(), {"--set", override_text});
  if (!slot->nodes.empty()) {
    arguments.insert(arguments.end(), {"--nodes", slot->nodes});
    arguments.insert(arguments.end(), options_.node_arguments.begin(), options_.node_arguments.end());
  }
  if (auto started = children_.start(id, arguments); !started) return started;
  slot->run = id;
  latest_[id] = slot;
  running_[id] = {options_.clock->now(), directory, directory.empty() ? "" : run_status_of(directory).summary, slot};
  return {};
}

std::vector<RunPool::Ended> RunPool::wait(std::chrono::milliseconds patience, int wake_fd) {
  const int asked = options_.save_requests ? options_.save_requests->load() : 0;
  if (std::exchange(saves_, asked) != asked) signal(SIGUSR1);
  std::vector<Ended> all;
  for (auto& end : children_.wait(patience, wake_fd)) all.push_back(ended(std::move(end)));
  return all;
}

RunPool::Ended RunPool::ended(Children::End end) {
  const auto running = running_.extract(end.id).mapped();
  running.slot->run.reset();
  Ended ended{.id = end.id,
              .status = {},
              .seconds = core::seconds(options_.clock->now() - running.since),
              .resumed = !running.directory.empty()};
  auto& run_status = ended.status;
  run_status.exit_code = end.exit_code;
  run_status.status = status_of(end.exit_code);
  if (run_status.status != Status::done) run_status.error = error_of(end.err, end.exit_code);
  auto said = first_line(end.out);
  const auto json = nlohmann::json::parse(said, nullptr, false);
  const auto told = directory_told(end.id);
  if (json.is_object()) {
    run_status.directory = json.value("run", "");
    run_status.summary = std::move(said);
  } else {
    run_status.directory = running.directory.empty() ? told : running.directory;
  }
  // What a run says is lost where its output cannot be written, and its process may fail after its end. Its records say what it has come to.
  if (!told.empty() && (!json.is_object() || run_status.status == Status::failed))
    if (auto records = run_status_of(run_status.directory); has_ended(records, running.summary))
      run_status = std::move(records);
  if (loses_nodes(running, ended, json.is_object() || !told.empty())) return ended;

  if (run_status.status == Status::failed && !run_status.directory.empty()) {
    const bool for_good =
        end.exit_code == core::exit_code(core::Errc::config) || end.exit_code == core::exit_code(core::Errc::corrupt);
    // Another process may have been faster.
    if (auto now = run_status_of(run_status.directory); now.status == Status::running) {
      run_status = std::move(now);
      return ended;
    }
    // The directory's contents belong to the user: the run never begins anew in its place.
    if (ended.resumed && for_good)
      run_status.error +=
          fmt::format(" (what it has reached stays in {}; remove that directory to begin anew)", run_status.directory);
  }
  if (run_status.status == Status::done && run_status.summary.empty()) {
    run_status.status = Status::failed;
    run_status.error = "the run said nothing about its end";
  }
  // A bug also exits with 70: the run's records decide.
  if (run_status.status == Status::diverged &&
      (run_status.directory.empty() || run_status_of(run_status.directory).status != Status::diverged))
    run_status.status = Status::failed;
  if (run_status.status == Status::interrupted && run_status.directory.empty()) run_status.status = Status::waiting;
  return ended;
}

/// `began`: the run has trained in this session.
bool RunPool::loses_nodes(const Running& running, Ended& ended, bool began) {
  auto& slot = *running.slot;
  const bool silent = !slot.nodes.empty() && ended.status.exit_code == core::exit_code(core::Errc::peer_lost);
  auto now = silent && !ended.status.directory.empty() ? run_status_of(ended.status.directory) : RunStatus{};
  // The exit code is also that of a run whose directory another process has: no node is lost then.
  const bool lost = silent && now.status != Status::running;
  if (!lost || began) {
    useful_ = options_.clock->now();
    slot.patience = {};
  }
  if (!lost || (began && ++losses_[ended.id] > kMostLosses)) return false;
  slot.patience = std::clamp(2 * slot.patience, kFirstPatience, kMostPatience);
  slot.free_at = options_.clock->now() + slot.patience;
  if (has_ended(now, running.summary)) {  // the nodes were lost after it
    ended.status = std::move(now);
    return true;
  }
  ended.nodes_lost = true;
  auto error = fmt::format("{}: {}", slot.nodes, ended.status.error);
  if (now.status == Status::waiting) now.directory.clear();  // without a checkpoint it begins anew
  ended.status = std::move(now);
  ended.status.error = std::move(error);
  return true;
}

std::string RunPool::scratch_file(std::size_t id, std::string_view extension) const {
  return fmt::format("{}/{}.{}", scratch_, id, extension);
}

/// The directory in which the run has trained in this session; empty: it has not begun to.
std::string RunPool::directory_told(std::size_t id) const {
  std::ifstream file(scratch_file(id, "directory"));
  std::string line;
  if (!std::getline(file, line)) return {};
  return (fs::path(directory_) / fs::path(line).filename()).string();
}

std::vector<RunPool::Position> RunPool::positions() const {
  std::vector<Position> all;
  for (const auto& [id, running] : running_)
    all.push_back(
        {id, core::seconds(options_.clock->now() - running.since), progress_of(children_.latest_error_output(id))});
  return all;
}

}  // namespace troupe::grid
