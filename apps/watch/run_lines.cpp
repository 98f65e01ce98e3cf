#include "apps/watch/run_lines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/client/json_values.hpp"
#include "core/text/display.hpp"

namespace troupe::apps {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

double real_at(const StateJson& object, const char* key, double otherwise = 0) {
  return number_at(object, key).value_or(otherwise);
}

std::uint32_t small_at(const StateJson& object, const char* key) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(count_at(object, key), std::numeric_limits<std::uint32_t>::max()));
}

std::string clean_at(const StateJson& object, const char* key) { return core::printable(text_at(object, key)); }

template <class Number>
std::vector<Number> numbers_at(const StateJson& object, const char* key) {
  std::vector<Number> numbers;
  for (const auto& one : list_at(object, key)) {
    const auto number = one.is_number() ? one.get<double>() : 0.0;
    numbers.push_back(number >= 0 && number < 1e15 ? static_cast<Number>(number) : Number{0});
  }
  return numbers;
}

/// Which `troupe train` writes down, and does not print.
bool names_a_checkpoint(const experiment::Note& note) {
  return note.level == experiment::Note::Level::info && note.text.ends_with(".safetensors") &&
         (note.text.starts_with("checkpoint ") || note.text.starts_with("best model "));
}

}  // namespace

experiment::RunStarted started_of(const StateJson& line) {
  return {.name = clean_at(line, "name"),
          .directory = clean_at(line, "directory"),
          .strategy = clean_at(line, "strategy"),
          .model = clean_at(line, "model"),
          .dataset = clean_at(line, "dataset"),
          .workers = small_at(line, "workers"),
          .servers = small_at(line, "servers"),
          .epochs = small_at(line, "epochs"),
          .parameters = count_at(line, "parameters"),
          .epoch_samples = count_at(line, "epoch_samples"),
          .epoch_position = std::max(real_at(line, "epoch_position"), 0.0),
          .steps = count_at(line, "steps"),
          .samples = count_at(line, "samples"),
          .train_s = real_at(line, "train_s")};
}

experiment::WorkerProgress progress_of(const StateJson& line) {
  experiment::WorkerProgress progress;
  progress.worker = small_at(line, "worker");
  progress.steps = count_at(line, "steps");
  progress.samples = count_at(line, "samples");
  const auto& recent = object_at(line, "recent");
  progress.recent_samples = count_at(recent, "samples");
  progress.loss = real_at(recent, "loss");
  progress.loss_sum = progress.loss * static_cast<double>(progress.recent_samples);
  progress.compute_s = real_at(line, "compute_s");
  progress.forward_s = real_at(line, "forward_s");
  progress.backward_s = real_at(line, "backward_s");
  progress.optimizer_s = real_at(line, "optimizer_s");
  progress.exchange_s = real_at(line, "exchange_s");
  progress.wait_s = real_at(line, "wait_s");
  progress.load_s = real_at(line, "load_s");
  progress.exchanges = count_at(line, "exchanges");
  progress.dropped = count_at(line, "dropped");
  progress.skipped = count_at(line, "skipped");
  progress.refused = count_at(line, "refused");
  progress.passed = count_at(line, "passed");
  progress.replaced = count_at(line, "replaced");
  progress.bytes = count_at(line, "bytes");
  progress.staleness = numbers_at<std::uint64_t>(line, "staleness");
  for (const auto updates : progress.staleness) progress.staleness_count += updates;
  progress.staleness_sum = static_cast<std::uint64_t>(
      std::llround(std::max(real_at(line, "staleness_mean"), 0.0) * static_cast<double>(progress.staleness_count)));
  progress.staleness_max = count_at(line, "staleness_max");
  progress.waits = numbers_at<double>(line, "waits");
  return progress;
}

experiment::EpochReport epoch_of(const StateJson& line) {
  const auto &train = object_at(line, "train"), &test = object_at(line, "test");
  return {.epoch = small_at(line, "epoch"),
          .epochs = small_at(line, "epochs"),
          .steps = count_at(line, "steps"),
          .train_loss = real_at(train, "loss", kNoNumber),
          .train_accuracy = real_at(train, "accuracy", kNoNumber),
          .test_loss = real_at(test, "loss", kNoNumber),
          .test_accuracy = real_at(test, "accuracy", kNoNumber),
          .test_top5 = real_at(test, "top5", -1),
          .images_per_s = real_at(train, "images_per_s"),
          .lr = real_at(line, "lr"),
          .train_s = real_at(line, "train_s"),
          .samples = count_at(line, "samples")};
}

