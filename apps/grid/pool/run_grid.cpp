#include "apps/grid/pool/run_grid.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/grid/forecast.hpp"
#include "apps/grid/pool/stopping.hpp"
#include "apps/grid/results.hpp"
#include "experiment/directory/directory_lock.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::grid {
namespace {

namespace fs = std::filesystem;
using core::Result;

class Session {
 public:
  Session(const ResolvedGrid& grid, const GridOptions& options, Progress& progress, RunPool& pool,
          StatusIndex status_index)
      : grid_(grid),
        options_(options),
        progress_(progress),
        statuses_(std::move(status_index.statuses)),
        forecast_(options.estimates_s, options.pool.slots.size()),
        pool_(pool) {
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
    Stopping stopping(stop, pool_, progress_, *options_.pool.clock);
    std::optional<core::Error> failed;  // of the grid itself: runs under way save first
    const auto ends = [&] { return failed || stopping.requested(); };
    while (pool_.count() > 0 || (!(waiting_.empty() && others_.empty()) && !ends())) {
      if (!ends()) {
        look_at_others();
        if (auto begun = fill(); !begun) failed = std::move(begun.error());
        if (!failed && pool_.count() == 0 && pool_.is_hopeless()) give_up();
      } else {
        stopping.proceed(failed ? failed->message + std::string(Stopping::kAfterError)
                                : std::string(Stopping::kBySignal));
      }
      if (pool_.count() == 0) {
        if (ends()) continue;
        if (waiting_.empty() && !others_.empty()) wait_for_others(stopping);
        if (!waiting_.empty()) stopping.rest();  // all nodes are lost
        continue;
      }
      idle_since_.reset();
      progress_.tick(position());
      for (auto& ended : stopping.wait()) record_end(std::move(ended));
    }
    progress_.close();
    auto written = write_results(grid_, statuses_);
    if (failed) return tl::unexpected(std::move(*failed));
    if (!written) return tl::unexpected(std::move(written.error()));
    // A run that another process interrupted has no result either.
    const bool left =
        !waiting_.empty() || !others_.empty() || std::ranges::any_of(statuses_, [](const RunStatus& run_status) {
          return run_status.status == Status::interrupted || run_status.status == Status::waiting;
        });
    return GridEnd{std::move(statuses_), left};
  }

 private:
  Result<void> fill() {
    while (!waiting_.empty() && pool_.has_room()) {
      const auto run = waiting_.front();
      waiting_.pop_front();
      if (auto begun = begin(run); !begun) return begun;
    }
    return {};
  }

  /// Another process has the run's directory. Two processes must not train in it, and the run must not begin anew beside it.
  void leave_to_others(std::size_t i) {
    others_[i] = options_.pool.clock->now();
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
        record(i, core::seconds(options_.pool.clock->now() - since));
      else
        waiting_.push_front(i);
    }
  }

  /// No node has been of use for long: what waits for one has failed.
  void give_up() {
    for (const auto i : std::exchange(waiting_, {})) {
      statuses_[i].status = Status::failed;
      statuses_[i].exit_code = core::exit_code(core::Errc::peer_lost);
      if (statuses_[i].error.empty()) statuses_[i].error = "no node can be used";
      record(i, 0);
    }
  }

  /// Called when no other work is left.
  void wait_for_others(const Stopping& stopping) {
    const auto now = options_.pool.clock->now();
    if (!idle_since_) idle_since_ = now;
    if (core::seconds(now - *idle_since_) <= kSavingDeadline_s) {
      stopping.rest();
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
    const bool resume = statuses_[i].status == Status::interrupted;
    auto begun = pool_.begin(i, grid_.runs[i], resume ? statuses_[i].directory : "");
    if (begun) progress_.began(grid_.runs[i], resume);
    return begun;
  }

  void record_end(RunPool::Ended ended) {
    const auto i = ended.id;
    statuses_[i] = std::move(ended.status);
    if (statuses_[i].status == Status::running) return leave_to_others(i);
    if (ended.nodes_lost) {
      progress_.line(fmt::format("{} goes on elsewhere: {}", grid_.runs[i].name, statuses_[i].error));
      return waiting_.push_front(i);
    }
    if (statuses_[i].status == Status::done && !ended.resumed) forecast_.measured(i, ended.seconds);
    record(i, ended.seconds);
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
    for (auto& run : pool_.positions()) {
      position.running.push_back({grid_.runs[run.id].name, std::move(run.progress)});
      running.push_back({run.id, run.elapsed_s});
    }
    position.left_s = forecast_.left(running, std::vector(waiting_.begin(), waiting_.end()));
    return position;
  }

  const ResolvedGrid& grid_;
  const GridOptions& options_;
  Progress& progress_;
  std::vector<RunStatus> statuses_;
  Forecast forecast_;
  RunPool& pool_;
  std::deque<std::size_t> waiting_;
  std::map<std::size_t, core::Duration> others_;  // runs of other processes, and when the grid noticed them
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
  if (lock->missing().empty()) RunPool::remove_leftovers(grid.directory);
  const auto pool = RunPool::make(options.pool, grid.directory);
  if (!pool) return tl::unexpected(pool.error());
  auto status_index = read_status_index(grid);
  if (!status_index) return tl::unexpected(std::move(status_index.error()));
  return Session(grid, options, progress, **pool, std::move(*status_index)).run(stop);
}

}  // namespace troupe::grid
