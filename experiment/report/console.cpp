#include "experiment/report/console.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text/plural.hpp"
#include "experiment/position/run_position.hpp"
#include "experiment/report/console_text.hpp"
#include "experiment/report/loss_history.hpp"
#include "experiment/report/terminal.hpp"

namespace troupe::report {
namespace {

using namespace std::chrono_literals;

constexpr core::Duration kLivePeriod = 100ms;
constexpr core::Duration kPlainPeriod = 5s;
constexpr double kRateWindow = 0.5;  // working seconds between two speed measurements of a worker

/// The displayed state of a worker: its newest report, and its recent speed.
struct Row {
  experiment::WorkerProgress latest;
  double images_per_s = 0;
  std::uint64_t samples_before = 0;
  double busy_before_s = 0;

  void update(const experiment::WorkerProgress& progress) {
    const double last_loss = latest.loss;
    latest = progress;
    if (progress.recent_samples == 0) latest.loss = last_loss;
    const double busy_s = progress.compute_s + progress.exchange_s + progress.wait_s + progress.load_s;
    const double window = busy_s - busy_before_s;
    if (window < kRateWindow && images_per_s > 0) return;
    if (window <= 0 || progress.samples < samples_before) return;
    const double now = static_cast<double>(progress.samples - samples_before) / window;
    images_per_s = images_per_s > 0 ? 0.5 * images_per_s + 0.5 * now : now;
    samples_before = progress.samples;
    busy_before_s = busy_s;
  }
};

ConsoleOptions::Mode decided(const ConsoleOptions& options) {
  if (options.mode != ConsoleOptions::Mode::automatic) return options.mode;
  return is_live_terminal(options.stream) ? ConsoleOptions::Mode::live : ConsoleOptions::Mode::plain;
}

}  // namespace

struct Console::State {
  using Mode = ConsoleOptions::Mode;

  State(const ConsoleOptions& options, const core::Clock& clock)
      : mode(decided(options)),
        unicode(speaks_utf8()),
        stop(options.stop),
        learning_rate(options.learning_rate),
        clock(clock),
        region(options.stream, options.color && mode == Mode::live && allows_color()),
        last(clock.now()) {}

  /// Prints above the live lines, if any.
  void print(const StyledLine& line) {
    if (mode == Mode::quiet) return;
    for (const auto& part : line.wrapped(columns())) region.print(part);
  }

  /// Lines to a file or a pipe are as long as they are.
  [[nodiscard]] std::size_t columns() const {
    return mode == Mode::live ? region.size().columns - 1 : std::numeric_limits<std::size_t>::max();
  }

  Row& row(std::uint32_t worker) {
    auto at = std::ranges::find(rows, worker, [](const Row& r) { return r.latest.worker; });
    if (at != rows.end()) return *at;
    at = std::ranges::find_if(rows, [&](const Row& r) { return r.latest.worker > worker; });
    at = rows.insert(at, Row{});
    at->latest.worker = worker;
    return *at;
  }

  /// Samples, by all workers in this session.
  [[nodiscard]] double computed() const {
    double samples = 0;
    for (const Row& r : rows) samples += static_cast<double>(r.latest.samples);
    return samples;
  }

  /// An evaluation of the model after so many samples of the run.
  void learn(double epochs, std::uint64_t samples) {
    if (samples > run.samples) epochs_done.learn(epochs, static_cast<double>(samples - run.samples));
  }

  [[nodiscard]] Position position() const {
    Position p;
    p.epochs = std::max(run.epochs, 1u);
    for (const Row& r : rows) p.images_per_s += r.images_per_s;
    const double done = std::clamp(epochs_done.after(computed()), 0.0, static_cast<double>(p.epochs));
    // An epoch ends with its evaluation: until then its whole part is done. Not every epoch may have one.
    constexpr double kBegun = 0.02;
    const auto begun = std::max(epochs_reported, static_cast<std::uint32_t>(std::max(done - kBegun, 0.0)));
    p.epoch = std::min({static_cast<std::uint32_t>(done), begun, p.epochs - 1}) + 1;
    p.fraction = std::min(done - (p.epoch - 1), 1.0);
    if (learning_rate) p.lr = learning_rate(done) * lr_factor;
    if (p.images_per_s > 0) {
      const double epoch_s = epochs_done.samples_per_epoch() / p.images_per_s;
      p.epoch_left_s = (1 - p.fraction) * epoch_s;
      p.run_left_s = (p.epochs - done) * epoch_s;
    }
    return p;
  }

  void refresh() {
    if (stop.stop_requested() && !std::exchange(told_of_stop, true))
      print(note_line({experiment::Note::Level::info,
                       "finishing the batches under way and saving a checkpoint; Ctrl-C again leaves without it"}));
    if (mode == Mode::quiet || rows.empty() || ended) return;
    const auto now = clock.now();
    if (now - last < (mode == Mode::live ? kLivePeriod : kPlainPeriod)) return;
    last = now;
    if (mode == Mode::live)
      draw();
    else
      print_progress();
  }

