#include "grid/run_grid.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "grid/children.hpp"
#include "grid/forecast.hpp"
#include "grid/results.hpp"

namespace troupe::grid {
namespace {

namespace fs = std::filesystem;
using core::Result;

constexpr auto kTick = std::chrono::milliseconds(500);
/// After an interrupt a run finishes its steps and writes a checkpoint; one that takes longer than this hangs.
constexpr double kSavingDeadline_s = 600;

/// A descriptor, closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

class Scratch {
 public:
  Scratch() : path_((fs::temp_directory_path() / "troupe-grid-XXXXXX").string()) {
    made_ = ::mkdtemp(path_.data()) != nullptr;
    error_ = errno;
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

/// What a child said when it failed: its last line, without the program's name.
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
  Session(const Plan& plan, const GridOptions& options, Progress& progress, const std::string& scratch, Ledger ledger)
      : plan_(plan),
        options_(options),
        progress_(progress),
        scratch_(scratch),
        outcomes_(std::move(ledger.outcomes)),
        forecast_(options.estimates_s, options.jobs),
        children_(options.executable, scratch) {
    for (std::size_t i = 0; i < outcomes_.size(); ++i) {
      const auto& outcome = outcomes_[i];
      if (outcome.status == Status::done) {
        if (const auto json = nlohmann::json::parse(outcome.summary, nullptr, false);
            json.is_object() && json.contains("wall_s") && json["wall_s"].is_number())
          forecast_.measured(i, json["wall_s"].get<double>());
      } else if (outcome.status != Status::diverged) {
        waiting_.push_back(i);
      }
    }
  }

  Result<GridEnd> run(const std::stop_token& stop) {
    const Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    const std::stop_callback on_stop(stop, [&] {
      constexpr std::uint64_t kOne = 1;
      [[maybe_unused]] const auto ignored = ::write(wake.get(), &kOne, sizeof kOne);
    });
    bool told = false;
    core::Duration told_at{};
    while (children_.count() > 0 || (!waiting_.empty() && !stop.stop_requested())) {
      if (!stop.stop_requested()) {
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
      if (children_.count() == 0) continue;  // none could be started
      progress_.tick(position());
      for (auto& end : children_.wait(kTick, wake.get())) settle(std::move(end));
    }
    progress_.close();
    if (auto written = write_results(plan_, outcomes_); !written) return tl::unexpected(std::move(written.error()));
    const bool left = !waiting_.empty() || std::ranges::any_of(outcomes_, [](const Outcome& outcome) {
      return outcome.status == Status::interrupted;
    });
    return GridEnd{std::move(outcomes_), stop.stop_requested() && left};
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

  Result<void> begin(std::size_t i) {
    const auto& run = plan_.runs[i];
    const bool resume = outcomes_[i].status == Status::interrupted && !fresh_.contains(i);
    std::vector<std::string> arguments{"train", "--json", "--quiet"};
    if (resume) {
      arguments.insert(arguments.end(), {"--resume", outcomes_[i].directory});
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

  void settle(Children::End end) {
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

    if (resumed && (end.exit_code == core::exit_code(core::Errc::config) ||
                    end.exit_code == core::exit_code(core::Errc::corrupt))) {
      progress_.line(fmt::format("{} cannot go on ({}): it starts anew", plan_.runs[end.id].name, outcome.error));
      fresh_.insert(end.id);
      waiting_.push_front(end.id);
      return;
    }
    if (outcome.status == Status::done && outcome.directory.empty()) {
      outcome.status = Status::failed;
      outcome.error = "the run said nothing about its end";
    }
    // Exit 70 is also what a bug looks like: the run's own records tell.
    if (outcome.status == Status::diverged &&
        (outcome.directory.empty() || outcome_of(outcome.directory).status != Status::diverged))
      outcome.status = Status::failed;
    if (outcome.status == Status::interrupted && outcome.directory.empty()) outcome.status = Status::waiting;
    if (outcome.status == Status::done && !resumed) forecast_.measured(end.id, seconds);
    outcomes_[end.id] = std::move(outcome);
    progress_.ended(plan_.runs[end.id], outcomes_[end.id], seconds, position());
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

  const Plan& plan_;
  const GridOptions& options_;
  Progress& progress_;
  const std::string& scratch_;
  std::vector<Outcome> outcomes_;
  Forecast forecast_;
  Children children_;
  std::deque<std::size_t> waiting_;
  std::map<std::size_t, Running> running_;
  std::set<std::size_t> fresh_;  // could not be resumed
};

}  // namespace

Result<GridEnd> run_grid(const Plan& plan, const GridOptions& options, Progress& progress, std::stop_token stop) {
  std::error_code error;
  fs::create_directories(plan.directory, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "create directory", plan.directory));
  const auto lock_path = plan.directory + "/.lock";
  const Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.get() < 0) return tl::unexpected(core::from_errno(errno, "open", lock_path));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return core::fail(
        core::Errc::timeout,
        fmt::format("{}: another `troupe grid` works in this directory: try again when it has ended", plan.directory));
  const Scratch scratch;
  if (auto good = scratch.good(); !good) return tl::unexpected(std::move(good.error()));
  auto ledger = read_ledger(plan);
  if (!ledger) return tl::unexpected(std::move(ledger.error()));
  return Session(plan, options, progress, scratch.path(), std::move(*ledger)).run(stop);
}

}  // namespace troupe::grid
