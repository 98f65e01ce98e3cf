#include "actors/recorder/recorder.hpp"

#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/recorder/disk.hpp"
#include "actors/recorder/journal_keeper.hpp"
#include "actors/requests/timer.hpp"
#include "experiment/accounts/worker_tables.hpp"
#include "experiment/report/tensorboard.hpp"
#include "experiment/summary.hpp"

namespace troupe::actors {

namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr core::Duration kReportDiskEvery = std::chrono::seconds(1);

/// A report as if nothing had come since it: what it says of the time before was told.
WorkerProgress sums_of(WorkerProgress report) {
  report.loss = report.loss_sum = report.recent_norm_sum = 0;
  report.top1 = 0;
  report.recent_samples = report.recent_steps = 0;
  report.distance = experiment::kUnknown;
  return report;
}

}  // namespace

class RecorderBody {
 public:
  RecorderBody(RecorderActor::stateful_pointer<RecorderState> self, RecorderSetup setup)
      : self_(self),
        setup_(std::move(setup)),
        console_(setup_.console, *setup_.clock),
        began_(setup_.clock->now()),
        journal_(setup_.directory, setup_.journal, setup_.config, setup_.plan),
        disk_(self, setup_.disk) {
    if (auto metrics = MetricsWriter::open(setup_.directory->metrics_file())) {
      metrics_.emplace(std::move(*metrics));
    } else {
      note({Note::Level::warning, "no metrics: " + metrics.error().message});
    }
    if (setup_.tensorboard) open_events();
    if (setup_.journal.keep) begin_segment(journal_.open(setup_.start_file, setup_.disk));
    timer_.send(kTick, Tick{});
  }

  /// Whether the current message is accepted. Progress of members in other processes comes through the coordinator, which checks it.
  [[nodiscard]] bool accepts_from_here() {
    return accepted(sender_of(self_).here ? Refusal{} : "a message that only the coordinator's process may send");
  }
  [[nodiscard]] bool accepts(const Note& note) {
    return accepted(setup_.checks.check(sender_of(self_), note, setup_.clock->now()));
  }
  [[nodiscard]] bool accepts(const JournalRecords& records) {
    return accepted(setup_.checks.check(sender_of(self_), records));
  }

  void started(const RunStarted& run) {
    coordinator_ = caf::actor_cast<CoordinatorActor>(self_->current_sender());
    console_.started(run);
    if (events_) {
      events_->started(run);
      check_events(events_->options(setup_.config));
    }
    line(to_json(run, at()));
    tables_ = experiment::WorkerTables(run.workers + run.servers);
    for (const auto& early : setup_.notes) note(early);
  }
  void progress(const WorkerProgress& progress) {
    console_.progress(progress);
    if (events_) check_events(events_->progress(progress, at()));
    const bool tables = tables_.due(progress.worker, at());
    line(to_json(progress, at(), tables));
    if (tables)
      without_tables_.erase(progress.worker);
    else
      without_tables_[progress.worker] = {at(), progress};
  }
  void epoch(const EpochReport& report) {
    console_.epoch(report);
    if (events_) check_events(events_->epoch(report, at()));
    line(to_json(report, at()));
  }
  void evaluation(const EvaluationReport& report) {
    console_.evaluation(report);
    if (events_) check_events(events_->evaluation(report, at()));
    line(to_json(report, at()));
  }
  void member(const MemberReport& report) { line(to_json(report, at())); }
  void ledger(const LedgerReport& report) {
    console_.ledger(report);
    line(to_json(report, at()));
  }
  void note(const Note& note) {
    console_.note(note);
    line(to_json(note, at()));
  }

  void journal(const JournalRecords& records) {
    check_journal(journal_.append(records));
    if (journal_.full() && coordinator_) self_->send(coordinator_, JournalFull{});
  }

  /// The new segment begins now; its start files are written meanwhile.
  Rotated rotate(const CheckpointPayload& payload) {
    if (journal_.is_on()) begin_segment(journal_.hold(payload.checkpoint, setup_.disk));
    return {};
  }