  void draw() {
    const auto size = region.size();
    std::vector<StyledLine> lines;
    std::vector<experiment::WorkerProgress> latest;
    for (const Row& r : rows) latest.push_back(r.latest);
    const auto now = position();
    auto losses_now = loss_line(losses, now.lr, size.columns - 1, unicode);
    auto worst = worst_wait_line(latest);
    // The count of hidden workers, the curve, the longest wait, the bar, the cursor.
    const std::size_t others = std::size_t{3} + (losses_now ? 1 : 0) + (worst ? 1 : 0);
    const std::size_t space = size.rows > others ? size.rows - others : 1;
    const std::size_t shown = rows.size() <= space + 1 ? rows.size() : space;
    for (std::size_t i = 0; i < shown; ++i)
      lines.push_back(worker_line(rows[i].latest, rows[i].images_per_s, size.columns - 1));
    if (shown < rows.size())
      lines.emplace_back(fmt::format("and {} more {}", rows.size() - shown, core::noun(rows.size() - shown, "worker")),
                         Style::dim);
    if (losses_now) lines.push_back(std::move(*losses_now));
    if (worst) lines.push_back(std::move(*worst));
    lines.push_back(bar_line(now, size.columns - 1, unicode));
    region.draw(lines);
  }

  void print_progress() {
    std::uint64_t steps = 0;
    double loss = 0;
    double known = 0;
    for (const Row& r : rows) {
      steps += r.latest.steps;
      if (r.latest.samples == 0) continue;
      loss += r.latest.loss;
      ++known;
    }
    if (std::exchange(steps_printed, steps) == steps) return;  // nothing new: an evaluation, a checkpoint
    print(progress_line(position(), steps, known > 0 ? std::optional(loss / known) : std::nullopt));
  }

  Mode mode;
  bool unicode;
  std::stop_token stop;
  std::function<double(double)> learning_rate;
  const core::Clock& clock;
  LiveRegion region;
  core::Duration last;  // time of the last output
  experiment::RunStarted run;
  std::vector<Row> rows;  // by worker
  LossHistory losses;
  experiment::RunPosition epochs_done{.epoch_samples = 1};
  std::uint32_t epochs_reported = 0;
  double lr_factor = 1;  // of a plateau schedule
  std::uint64_t steps_printed = 0;
  bool told_of_stop = false;
  bool ended = false;
};

Console::Console(const ConsoleOptions& options, const core::Clock& clock)
    : state_(std::make_unique<State>(options, clock)) {}
Console::~Console() = default;

void Console::started(const experiment::RunStarted& run) {
  state_->run = run;
  state_->epochs_done.start(run.epoch_position, static_cast<double>(std::max<std::uint64_t>(run.epoch_samples, 1)),
                            run.epochs);
  state_->epochs_reported = static_cast<std::uint32_t>(run.epoch_position);
  state_->lr_factor = run.lr_factor;
  state_->print(started_line(run));
  if (!run.directory.empty()) state_->print(directory_line(run.directory));
}

void Console::progress(const experiment::WorkerProgress& progress) {
  state_->row(progress.worker).update(progress);
  state_->losses.add(progress.loss, progress.recent_samples);
  state_->refresh();
}

void Console::ledger(const experiment::LedgerReport& report) {
  const auto epochs =
      experiment::ledger_position(report.epoch, static_cast<double>(report.size), static_cast<double>(report.omitted),
                                  static_cast<double>(report.done + report.given_up));
  if (epochs) state_->epochs_done.learn(*epochs, state_->computed());
}

void Console::epoch(const experiment::EpochReport& report) {
  state_->learn(report.epoch, report.samples);
  state_->epochs_reported = report.epoch;
  state_->print(epoch_line(report));
  state_->last = state_->clock.now();  // a progress line beside it would add nothing
}

void Console::evaluation(const experiment::EvaluationReport& report) {
  state_->lr_factor = report.lr_factor;
  state_->learn(report.epoch, report.samples);
  state_->print(evaluation_line(report));
}

void Console::note(const experiment::Note& note) {
  if (note.level == experiment::Note::Level::error && state_->mode == ConsoleOptions::Mode::quiet)
    state_->region.print(note_line(note));
  else
    state_->print(note_line(note));
}

void Console::ended(const experiment::RunEnd& end) {
  state_->ended = true;
  state_->region.close();
  for (const auto& line : closing_table(end, state_->run.directory, state_->columns())) state_->print(line);
}

void Console::tick() { state_->refresh(); }

}  // namespace troupe::report
