#include "apps/grid/run_grid.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/grid/children.hpp"
#include "apps/grid/forecast.hpp"
#include "apps/grid/results.hpp"
#include "core/file_descriptor.hpp"
#include "experiment/directory/directory_lock.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::grid {
namespace {

namespace fs = std::filesystem;
using core::Result;

constexpr auto kTick = std::chrono::milliseconds(500);
/// After an interrupt a run finishes its steps and writes a checkpoint; after this time it counts as hung and is killed. An otherwise idle
/// grid waits equally long for runs of other processes: runs of a killed grid save and end within it.
constexpr double kSavingDeadline_s = 600;

class Scratch {
 public:
  Scratch() {
    std::error_code error;
    path_ = (fs::temp_directory_path(error) / "troupe-grid-XXXXXX").string();
    made_ = !error && ::mkdtemp(path_.data()) != nullptr;
    error_ = error ? error.value() : errno;
  }
  ~Scratch() {
    std::error_code ignored;
    if (made_) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Result<void> good() const {
    if (made_) return {};
    return tl::unexpected(core::from_errno(error_, "create", path_));
  }

 private:
  std::string path_;
  bool made_ = false;
  int error_ = 0;
};

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

class Session {
 public:
  Session(const ResolvedGrid& grid, const GridOptions& options, Progress& progress, const std::string& scratch,
          StatusIndex status_index)
      : grid_(grid),
        options_(options),
        progress_(progress),
        scratch_(scratch),
        statuses_(std::move(status_index.statuses)),
        forecast_(options.estimates_s, options.jobs),
        children_(options.executable, scratch) {
    for (std::size_t i = 0; i < statuses_.size(); ++i) {
      const auto& run_status = statuses_[i];
      if (run_status.status == Status::done) {
        if (const auto json = nlohmann::json::parse(run_status.summary, nullptr, false);
            json.is_object() && json.contains("wall_s") && json["wall_s"].is_number())
          forecast_.measured(i, json["wall_s"].get<double>());
      } else if (run_status.status == Status::running) {
        leave_to_others(i);
      } else if (run_status.status != Status::diverged) {
        waiting_.push_back(i);
      }
    }
  }

  Result<GridEnd> run(const std::stop_token& stop) {
    const core::FileDescriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const std::stop_callback on_stop(stop, [&] {
      constexpr std::uint64_t kOne = 1;
      [[maybe_unused]] const auto ignored = ::write(wake.get(), &kOne, sizeof kOne);
    });
    bool told = false;
    core::Duration told_at{};
    while (children_.count() > 0 || (!(waiting_.empty() && others_.empty()) && !stop.stop_requested())) {
      if (options_.save_requests && saves_ != options_.save_requests->load()) {
        saves_ = options_.save_requests->load();
        children_.signal(SIGUSR1);
      }
      if (!stop.stop_requested()) {
        look_at_others();
        if (auto begun = fill(); !begun) return tl::unexpected(std::move(begun.error()));
      } else if (!std::exchange(told, true)) {
        told_at = options_.clock->now();
        children_.signal(SIGINT);
        progress_.line("stopping: runs under way save a checkpoint; Ctrl-C again leaves without it");
        std::uint64_t count = 0;
        [[maybe_unused]] const auto ignored = ::read(wake.get(), &count, sizeof count);
      } else if (core::seconds(options_.clock->now() - told_at) > kSavingDeadline_s) {
        children_.signal(SIGKILL);
      }
      if (children_.count() == 0) {
        if (waiting_.empty() && !others_.empty() && !stop.stop_requested()) wait_for_others(wake.get());
        continue;  // or no child could be started
      }
      idle_since_.reset();
      progress_.tick(position());
      for (auto& end : children_.wait(kTick, wake.get())) record_end(std::move(end));
    }
    progress_.close();
    if (auto written = write_results(grid_, statuses_); !written) return tl::unexpected(std::move(written.error()));
    // A run that another process interrupted has no result either.
    const bool left =
        !waiting_.empty() || !others_.empty() || std::ranges::any_of(statuses_, [](const RunStatus& run_status) {
          return run_status.status == Status::interrupted || run_status.status == Status::waiting;
        });
    return GridEnd{std::move(statuses_), left};
  }

 private:
  Result<void> fill() {
    while (!waiting_.empty() && children_.count() < options_.jobs) {
      const auto run = waiting_.front();
      waiting_.pop_front();
      if (auto begun = begin(run); !begun) return begun;
    }
    return {};
  }

  /// Another process has the run's directory. Two processes must not train in it, and the run must not begin anew beside it.
  void leave_to_others(std::size_t i) {
    others_[i] = options_.clock->now();
    progress_.line(fmt::format("waiting for {}: {}", grid_.runs[i].name, statuses_[i].error));
  }

  /// Checks the runs of other processes for their ends: records a result, or queues the run to continue it.
  void look_at_others() {
    for (auto entry = others_.begin(); entry != others_.end();) {
      const auto [i, since] = *entry;
      auto run_status = run_status_of(statuses_[i].directory);
      if (run_status.status == Status::running) {
        ++entry;
        continue;
      }
      entry = others_.erase(entry);
      statuses_[i] = std::move(run_status);
      if (statuses_[i].status == Status::done || statuses_[i].status == Status::diverged)
        record(i, core::seconds(options_.clock->now() - since));
      else
        waiting_.push_front(i);
    }
  }