  [[nodiscard]] caf::result<CheckpointWritten> checkpoint(bool best, const CheckpointPayload& payload) {
    auto promise = self_->make_response_promise<CheckpointWritten>();
    checkpoints_.push_back([this, best, promise, checkpoint = payload.checkpoint] { save(promise, best, checkpoint); });
    save_what_may_be();
    return promise;
  }

  /// Records before a checkpoint leave this process before the checkpoint is on disk.
  void save_what_may_be() {
    while (!checkpoints_.empty() && !journal_.holds()) {
      flush();
      const auto next = std::move(checkpoints_.front());
      checkpoints_.pop_front();
      next();
    }
    end_when_written();
  }

  void save(caf::typed_response_promise<CheckpointWritten> promise, bool best,
            const std::shared_ptr<const Checkpoint>& checkpoint) {
    const auto path = std::make_shared<std::string>();
    disk_.write(
        [store = setup_.checkpoints, files = setup_.disk, checkpoint, path,
         best_file = best ? setup_.directory->best_file() : std::string()]() -> core::Result<void> {
          if (!best_file.empty()) {
            *path = best_file;
            return experiment::save_start(best_file, *checkpoint, *files);
          }
          auto saved = experiment::save(*store, *checkpoint);
          if (!saved) return tl::unexpected(saved.error());
          *path = std::move(*saved);
          return {};
        },
        [this, promise, path, best](const core::Result<void>& saved) mutable {
          if (saved) line(to_json(Note{Note::Level::info, (best ? "best model " : "checkpoint ") + *path}, at()));
          promise.deliver(
              saved ? CheckpointWritten{.path = *path}
                    : CheckpointWritten{.path = {}, .error = saved.error().message, .code = saved.error().code});
          end_when_written();
        });
  }

  void tick() {
    console_.tick();
    const auto now = setup_.clock->now();
    if (disk_.look(now) && coordinator_ && now - told_ >= kReportDiskEvery) {
      told_ = now;
      self_->send(coordinator_, StillWriting{});
    }
    timer_.send(kTick, Tick{});
  }

  /// Waits for pending writes: they belong to the run.
  [[nodiscard]] caf::result<Finished> finish(const RunEnd& end) {
    auto promise = self_->make_response_promise<Finished>();
    finish_ = [this, end, promise]() mutable {
      promise.deliver(finished(end));
      disk_.halt();
      self_->quit();
    };
    end_when_written();
    return promise;
  }

 private:
  [[nodiscard]] bool accepted(const Refusal& refusal) {
    if (!refusal) return true;
    std::vector<std::string> names;
    for (const auto w : setup_.checks.workers_of(sender_of(self_))) names.push_back(fmt::format("worker {}", w));
    const auto who =
        names.empty() ? "a process that has no part in the run" : fmt::format("{}", fmt::join(names, ", "));
    if (auto line = refusals_.add(who, *refusal)) note({Note::Level::warning, std::move(*line)});
    return false;
  }

  Finished finished(const RunEnd& end) {
    if (!end.failed || end.error.code == core::Errc::interrupted) check_journal(journal_.close());
    flush();
    const auto written = setup_.directory->write_summary(to_json(end.summary));
    // Written last, after the summary: readers take this line as the sign that the summary exists.
    auto told = end;
    if (!written && !told.failed) told = {.summary = end.summary, .failed = true, .error = written.error()};
    if (events_) check_events(events_->ended(end, at()));
    for (const auto& [worker, latest] : without_tables_) line(to_json(sums_of(latest.second), latest.first));
    line(to_json(told, at()));
    console_.ended(end);
    return {written ? std::string{} : written.error().message};
  }

  void end_when_written() {
    if (finish_ && disk_.idle() && checkpoints_.empty()) std::exchange(finish_, nullptr)();
  }

