#include "apps/sweep/run_sweep.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "apps/grid/pool/run_pool.hpp"
#include "apps/grid/pool/stopping.hpp"
#include "apps/grid/results.hpp"
#include "apps/sweep/sweep_log.hpp"
#include "apps/sweep/sweep_report.hpp"
#include "apps/sweep/trials.hpp"
#include "core/text/plural.hpp"
#include "experiment/directory/directory_lock.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::apps {
namespace {

using core::Result;
using grid::RunStatus;
using grid::Status;
using sweep::Step;

constexpr int kMostFailures = 3;  // in a row, of runs whose settings are to blame: more, and it is something else

class SweepSession {
 public:
  SweepSession(const SweepPlan& plan, const grid::PoolOptions& options, grid::Progress& progress, grid::RunPool& pool,
               SweepLog& log, SweepTrials& trials)
      : plan_(plan),
        options_(options),
        progress_(progress),
        pool_(pool),
        log_(log),
        trials_(trials),
        began_(options.clock->now()),
        before_s_(trials.elapsed_s()) {
    for (std::size_t i = 0; i < search().trials().size(); ++i)
      if (const auto rung = search().trials()[i].under_way) queue_.push_back({i, *rung});
  }

  Result<SweepEnd> run(const std::stop_token& stop) {
    grid::Stopping stopping(stop, pool_, progress_, *options_.clock);
    for (;;) {
      if (!stopping.requested() && !failed_)
        if (auto begun = fill(); !begun) failed_ = std::move(begun.error());
      if (failed_ || stopping.requested() || time_is_up()) {
        if (pool_.count() == 0) break;
        stopping.proceed(reason_to_end(stopping));
      } else if (pool_.count() == 0) {
        if (has_begun_all() || waits_in_vain()) break;
        publish("running");
        stopping.rest();
        continue;
      }
      publish("running");
      idle_since_.reset();
      progress_.tick(position());
      for (auto& ended : stopping.wait())
        if (auto taken = take(std::move(ended)); !taken) failed_ = std::move(taken.error());
    }
    progress_.close();
    if (failed_) {
      changed_ = true;
      publish("interrupted");
      return tl::unexpected(std::move(*failed_));
    }
    const bool under_way = !queue_.empty() || !others_.empty() || !held_.empty();
    // The end of the hours is the end of the sweep.
    const bool left = !time_is_up() && (under_way || (stopping.requested() && !search().finished()));
    // No later event says how long these steps have trained.
    if (under_way && has_trained_)
      if (auto logged = log_.append({.kind = SweepEvent::Kind::pause, .t = elapsed_s()}); !logged)
        return tl::unexpected(std::move(logged.error()));
    changed_ = true;
    publish(left || stopped_ ? "interrupted" : "finished");
    return SweepEnd{std::move(trials_.runs()), trials_.statuses(), std::move(record_), left, stopped_};
  }

 private:
  sweep::Search& search() { return trials_.search(); }
  [[nodiscard]] const sweep::Search& search() const { return std::as_const(trials_).search(); }
  RunStatus& status(std::size_t trial) { return trials_.status(trial); }
  [[nodiscard]] double elapsed_s() const { return before_s_ + core::seconds(options_.clock->now() - began_); }
  [[nodiscard]] bool time_is_up() const { return plan_.most_s > 0 && elapsed_s() >= plan_.most_s; }

  [[nodiscard]] std::string reason_to_end(const grid::Stopping& stopping) const {
    if (failed_) return failed_->message + std::string(grid::Stopping::kAfterError);
    if (stopping.requested()) return std::string(grid::Stopping::kBySignal);
    return "the hours are over: runs under way save a checkpoint; with more hours they go on";
  }

  /// After fill(), when nothing trains here.
  [[nodiscard]] bool has_begun_all() const {
    return queue_.empty() && others_.empty() && (stopped_ || search_has_none_);
  }