  /// Called when no other work is left.
  void wait_for_others(int wake) {
    const auto now = options_.clock->now();
    if (!idle_since_) idle_since_ = now;
    if (core::seconds(now - *idle_since_) <= kSavingDeadline_s) {
      pollfd woken{wake, POLLIN, 0};
      ::poll(&woken, 1, static_cast<int>(kTick.count()));
      return;
    }
    for (const auto& [i, since] : std::exchange(others_, {})) {
      statuses_[i].status = Status::failed;
      statuses_[i].exit_code = core::exit_code(core::Errc::timeout);
      statuses_[i].error += ": try again when it has ended";
      record(i, core::seconds(now - since));
    }
  }

  Result<void> begin(std::size_t i) {
    const auto& run = grid_.runs[i];
    const bool resume = statuses_[i].status == Status::interrupted;
    std::vector<std::string> arguments{"train", "--json", "--plain"};  // progress_of() reads its progress
    if (resume) {
      arguments.insert(arguments.end(), {"--resume", statuses_[i].directory});
      if (options_.replan) arguments.emplace_back("--replan");
    } else {
      const auto config = fmt::format("{}/{}.toml", scratch_, i);
      if (!(std::ofstream(config) << run.settings.config.to_toml() << std::flush))
        return tl::unexpected(core::from_errno(errno, "write", config));
      arguments.push_back(config);
    }
    if (auto started = children_.start(i, arguments); !started) return started;
    running_[i] = {options_.clock->now(), resume};
    progress_.began(run, resume);
    return {};
  }

  void record_end(Children::End end) {
    const auto [since, resumed] = running_.extract(end.id).mapped();
    const double seconds = core::seconds(options_.clock->now() - since);
    RunStatus run_status;
    run_status.exit_code = end.exit_code;
    run_status.status = status_of(end.exit_code);
    run_status.summary = first_line(end.out);
    if (run_status.status != Status::done) run_status.error = error_of(end.err, end.exit_code);
    if (const auto json = nlohmann::json::parse(run_status.summary, nullptr, false); json.is_object())
      run_status.directory = json.value("run", "");
    else if (resumed)
      run_status.directory = statuses_[end.id].directory;

    if (resumed && run_status.status == Status::failed) {
      const bool for_good =
          end.exit_code == core::exit_code(core::Errc::config) || end.exit_code == core::exit_code(core::Errc::corrupt);
      // Another process may have been faster.
      if (auto now = run_status_of(run_status.directory); now.status == Status::running) {
        statuses_[end.id] = std::move(now);
        return leave_to_others(end.id);
      }
      // The directory's contents belong to the user: the grid never begins the run anew in its place.
      if (for_good)
        run_status.error += fmt::format(" (what it has reached stays in {}; remove that directory to begin anew)",
                                        run_status.directory);
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
    if (run_status.status == Status::done && !resumed) forecast_.measured(end.id, seconds);
    statuses_[end.id] = std::move(run_status);
    record(end.id, seconds);
  }

  /// Reports a run's status and writes the results.
  void record(std::size_t i, double seconds) {
    progress_.ended(grid_.runs[i], statuses_[i], seconds, position());
    if (auto written = write_results(grid_, statuses_); !written)
      progress_.line("results are not written for now: " + written.error().message);
  }

  [[nodiscard]] GridPosition position() const {
    GridPosition position;
    position.runs = grid_.runs.size();
    for (const auto& run_status : statuses_) {
      position.ended += run_status.status == Status::done || run_status.status == Status::diverged ||
                        run_status.status == Status::failed;
      position.failed += run_status.status == Status::diverged || run_status.status == Status::failed;
    }
    std::vector<Forecast::Running> running;
    for (const auto& [i, child] : running_) {
      position.running.push_back({grid_.runs[i].name, progress_of(children_.latest_error_output(i))});
      running.push_back({i, core::seconds(options_.clock->now() - child.since)});
    }
    position.left_s = forecast_.left(running, std::vector(waiting_.begin(), waiting_.end()));
    return position;
  }

  struct Running {
    core::Duration since{};
    bool resumed = false;
  };

  const ResolvedGrid& grid_;
  const GridOptions& options_;
  Progress& progress_;
  const std::string& scratch_;
  std::vector<RunStatus> statuses_;
  Forecast forecast_;
  Children children_;
  std::deque<std::size_t> waiting_;
  std::map<std::size_t, Running> running_;
  std::map<std::size_t, core::Duration> others_;  // runs of other processes, and when the grid noticed them
  int saves_ = 0;                                 // requests passed on to the runs
  std::optional<core::Duration> idle_since_;      // since when the grid waits only for them
};

}  // namespace

Result<GridEnd> run_grid(const ResolvedGrid& grid, const GridOptions& options, Progress& progress,
                         std::stop_token stop) {
  std::error_code error;
  fs::create_directories(grid.directory, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "create directory", grid.directory));
  const auto lock = experiment::DirectoryLock::take(grid.directory);
  if (!lock) return tl::unexpected(lock.error());
  if (!lock->missing().empty()) progress.line("warning: " + lock->missing());
  if (auto cleaned = nn::remove_temporaries(nn::system_files(), grid.directory); !cleaned)
    return tl::unexpected(std::move(cleaned.error()));
  const Scratch scratch;
  if (auto good = scratch.good(); !good) return tl::unexpected(std::move(good.error()));
  auto status_index = read_status_index(grid);
  if (!status_index) return tl::unexpected(std::move(status_index.error()));
  return Session(grid, options, progress, scratch.path(), std::move(*status_index)).run(stop);
}

}  // namespace troupe::grid