  void begin_segment(core::Result<JournalKeeper::Beginning> beginning) {
    if (!beginning) return note_segment(beginning.error());
    disk_.write(std::move(*beginning), [this](const core::Result<void>& written) {
      const auto begun = journal_.begin(written);
      if (!begun) note_segment(begun.error());
      save_what_may_be();
    });
  }

  void note_segment(const core::Error& error) {
    const char* what = journal_.is_on() ? "no new journal segment: " : "no journal from here on: ";
    note({Note::Level::warning, what + error.message});
  }

  [[nodiscard]] double at() const { return core::seconds(setup_.clock->now() - began_); }

  void line(const std::string& json) {
    if (!metrics_) return;
    if (auto appended = metrics_->append(json); !appended)
      console_.note({Note::Level::warning, "metrics: " + appended.error().message});
  }

  void open_events() {
    if (auto events = report::TensorBoard::create(setup_.directory->path(), std::time(nullptr)))
      events_.emplace(std::move(*events));
    else
      note({Note::Level::warning, "no TensorBoard events: " + events.error().message});
  }

  void check_events(const core::Result<void>& written) {
    if (!written) note({Note::Level::warning, "TensorBoard events: " + written.error().message});
  }

  void flush() { check_journal(journal_.flush()); }

  void check_journal(const core::Result<void>& written) {
    if (!written) note({Note::Level::warning, "no journal from here on: " + written.error().message});
  }

  RecorderActor::stateful_pointer<RecorderState> self_;
  Timer timer_{self_};
  RecorderSetup setup_;
  RefusalCount refusals_;
  report::Console console_;
  core::Duration began_;
  std::optional<MetricsWriter> metrics_;
  experiment::WorkerTables tables_{0};
  std::map<std::uint32_t, std::pair<double, WorkerProgress>>
      without_tables_;  // by worker: its latest report and when, if without
  std::optional<report::TensorBoard> events_;
  JournalKeeper journal_;
  Disk disk_;
  core::Duration told_{0};                         // time of the latest StillWriting
  std::deque<std::function<void()>> checkpoints_;  // waiting for a segment to begin
  std::function<void()> finish_;                   // the end, once requested
  CoordinatorActor coordinator_;                   // the sender of RunStarted
};

RecorderState::RecorderState() = default;
RecorderState::~RecorderState() = default;

RecorderActor::behavior_type recorder(RecorderActor::stateful_pointer<RecorderState> self, RecorderSetup setup) {
  self->state.body = std::make_unique<RecorderBody>(self, std::move(setup));
  self->set_default_handler(caf::drop);
  return {
      [self](const RunStarted& run) {
        if (self->state.body->accepts_from_here()) self->state.body->started(run);
      },
      [self](const WorkerProgress& progress) {
        if (self->state.body->accepts_from_here()) self->state.body->progress(progress);
      },
      [self](const EpochReport& report) {
        if (self->state.body->accepts_from_here()) self->state.body->epoch(report);
      },
      [self](const EvaluationReport& report) {
        if (self->state.body->accepts_from_here()) self->state.body->evaluation(report);
      },
      [self](const MemberReport& report) {
        if (self->state.body->accepts_from_here()) self->state.body->member(report);
      },
      [self](const LedgerReport& report) {
        if (self->state.body->accepts_from_here()) self->state.body->ledger(report);
      },
      [self](const Note& note) {
        if (self->state.body->accepts(note)) self->state.body->note({note.level, one_line(note.text)});
      },
      [self](const JournalRecords& records) {
        if (self->state.body->accepts(records)) self->state.body->journal(records);
      },
      [self](const CheckpointOrder& order, const CheckpointPayload& payload) {
        return self->state.body->checkpoint(order.best, payload);
      },
      [self](const RotateOrder&, const CheckpointPayload& payload) { return self->state.body->rotate(payload); },
      [self](const Finish&, const RunEnd& end) { return self->state.body->finish(end); },
      [self](const Tick&) {
        if (self->state.body->accepts_from_here()) self->state.body->tick();
      },
  };
}

}  // namespace troupe::actors