experiment::EvaluationReport evaluation_of(const StateJson& line) {
  return {.validation = text_at(line, "split") == "validation",
          .epoch = real_at(line, "epoch"),
          .steps = count_at(line, "steps"),
          .loss = real_at(line, "loss", kNoNumber),
          .accuracy = real_at(line, "accuracy", kNoNumber),
          .top5 = real_at(line, "top5", -1),
          .lr = real_at(line, "lr"),
          .train_s = real_at(line, "train_s"),
          .samples = count_at(line, "samples")};
}

experiment::LedgerReport ledger_of(const StateJson& line) {
  return {.epoch = small_at(line, "epoch"),
          .size = count_at(line, "size"),
          .done = count_at(line, "done"),
          .given_up = count_at(line, "given_up"),
          .leased = count_at(line, "leased"),
          .free = count_at(line, "free"),
          .omitted = count_at(line, "omitted")};
}

experiment::Note note_of(const StateJson& line) {
  using Level = experiment::Note::Level;
  const auto level = text_at(line, "level");
  return {.level = level == "error"     ? Level::error
                   : level == "warning" ? Level::warning
                                        : Level::info,
          .text = clean_at(line, "text")};
}

std::optional<core::Error> error_of_end(const StateJson& line) {
  const auto& error = object_at(line, "error");
  if (error.is_null()) return std::nullopt;
  const auto code = text_at(error, "code");
  core::Error found{core::Errc::internal, clean_at(error, "message")};
  for (int i = 0; i <= static_cast<int>(core::kLastErrc); ++i)
    if (core::name(static_cast<core::Errc>(i)) == code) found.code = static_cast<core::Errc>(i);
  return found;
}

report::Console& RunLines::console() {
  if (!console_) {
    report::ConsoleOptions options;
    options.mode = report::ConsoleOptions::Mode::plain;
    options.color = false;
    options.stream = stream_;
    console_ = std::make_unique<report::Console>(options, *clock_);
  }
  return *console_;
}

void RunLines::read(const StateJson& line) {
  const auto kind = text_at(line, "kind");
  if (kind == "started") {
    console_.reset();  // a session of its own
    workers_.clear();
    started_ = started_of(line);
    console().started(started_);
  } else if (kind == "worker") {
    auto progress = progress_of(line);
    if (!line.contains("waits"))
      progress.waits = workers_[progress.worker].waits;  // with many members they are in few lines
    console().progress(progress);
    workers_[progress.worker] = std::move(progress);
  } else if (kind == "epoch") {
    epoch_ = epoch_of(line);
    console().epoch(*epoch_);
  } else if (kind == "evaluation") {
    console().evaluation(evaluation_of(line));
  } else if (kind == "ledger") {
    console().ledger(ledger_of(line));
  } else if (kind == "note") {
    if (const auto note = note_of(line); !names_a_checkpoint(note)) console().note(note);
  }
}

experiment::Summary RunLines::summary_of(const StateJson& end, const StateJson& file) const {
  experiment::Summary summary;
  summary.dataset = started_.dataset;
  summary.samples = count_at(end, "samples");
  summary.wall_s = real_at(end, "wall_s");
  summary.stopped_by = clean_at(end, "stopped_by");
  const auto& test = object_at(file, "test");
  summary.test_loss = real_at(test, "loss", epoch_ ? epoch_->test_loss : kNoNumber);
  summary.test_accuracy = real_at(test, "accuracy", epoch_ ? epoch_->test_accuracy : kNoNumber);
  summary.test_top5 = real_at(test, "top5", epoch_ ? epoch_->test_top5 : -1);
  summary.images_per_s = real_at(object_at(file, "train"), "images_per_s");
  double staleness = 0;
  std::uint64_t updates = 0;
  for (const auto& [rank, worker] : workers_) {
    summary.per_worker.push_back(worker);
    staleness += static_cast<double>(worker.staleness_sum);
    updates += worker.staleness_count;
    summary.staleness_max = std::max(summary.staleness_max, worker.staleness_max);
  }
  summary.staleness_mean = updates > 0 ? staleness / static_cast<double>(updates) : 0;
  return summary;
}

void RunLines::read_end(const StateJson& line, const StateJson& summary) {
  const auto error = error_of_end(line);
  console().ended(
      {.summary = summary_of(line, summary), .failed = error.has_value(), .error = error.value_or(core::Error{})});
  console_.reset();
}

}  // namespace troupe::apps