  /// Begins steps while there is room: those of earlier sessions first.
  Result<void> fill() {
    search_has_none_ = false;
    look_at_others();
    if (stopped_) held_.insert(held_.end(), queue_.begin(), queue_.end()), queue_.clear();
    for (std::deque<Step> waiting = std::exchange(queue_, {}); !waiting.empty(); waiting.pop_front())
      if (auto begun = begin(waiting.front()); !begun) return begun;
    // What another process trains takes a slot, too: a sweep that was killed makes the same decisions again.
    while (pool_.has_room() && pool_.count() + others_.size() < options_.slots.size() && !stopped_ && !time_is_up()) {
      const auto step = search().next();
      search_has_none_ = !step;
      if (!step) break;
      if (auto logged = log_.append(trials_.beginning(*step, elapsed_s())); !logged) return logged;
      if (step->rung == 0) trials_.add(step->trial);
      if (auto begun = begin(*step); !begun) return begun;
    }
    return {};
  }

  /// Takes the step's result if its directory has one already; otherwise trains it, or queues it.
  Result<void> begin(const Step& step) {
    if (const auto& why = trials_.invalid(step.trial); !why.empty()) return fail(step, why);
    auto& now = status(step.trial);
    const auto reading = trials_.read(step);
    if (reading.reached) return settle(step, reading, 0);
    if (now.status == Status::running) {
      others_[step.trial] = step;
      progress_.line(fmt::format("waiting for {}: {}", trials_.name(step.trial), now.error));
      return {};
    }
    if (time_is_up()) {
      held_.push_back(step);
      return {};
    }
    if (!pool_.has_room()) {
      queue_.push_back(step);
      return {};
    }
    const bool resumes = !now.directory.empty() && (now.status == Status::interrupted || now.status == Status::done);
    const auto limit = trials_.epochs(step) < plan_.epochs() ? trials_.epochs(step) : 0;
    if (auto begun = pool_.begin(step.trial, trials_.runs().runs[step.trial], resumes ? now.directory : "",
                                 {fmt::format("run.max_epochs={}", limit)});
        !begun)
      return begun;
    running_[step.trial] = step;
    has_trained_ = changed_ = true;
    progress_.began(trials_.runs().runs[step.trial], resumes);
    return {};
  }

  Result<void> take(grid::RunPool::Ended ended) {
    changed_ = true;
    const auto step = running_.extract(ended.id).mapped();
    trials_.set_status(ended.id, std::move(ended.status));
    auto& now = status(ended.id);
    if (failed_) {  // perhaps in the middle of a line of the log: nothing may follow. The run's directory has its result
      held_.push_back(step);
      return {};
    }
    if (ended.nodes_lost) {
      progress_.line(fmt::format("{} goes on elsewhere: {}", trials_.name(ended.id), now.error));
      queue_.push_front(step);
      return {};
    }
    if (now.status == Status::running) return begin(step);                     // another process has it
    if (now.status == Status::interrupted || now.status == Status::waiting) {  // by this sweep's end, or from outside
      held_.push_back(step);
      return {};
    }
    const auto reading = trials_.read(step);
    if (reading.reached) return settle(step, reading, ended.seconds);
    if (now.status == Status::done) {
      now.status = Status::failed;
      now.error = fmt::format("the run ended before {} epochs", trials_.epochs(step));
    }
    // What a run needs that has trained before is there, or not: its settings are good.
    const auto exits_with = [&](core::Errc code) { return now.exit_code == core::exit_code(code); };
    const bool refused = exits_with(core::Errc::config) || exits_with(core::Errc::out_of_memory);
    if (exits_with(core::Errc::diverged) || (refused && !ended.resumed)) return fail(step, now.error);
    // Another run would fail as this one did: a full disk, missing data. Its trial is still under way, and is repeated.
    if (!stopped_)
      stopped_ = core::Error{grid::errc_of(now.exit_code), fmt::format("{}: {}", trials_.name(step.trial), now.error)};
    held_.push_back(step);
    progress_.line(fmt::format("{} failed (exit {}): {}; no further run begins", trials_.name(step.trial),
                               now.exit_code, now.error));
    return {};
  }

