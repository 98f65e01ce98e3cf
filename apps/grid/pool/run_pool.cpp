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
constexpr int kMostLosses = 5;  // of nodes under one run: then the run is what ends them

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

}  // namespace

Result<std::unique_ptr<RunPool>> RunPool::make(PoolOptions options) {
  std::error_code error;
  auto scratch = (fs::temp_directory_path(error) / "troupe-grid-XXXXXX").string();
  if (error || ::mkdtemp(scratch.data()) == nullptr)
    return tl::unexpected(core::from_errno(error ? error.value() : errno, "create", scratch));
  return std::unique_ptr<RunPool>(new RunPool(std::move(options), std::move(scratch)));
}

RunPool::RunPool(PoolOptions options, std::string scratch)
    : options_(std::move(options)), scratch_(std::move(scratch)), children_(options_.executable, scratch_) {
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
  std::vector<std::string> arguments{"train", "--json", "--plain"};  // progress_of() reads its progress
  if (!directory.empty()) {
    const bool elsewhere = !slot->nodes.empty() && latest_[id] != slot;
    arguments.insert(arguments.end(), {"--resume", directory});
    if (options_.replan || elsewhere) arguments.emplace_back("--replan");
  } else {
    const auto config = fmt::format("{}/{}.toml", scratch_, id);
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
  running_[id] = {options_.clock->now(), directory, slot};
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
  run_status.summary = first_line(end.out);
  if (run_status.status != Status::done) run_status.error = error_of(end.err, end.exit_code);
  const auto json = nlohmann::json::parse(run_status.summary, nullptr, false);
  run_status.directory = json.is_object() ? json.value("run", "") : running.directory;
  if (loses_nodes(running, ended, json.is_object())) return ended;

  if (ended.resumed && run_status.status == Status::failed) {
    const bool for_good =
        end.exit_code == core::exit_code(core::Errc::config) || end.exit_code == core::exit_code(core::Errc::corrupt);
    // Another process may have been faster.
    if (auto now = run_status_of(run_status.directory); now.status == Status::running) {
      run_status = std::move(now);
      return ended;
    }
    // The directory's contents belong to the user: the run never begins anew in its place.
    if (for_good)
      run_status.error +=
          fmt::format(" (what it has reached stays in {}; remove that directory to begin anew)", run_status.directory);
  }
  if (run_status.status == Status::done && run_status.directory.empty()) {
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
  const bool lost = !slot.nodes.empty() && ended.status.exit_code == core::exit_code(core::Errc::peer_lost);
  if (!lost || began) {
    useful_ = options_.clock->now();
    slot.patience = {};
  }
  if (!lost || (began && ++losses_[ended.id] > kMostLosses)) return false;
  slot.patience = std::clamp(2 * slot.patience, kFirstPatience, kMostPatience);
  slot.free_at = options_.clock->now() + slot.patience;
  ended.nodes_lost = true;
  auto error = fmt::format("{}: {}", slot.nodes, ended.status.error);
  auto now = ended.status.directory.empty() ? RunStatus{} : run_status_of(ended.status.directory);
  if (now.status == Status::waiting) now.directory.clear();  // without a checkpoint it begins anew
  ended.status = std::move(now);
  ended.status.error = std::move(error);
  return true;
}

std::vector<RunPool::Position> RunPool::positions() const {
  std::vector<Position> all;
  for (const auto& [id, running] : running_)
    all.push_back(
        {id, core::seconds(options_.clock->now() - running.since), progress_of(children_.latest_error_output(id))});
  return all;
}

}  // namespace troupe::grid
