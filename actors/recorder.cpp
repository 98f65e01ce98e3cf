#include "actors/recorder.hpp"

#include <ctime>
#include <filesystem>
#include <optional>

#include "actors/tensorboard.hpp"
#include "core/journal.hpp"
#include "experiment/summary.hpp"

namespace troupe::actors {

namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

}  // namespace

class RecorderBody {
 public:
  RecorderBody(RecorderActor::stateful_pointer<RecorderState> self, RecorderSetup setup)
      : self_(self), setup_(std::move(setup)), console_(setup_.console, *setup_.clock), began_(setup_.clock->now()) {
    if (auto metrics = MetricsWriter::open(setup_.directory->metrics_file())) {
      metrics_.emplace(std::move(*metrics));
    } else {
      note({Note::Level::warning, "no metrics: " + metrics.error().message});
    }
    if (setup_.tensorboard) open_events();
    if (setup_.journal) open_journal();
    self_->delayed_send(self_, kTick, Tick{});
  }

  void started(const RunStarted& run) {
    console_.started(run);
    if (events_) events_->started(run);
    line(to_json(run, at()));
    for (const auto& early : setup_.notes) note(early);
  }
  void progress(const WorkerProgress& progress) {
    console_.progress(progress);
    if (events_) check_events(events_->progress(progress, at()));
    line(to_json(progress, at()));
  }
  void epoch(const EpochReport& report) {
    console_.epoch(report);
    if (events_) check_events(events_->epoch(report, at()));
    line(to_json(report, at()));
  }
  void note(const Note& note) {
    console_.note(note);
    line(to_json(note, at()));
  }

  void journal(const JournalRecords& records) {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < records.kinds.size() && journal_; ++i) {
      const auto bytes = std::as_bytes(std::span(records.bytes).subspan(offset, records.sizes[i]));
      offset += records.sizes[i];
      if (auto appended = journal_->append(records.kinds[i], bytes); !appended) journal_failed(appended.error());
    }
  }

  CheckpointWritten checkpoint(const CheckpointCargo& cargo) {
    flush();
    auto path = save(*setup_.checkpoints, *cargo.checkpoint);
    if (!path) return {.path = {}, .error = path.error().message, .code = path.error().code};
    line(to_json(Note{Note::Level::info, "checkpoint " + *path}, at()));
    return {.path = *path};
  }

  void tick() {
    console_.tick();
    self_->delayed_send(self_, kTick, Tick{});
  }

  Finished finish(const RunEnd& end) {
    line(to_json(end, at()));
    if (journal_ && (!end.failed || end.error.code == core::Errc::interrupted)) {
      if (auto closed = journal_->append(static_cast<std::uint16_t>(experiment::RunRecordKind::end), {}); !closed)
        journal_failed(closed.error());
    }
    flush();
    journal_.reset();
    auto written = setup_.directory->write_summary(to_json(end.summary));
    console_.ended(end);
    return {written ? std::string{} : written.error().message};
  }

 private:
  [[nodiscard]] double at() const { return core::seconds(setup_.clock->now() - began_); }

  void line(const std::string& json) {
    if (!metrics_) return;
    if (auto appended = metrics_->append(json); !appended)
      console_.note({Note::Level::warning, "metrics: " + appended.error().message});
  }

  void open_events() {
    if (auto events = TensorBoard::create(setup_.directory->path(), std::time(nullptr)))
      events_.emplace(std::move(*events));
    else
      note({Note::Level::warning, "no TensorBoard events: " + events.error().message});
  }

  void check_events(const core::Result<void>& written) {
    if (!written) note({Note::Level::warning, "TensorBoard events: " + written.error().message});
  }

  void open_journal() {
    auto segment = setup_.directory->next_journal();
    if (!segment) return journal_failed(segment.error());
    if (!setup_.start_file.empty()) {
      std::error_code failed;
      std::filesystem::copy_file(setup_.start_file, segment->start, failed);
      if (failed) return journal_failed(core::from_errno(failed.value(), "write", segment->start));
    }
    auto writer = core::JournalWriter::create(segment->path);
    if (!writer) return journal_failed(writer.error());
    journal_.emplace(std::move(*writer));
  }

  void flush() {
    if (!journal_) return;
    if (auto flushed = journal_->flush(); !flushed) journal_failed(flushed.error());
  }

  void journal_failed(const core::Error& error) {
    journal_.reset();
    note({Note::Level::warning, "no journal from here on: " + error.message});
  }

  RecorderActor::stateful_pointer<RecorderState> self_;
  RecorderSetup setup_;
  Console console_;
  core::Duration began_;
  std::optional<MetricsWriter> metrics_;
  std::optional<TensorBoard> events_;
  std::optional<core::JournalWriter> journal_;
};

RecorderState::RecorderState() = default;
RecorderState::~RecorderState() = default;

RecorderActor::behavior_type recorder(RecorderActor::stateful_pointer<RecorderState> self, RecorderSetup setup) {
  self->state.body = std::make_unique<RecorderBody>(self, std::move(setup));
  return {
      [self](const RunStarted& run) { self->state.body->started(run); },
      [self](const WorkerProgress& progress) { self->state.body->progress(progress); },
      [self](const EpochReport& report) { self->state.body->epoch(report); },
      [self](const Note& note) { self->state.body->note(note); },
      [self](const JournalRecords& records) { self->state.body->journal(records); },
      [self](const CheckpointOrder&, const CheckpointCargo& cargo) { return self->state.body->checkpoint(cargo); },
      [self](const Finish&, const RunEnd& end) {
        self->quit();
        return self->state.body->finish(end);
      },
      [self](const Tick&) { self->state.body->tick(); },
  };
}

}  // namespace troupe::actors