  Result<void> settle(const Step& step, const Reading& reading, double seconds) {
    if (reading.untold) {
      if (!stopped_)
        stopped_ =
            core::Error{core::Errc::config,
                        fmt::format("{}: {} has no {}: name another metric in [sweep], and another grid directory",
                                    plan_.file.path, trials_.name(step.trial), plan_.metric)};
      held_.push_back(step);
      return {};
    }
    const sweep::Search::Result result{reading.score, reading.last, reading.diverged_after};
    const double t = elapsed_s();
    if (auto logged = log_.append({.kind = SweepEvent::Kind::score, .t = t, .step = step, .result = result}); !logged)
      return logged;
    trials_.take(step, result, t);
    failures_ = 0;
    tell(step, result, seconds);
    changed_ = true;
    return {};
  }

  Result<void> fail(const Step& step, const std::string& error) {
    if (auto logged = log_.append({.kind = SweepEvent::Kind::failed, .t = elapsed_s(), .step = step, .error = error});
        !logged)
      return logged;
    trials_.take_failure(step, error);
    progress_.line(fmt::format("{} failed: {}", trials_.name(step.trial), error));
    if (++failures_ >= kMostFailures && !stopped_)
      stopped_ = core::Error{core::Errc::config, fmt::format("{} runs in a row failed, the last of them {}: {}",
                                                             failures_, trials_.name(step.trial), error)};
    changed_ = true;
    return {};
  }

  void tell(const Step& step, const sweep::Search::Result& result, double seconds) {
    const auto& name = trials_.name(step.trial);
    auto text =
        fmt::format("{}: {} after {}", name, score_text(plan_.metric, result.score),
                    result.diverged_after ? fmt::format("{:.2f} epochs", *result.diverged_after)
                                          : core::counted(static_cast<std::uint64_t>(trials_.epochs(step)), "epoch"));
    if (seconds >= 1) text += fmt::format(", {:.0f} s", seconds);
    if (const auto best = trials_.best(); best && *best != step.trial)
      text += fmt::format("; best: {} of {}", score_text("", search().trials()[*best].scores.back()).substr(1),
                          trials_.name(*best));
    else if (best)
      text += ": the best so far";
    progress_.line(text);
  }

  /// Results of trials whose runs other processes train: of a killed sweep that still save, or a user's own.
  void look_at_others() {
    for (auto entry = others_.begin(); entry != others_.end();) {
      auto fresh = grid::run_status_of(status(entry->first).directory);
      if (fresh.status == Status::running) {
        ++entry;
        continue;
      }
      trials_.set_status(entry->first, std::move(fresh));
      queue_.push_back(entry->second);
      entry = others_.erase(entry);
    }
  }

  /// Nothing trains here: other processes do, or no node can be used. For how long that may be so.
  bool waits_in_vain() {
    const auto now = options_.clock->now();
    if (!idle_since_) idle_since_ = now;
    const bool others_late = queue_.empty() && core::seconds(now - *idle_since_) > grid::kSavingDeadline_s;
    if (!others_late && !pool_.is_hopeless()) return false;
    std::string why = "no node can be used";
    if (const auto* step = !queue_.empty() ? &queue_.front() : !others_.empty() ? &others_.begin()->second : nullptr) {
      auto& run_status = status(step->trial);
      run_status.exit_code = core::exit_code(core::Errc::timeout);
      why = fmt::format("{}: {}", trials_.name(step->trial), run_status.error.empty() ? why : run_status.error);
    }
    stopped_ = core::Error{core::Errc::timeout, why + ": try again later"};
    return true;
  }

  /// For readers: what has changed since.
  void publish(std::string state) {
    if (!std::exchange(changed_, false)) return;
    record_ = trials_.record(elapsed_s(), std::move(state));
    const auto text = grid::one_line(to_json(record_));
    const std::array parts{std::as_bytes(std::span(text))};
    auto written = nn::replace_file(nn::system_files(), plan_.directory, sweep::kRecordFile, parts);
    if (written) written = grid::write_results(trials_.runs(), trials_.statuses());
    // The log is what counts: the sweep goes on, and writes them after the next step.
    if (!written) progress_.line("results are not written for now: " + written.error().message);
  }

