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

/// The error of a failed child: its last line, without the program's name.
std::string last_words(const std::string& err) {
  const auto end = err.find_last_not_of('\n');
  if (end == std::string::npos) return {};
  const auto begin = err.rfind('\n', end);
  const auto line = err.substr(begin == std::string::npos ? 0 : begin + 1, end - (begin + 1) + 1);
  constexpr std::string_view kProgram = "troupe: ";
  return line.starts_with(kProgram) ? line.substr(kProgram.size()) : line;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class Session {
 public:
  Session(const GridPlan& plan, const GridOptions& options, Progress& progress, const std::string& scratch,
          StatusIndex status_index)
      : plan_(plan),
        options_(options),
        progress_(progress),
        scratch_(scratch),
        outcomes_(std::move(status_index.outcomes)),
        forecast_(options.estimates_s, options.jobs),
        children_(options.executable, scratch) {
    for (std::size_t i = 0; i < outcomes_.size(); ++i) {
      const auto& outcome = outcomes_[i];
      if (outcome.status == Status::done) {
        if (const auto json = nlohmann::json::parse(outcome.summary, nullptr, false);
            json.is_object() && json.contains("wall_s") && json["wall_s"].is_number())
          forecast_.measured(i, json["wall_s"].get<double>());
      } else if (outcome.status == Status::running) {
        leave_to_others(i);
      } else if (outcome.status != Status::diverged) {
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
      if (!stop.stop_requested()) {
        look_at_others();
        if (auto begun = fill(); !begun) return tl::unexpected(std::move(begun.error()));
      } else if (!std::exchange(told, true)) {
        told_at = options_.clock->now();
        progress_.line("stopping: runs under way save a checkpoint; once more leaves at once");
        children_.signal(SIGINT);
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
    if (auto written = write_results(plan_, outcomes_); !written) return tl::unexpected(std::move(written.error()));
    // A run that another process interrupted has no result either.
    const bool left =
        !waiting_.empty() || !others_.empty() || std::ranges::any_of(outcomes_, [](const Outcome& outcome) {
          return outcome.status == Status::interrupted || outcome.status == Status::waiting;
        });
    return GridEnd{std::move(outcomes_), left};
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
    progress_.line(fmt::format("waiting for {}: {}", plan_.runs[i].name, outcomes_[i].error));
  }

  /// Checks the runs of other processes for their ends: records a result, or queues the run to continue it.
  void look_at_others() {
    for (auto entry = others_.begin(); entry != others_.end();) {
      const auto [i, since] = *entry;
      auto outcome = outcome_of(outcomes_[i].directory);
      if (outcome.status == Status::running) {
        ++entry;
        continue;
      }
      entry = others_.erase(entry);
      outcomes_[i] = std::move(outcome);
      if (outcomes_[i].status == Status::done || outcomes_[i].status == Status::diverged)
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
      outcomes_[i].status = Status::failed;
      outcomes_[i].exit_code = core::exit_code(core::Errc::timeout);
      outcomes_[i].error += ": try again when it has ended";
      record(i, core::seconds(now - since));
    }
  }

  Result<void> begin(std::size_t i) {
    const auto& run = plan_.runs[i];
    const bool resume = outcomes_[i].status == Status::interrupted;
    std::vector<std::string> arguments{"train", "--json", "--quiet"};
    if (resume) {
      arguments.insert(arguments.end(), {"--resume", outcomes_[i].directory});
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
    Outcome outcome;
    outcome.exit_code = end.exit_code;
    outcome.status = status_of(end.exit_code);
    outcome.summary = first_line(end.out);
    if (outcome.status != Status::done) outcome.error = last_words(end.err);
    if (const auto json = nlohmann::json::parse(outcome.summary, nullptr, false); json.is_object())
      outcome.directory = json.value("run", "");
    else if (resumed)
      outcome.directory = outcomes_[end.id].directory;

    if (resumed && outcome.status == Status::failed) {
      const bool for_good =
          end.exit_code == core::exit_code(core::Errc::config) || end.exit_code == core::exit_code(core::Errc::corrupt);
      if (auto now = outcome_of(outcome.directory); now.status == Status::running) {  // another process was faster
        outcomes_[end.id] = std::move(now);
        return leave_to_others(end.id);
      }
      // The directory's contents belong to the user: the grid never begins the run anew in its place.
      if (for_good)
        outcome.error +=
            fmt::format(" (what it has reached stays in {}; remove that directory to begin anew)", outcome.directory);
    }
    if (outcome.status == Status::done && outcome.directory.empty()) {
      outcome.status = Status::failed;
      outcome.error = "the run said nothing about its end";
    }
    // A bug also exits with 70: the run's records decide.
    if (outcome.status == Status::diverged &&
        (outcome.directory.empty() || outcome_of(outcome.directory).status != Status::diverged))
      outcome.status = Status::failed;
    if (outcome.status == Status::interrupted && outcome.directory.empty()) outcome.status = Status::waiting;
    if (outcome.status == Status::done && !resumed) forecast_.measured(end.id, seconds);
    outcomes_[end.id] = std::move(outcome);
    record(end.id, seconds);
  }

  /// Reports a run's outcome and writes the results.
  void record(std::size_t i, double seconds) {
    progress_.ended(plan_.runs[i], outcomes_[i], seconds, position());
    if (auto written = write_results(plan_, outcomes_); !written)
      progress_.line("results are not written for now: " + written.error().message);
  }

  [[nodiscard]] GridPosition position() const {
    GridPosition position;
    position.runs = plan_.runs.size();
    for (const auto& outcome : outcomes_) {
      position.ended +=
          outcome.status == Status::done || outcome.status == Status::diverged || outcome.status == Status::failed;
      position.failed += outcome.status == Status::diverged || outcome.status == Status::failed;
    }
    std::vector<Forecast::Running> running;
    for (const auto& [i, child] : running_) {
      position.running.push_back(plan_.runs[i].name);
      running.push_back({i, core::seconds(options_.clock->now() - child.since)});
    }
    position.left_s = forecast_.left(running, std::vector(waiting_.begin(), waiting_.end()));
    return position;
  }

  struct Running {
    core::Duration since{};
    bool resumed = false;
  };

  const GridPlan& plan_;
  const GridOptions& options_;
  Progress& progress_;
  const std::string& scratch_;
  std::vector<Outcome> outcomes_;
  Forecast forecast_;
  Children children_;
  std::deque<std::size_t> waiting_;
  std::map<std::size_t, Running> running_;
  std::map<std::size_t, core::Duration> others_;  // runs of other processes, and when the grid noticed them
  std::optional<core::Duration> idle_since_;      // since when the grid waits only for them
};

}  // namespace

Result<GridEnd> run_grid(const GridPlan& plan, const GridOptions& options, Progress& progress, std::stop_token stop) {
  std::error_code error;
  fs::create_directories(plan.directory, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "create directory", plan.directory));
  const auto lock = experiment::DirectoryLock::take(plan.directory);
  if (!lock) return tl::unexpected(lock.error());
  if (!lock->missing().empty()) progress.line("warning: " + lock->missing());
  if (auto cleaned = nn::remove_temporaries(nn::system_files(), plan.directory); !cleaned)
    return tl::unexpected(std::move(cleaned.error()));
  const Scratch scratch;
  if (auto good = scratch.good(); !good) return tl::unexpected(std::move(good.error()));
  auto status_index = read_status_index(plan);
  if (!status_index) return tl::unexpected(std::move(status_index.error()));
  return Session(plan, options, progress, scratch.path(), std::move(*status_index)).run(stop);
}

}  // namespace troupe::grid