  [[nodiscard]] grid::GridPosition position() {
    grid::GridPosition position;
    position.runs = plan_.options.trials > 0 ? plan_.options.trials : search().trials().size();
    for (std::size_t i = 0; i < search().trials().size(); ++i) {
      const auto& trial = search().trials()[i];
      position.ended += !trial.under_way;
      position.failed += trial.failed;
    }
    for (auto& run : pool_.positions()) position.running.push_back({trials_.name(run.id), std::move(run.progress)});
    if (const auto at = trials_.best())
      position.note = fmt::format("best: {} of {}", score_text(plan_.metric, search().trials()[*at].scores.back()),
                                  trials_.name(*at));
    else
      position.note = "no result yet";
    if (plan_.options.epochs > 0)
      position.note += fmt::format(", {:.0f} of {} epochs", search().epochs(), plan_.options.epochs);
    return position;
  }

  const SweepPlan& plan_;
  const grid::PoolOptions& options_;
  grid::Progress& progress_;
  grid::RunPool& pool_;
  SweepLog& log_;
  SweepTrials& trials_;
  core::Duration began_;
  double before_s_;
  std::deque<Step> queue_;               // under way, and to be trained here
  std::map<std::size_t, Step> running_;  // by trial
  std::map<std::size_t, Step> others_;   // that another process trains
  std::vector<Step> held_;               // under way; for the next start of the sweep
  std::optional<core::Error> stopped_;
  std::optional<core::Error> failed_;  // of the sweep itself: runs under way save first
  int failures_ = 0;                   // in a row
  std::optional<core::Duration> idle_since_;
  bool has_trained_ = false;      // a run began here, in this session
  bool search_has_none_ = false;  // false, too, where fill() has not asked: all nodes are lost
  bool changed_ = true;           // since record_ was made and written
  sweep::Record record_;
};

}  // namespace

Result<SweepEnd> run_sweep(const SweepPlan& plan, const grid::PoolOptions& options, grid::Progress& progress,
                           std::stop_token stop) {
  std::error_code error;
  std::filesystem::create_directories(plan.directory, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "create directory", plan.directory));
  const auto lock = experiment::DirectoryLock::take(plan.directory);
  if (!lock) return tl::unexpected(lock.error());
  if (!lock->missing().empty()) progress.line("warning: " + lock->missing());
  if (auto cleaned = nn::remove_temporaries(nn::system_files(), plan.directory); !cleaned)
    return tl::unexpected(std::move(cleaned.error()));
  auto log = SweepLog::open(plan.directory, plan.identity);
  if (!log) return tl::unexpected(std::move(log.error()));
  SweepTrials trials(plan);
  if (auto restored = trials.restore(log->before(), log->path()); !restored)
    return tl::unexpected(std::move(restored.error()));
  if (lock->missing().empty()) grid::RunPool::remove_leftovers(plan.directory);
  const auto pool = grid::RunPool::make(options, plan.directory);
  if (!pool) return tl::unexpected(pool.error());
  return SweepSession(plan, options, progress, **pool, *log, trials).run(stop);
}

Result<sweep::Record> peek(const SweepPlan& plan) {
  auto events = read_sweep_log(plan.directory, plan.identity);
  if (!events) return tl::unexpected(std::move(events.error()));
  SweepTrials trials(plan);
  if (auto restored = trials.restore(*events, plan.directory + "/" + kSweepLog); !restored)
    return tl::unexpected(std::move(restored.error()));
  const bool time_is_up = plan.most_s > 0 && trials.elapsed_s() >= plan.most_s;
  return trials.record(trials.elapsed_s(), trials.search().finished() || time_is_up ? "finished" : "interrupted");
}

}  // namespace troupe::apps
