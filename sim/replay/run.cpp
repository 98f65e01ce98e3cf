#include "sim/replay/run.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/buffer.hpp"
#include "core/clock.hpp"
#include "core/text/plural.hpp"
#include "experiment/directory/run_directory.hpp"
#include "experiment/evaluation.hpp"
#include "experiment/exchange_plan.hpp"
#include "nn/checkpoint/checkpoint.hpp"
#include "nn/hash.hpp"
#include "sim/replay/result/replay_totals.hpp"
#include "sim/replay/segment.hpp"
#include "sim/replay/session.hpp"

namespace troupe::replay {

using experiment::Checkpoint;

namespace {

core::Error of(const Diverged& diverged, bool same_numbers) {
  return {core::Errc::diverged,
          same_numbers ? diverged.what()
                       : std::string("the recorded schedule does not fit these settings: ") + diverged.what()};
}

/// The start state of the segment's members. Null: the start of the run.
core::Result<std::shared_ptr<const Checkpoint>> start_of(const experiment::JournalSegment& segment,
                                                         const experiment::RunSpec& spec) {
  if (segment.start.empty()) {
    if (segment.number == 1 && spec.settings->run.init.empty()) return nullptr;
    return core::fail(core::Errc::corrupt,
                      fmt::format("{}: its start state is missing, so it cannot be replayed", segment.path));
  }
  auto loaded = nn::load_checkpoint(segment.start);
  if (!loaded) return tl::unexpected(loaded.error());
  auto checkpoint = experiment::load(loaded->file, spec.graph);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  return std::make_shared<const Checkpoint>(std::move(*checkpoint));
}

/// Segment numbers have no gaps; only the oldest segments are ever removed.
core::Result<void> check_whole(const std::string& directory, const std::vector<experiment::JournalSegment>& segments) {
  std::vector<int> missing;
  int next = segments.front().number;
  for (const auto& segment : segments) {
    for (; next < segment.number; ++next) missing.push_back(next);
    ++next;
  }
  if (missing.empty()) return {};
  return core::fail(
      core::Errc::corrupt,
      fmt::format("{}: the journal has gaps: {} {} {} missing; restore the files, or remove the older segments",
                  directory, core::noun(missing.size(), "segment"), fmt::join(missing, ", "),
                  core::noun(missing.size(), "is", "are")));
}

class Replayer {
 public:
  Replayer(const ReplayRequest& request, nn::Backend& backend, experiment::RunDirectory directory)
      : request_(request), backend_(backend), directory_(std::move(directory)) {}

  core::Result<ReplayReport> run() {
    const auto segments = directory_.journals();
    if (!segments) return tl::unexpected(segments.error());
    if (segments->empty()) {
      return core::fail(core::Errc::config, fmt::format("{}: no journal; runs keep one with run.journal = \"all\" or a "
                                                        "size like \"64 MB\"",
                                                        directory_.path()));
    }
    if (auto whole = check_whole(directory_.path(), *segments); !whole) return tl::unexpected(whole.error());
    report_.missing = static_cast<std::size_t>(segments->front().number) - 1;
    report_.same_numbers = same_numbers();
    segments_ = segments->size();
    for (const auto& segment : *segments)
      if (auto fit = check_overrides(config_of(segment), request_.overrides); !fit) return tl::unexpected(fit.error());
    for (const auto& segment : *segments) {
      if (auto done = one(segment, segment.path == segments->back().path); !done) return tl::unexpected(done.error());
    }
    return std::move(report_);
  }

  /// Each segment begins with its own start state: the others need not be replayed.
  core::Result<ReachedState> reach(const Until& until) {
    const auto segments = directory_.journals();
    if (!segments) return tl::unexpected(segments.error());
    for (auto file = segments->rbegin(); file != segments->rend(); ++file) {
      if (until.segment > 0 && file->number != until.segment) continue;
      auto opened = open(*file);
      if (!opened) return tl::unexpected(opened.error());
      const auto found = cut_at(opened->recording, until);
      if (!found) return tl::unexpected(found.error());
      if (!*found) continue;
      const auto all = static_cast<double>(std::max<std::size_t>(opened->recording.events(), 1));
      const auto tell = [&](std::size_t consumed) { request_.progress(static_cast<double>(consumed) / all, 1); };
      auto segment = members_of(*file, *opened, request_.progress ? tell : std::function<void(std::size_t)>(), {});
      if (!segment) return tl::unexpected(segment.error());
      try {
        const auto ran = run_until(**segment, until);
        tell_verified(*file, *opened, **segment);
        if (!ran) return tl::unexpected(ran.error());
      } catch (const Diverged& diverged) {
        tell_verified(*file, *opened, **segment, &diverged);
        return tl::unexpected(of(diverged, true));
      }
      auto reached = state_at(**segment, until);
      if (!reached) return reached;
      reached->run = directory_.path();
      reached->segment = file->number;
      return reached;
    }
    return core::fail(core::Errc::usage, fmt::format("--until {}: no segment of the journal of {} comes so far",
                                                     to_text(until), directory_.path()));
  }

 private:
  [[nodiscard]] bool same_numbers() const { return request_.overrides.empty(); }

  [[nodiscard]] std::string config_of(const experiment::JournalSegment& segment) const {
    return segment.config.empty() ? directory_.config_file() : segment.config;
  }

  /// Segments of one session share one configuration: the data is opened once.
  core::Result<void> enter(const experiment::JournalSegment& segment) {
    const auto file = config_of(segment);
    const auto config = core::Config::load(experiment::schema(), file, {});
    if (!config) return tl::unexpected(config.error());
    if (session_ && session_->recorded.settings->config == *config) return {};
    auto session = open_session(file, request_.overrides);
    if (!session) return tl::unexpected(session.error());
    const auto& recorded = *session->recorded.settings;
    if (same_numbers() && !recorded.cluster.deterministic &&
        recorded.backends() != std::vector<std::string_view>{"cpu"})
      return core::fail(core::Errc::config,
                        fmt::format("{}: recorded with cluster.deterministic = false on {}: its numbers differ each "
                                    "time, and no hash can be compared; --set replays its schedule, as in --set "
                                    "train.lr={}",
                                    file, fmt::join(recorded.devices(), ", "), recorded.train.lr));
    running_.clear();  // they refer to the session
    session_.emplace(std::move(*session));
    return {};
  }

  /// The session's plan. It has no backend choices if the recording has none: the backend chooses anew.
  core::Result<experiment::RunPlan> plan_of(const experiment::JournalSegment& segment,
                                            const Recording& recording) const {
    const auto name = segment.plan.empty() ? directory_.path() + "/plan.json" : segment.plan;
    const auto text = directory_.read_plan(segment);
    if (!text) return tl::unexpected(text.error());
    if (recording.plan_hash && (!*text || nn::hash64(std::as_bytes(std::span(**text))) != *recording.plan_hash))
      return core::fail(core::Errc::corrupt,
                        fmt::format("{}: plan.json is not the one that the run was made with", name));
    if (!*text) return experiment::RunPlan{};
    auto plan = experiment::parse_plan(**text, name);
    if (!plan) return tl::unexpected(plan.error());
    if (auto known = check_exchange(plan->exchange, session_->recorded, name, same_numbers()); !known)
      return tl::unexpected(known.error());
    if (auto same = check_arithmetic(*plan, session_->recorded, name); !same && same_numbers())
      return tl::unexpected(same.error());
    return plan;
  }

  /// A segment before its members exist.
  struct Opened {
    std::uint64_t bytes = 0;  // of its file
    std::size_t events = 0;   // of its recording, before that is cut or moved
    std::shared_ptr<const Checkpoint> checkpoint;
    bool goes_on = false;  // it begins in the middle of a session
    experiment::StartState start;
    Recording recording;
    experiment::RunPlan plan;
  };
  core::Result<Opened> open(const experiment::JournalSegment& file) {
    if (auto entered = enter(file); !entered) return tl::unexpected(entered.error());
    const auto& spec = session_->spec;
    auto checkpoint = start_of(file, spec);
    if (!checkpoint) return tl::unexpected(checkpoint.error());
    const bool goes_on = *checkpoint && !(*checkpoint)->members.empty();
    if (auto fits = check_fit(*session_, goes_on); !fits) return tl::unexpected(fits.error());
    auto start = goes_on ? experiment::members_state(spec, **checkpoint) : experiment::StartState{};
    if (!start) return tl::unexpected(begins_otherwise(file, start.error()).error());
    std::error_code unreadable;  // read_recording() says so
    const auto bytes = std::filesystem::file_size(file.path, unreadable);
    auto recording = read_recording(file.path, session_->recorded, goes_on ? &start->membership : nullptr);
    if (!recording) return tl::unexpected(recording.error());
    auto made = plan_of(file, *recording);
    if (!made) return tl::unexpected(made.error());
    if (!goes_on) start = experiment::start_state(spec, checkpoint->get(), made->arithmetic);
    const auto events = recording->events();
    return Opened{bytes,           events, std::move(*checkpoint), goes_on, std::move(*start), std::move(*recording),
                  std::move(*made)};
  }

  void tell_verified(const experiment::JournalSegment& file, const Opened& opened, const Segment& segment,
                     const Diverged* diverged = nullptr) const {
    if (request_.verified && same_numbers())
      request_.verified(segment.verification(file.number, opened.bytes, opened.events, diverged));
  }

  core::Result<std::unique_ptr<Segment>> members_of(const experiment::JournalSegment& file, Opened& opened,
                                                    std::function<void(std::size_t)> progress,
                                                    RunningPrograms running) {
    const auto& spec = session_->spec;
    const bool one_batch = spec.settings->data.batch.size() == 1;  // a plan is for one batch size
    auto segment =
        Segment::open(spec, opened.start, std::move(opened.recording),
                      {.backend = &backend_,
                       .memory = &memory_,
                       .plan = one_batch && !opened.plan.backend.json.empty() ? &opened.plan.backend : nullptr,
                       .exchange = &opened.plan.exchange,
                       .arithmetic = opened.plan.arithmetic,
                       .same_numbers = same_numbers(),
                       .progress = std::move(progress)},
                      std::move(running));
    if (!segment) return tl::unexpected(begins_otherwise(file, segment.error()).error());
    return segment;
  }

  core::Result<void> one(const experiment::JournalSegment& file, bool last) {
    auto opened = open(file);
    if (!opened) return tl::unexpected(opened.error());
    const bool goes_on = opened->goes_on;
    const auto leases = span_of(opened->recording.leases);
    SegmentReport done{.path = file.path, .events = opened->recording.events(), .complete = opened->recording.complete};
    const auto all = std::max<std::size_t>(done.events, 1);
    const auto tell = [this, all](std::size_t consumed) {
      request_.progress(
          static_cast<double>(report_.segments.size()) + static_cast<double>(consumed) / static_cast<double>(all),
          segments_);
    };
    auto running = std::exchange(running_, {});
    if (!goes_on) running.clear();  // a session starts its programs anew
    auto segment =
        members_of(file, *opened, request_.progress ? tell : std::function<void(std::size_t)>(), std::move(running));
    if (!segment) return tl::unexpected(segment.error());
    note_gap(file, opened->checkpoint.get(), goes_on);
    if (!goes_on) has_all_ends_ = true;
    if (totals_.empty() || !goes_on)
      totals_.begin_session(opened->checkpoint ? opened->checkpoint->totals : experiment::RunTotals{}, leases);
    try {
      auto ran = (*segment)->run();
      tell_verified(file, *opened, **segment);
      if (!ran) return ran;
    } catch (const Diverged& diverged) {
      tell_verified(file, *opened, **segment, &diverged);
      return tl::unexpected(of(diverged, same_numbers()));
    }
    done.replayed = (*segment)->consumed();
    done.complete = done.complete && done.replayed == done.events;
    done.hashes = (*segment)->hashes();
    has_all_ends_ = has_all_ends_ && (*segment)->recording().has_all_ends();
    report_.segments.push_back(done);
    totals_.add((*segment)->progress(), (*segment)->epochs(), leases, goes_on);
    if (!last) {
      running_ = (*segment)->take_running();
      return {};
    }
    return sum_up(session_->spec, **segment).map([&] { note_end(file); });
  }

  /// Notes steps before this segment that the replay has not covered.
  void note_gap(const experiment::JournalSegment& file, const Checkpoint* start, bool goes_on) {
    const auto begins = start ? start->totals.steps : 0;
    const auto warning = experiment::Note::Level::warning;
    if (report_.missing > 0 && report_.segments.empty()) {
      const bool limited = session_->recorded.settings->journal.bytes > 0;
      report_.notes.push_back(
          {limited ? experiment::Note::Level::info : warning,
           fmt::format(
               "{}: segment{} missing: the replay begins with segment {}, at step {} of the run; {}", directory_.path(),
               report_.missing == 1 ? " 1 is" : fmt::format("s 1 to {} are", report_.missing), file.number, begins,
               limited ? "run.journal keeps the newest only"
                       : "run.journal keeps all of them: they were removed, or lost")});
    } else if (!goes_on) {
      report_.note_before(file.path, totals_.steps(), begins, has_all_ends_);
    }
  }

  /// Notes steps behind the last segment. A run whose last session left no summary has come as far as its newest checkpoint.
  void note_end(const experiment::JournalSegment& last) {
    auto end = report_.recorded ? report_.recorded->steps : 0;
    if (const auto newest = nn::load_newest(directory_.checkpoints()))
      if (const auto checkpoint = experiment::load(newest->checkpoint.file, session_->spec.graph))
        end = std::max(end, checkpoint->totals.steps);
    report_.note_after(last.path, totals_.steps(), end, has_all_ends_);
  }

  /// The file's checksums protect the members' states: if other settings reject a state, the settings are wrong.
  core::Result<void> begins_otherwise(const experiment::JournalSegment& file, const core::Error& error) const {
    const bool is_incomplete = error.code == core::Errc::data;  // whatever the settings
    if (error.code != core::Errc::corrupt && !is_incomplete) return tl::unexpected(error);
    if (same_numbers() || is_incomplete)
      return core::fail(error.code, fmt::format("{}: {}", file.start, error.message));
    return core::fail(core::Errc::config,
                      fmt::format("--set {}: the recording begins in the middle of the run, and its "
                                  "members cannot go on with these settings: {}: {}",
                                  fmt::join(request_.overrides, ", "), file.start, error.message));
  }

  core::Result<void> sum_up(const experiment::RunSpec& spec, Segment& segment) {
    const auto& settings = *spec.settings;
    auto& summary = report_.summary;
    report_.recorded = ReplayReport::Recorded::of(directory_.read_summary());
    summary = experiment::summary_of(*spec.settings, *spec.graph, spec.workers, spec.servers, directory_.path());
    totals_.fill(summary, spec, report_.segments.back().complete);
    const auto model = segment.model();
    if (!core::host_kernels().all_finite(model)) return diverged("the model's parameters are not finite any more");
    summary.center_hash = nn::center_hash(model);
    auto replica = experiment::compile_evaluation(
        backend_, *spec.graph, experiment::evaluation_options(spec, settings.threads(0), memory_), *spec.source.test);
    if (!replica) return tl::unexpected(replica.error());
    const auto score = experiment::evaluate(**replica, *spec.source.test, model, segment.statistics());
    if (!score) return tl::unexpected(score.error());
    // A program may report no loss.
    if (!std::isfinite(score->loss) && !spec.graph->is_program())
      return diverged("the model's test loss is not a finite number");
    summary.test_loss = score->loss;
    summary.test_accuracy = score->accuracy();
    summary.test_top5 = score->top5 < 0 || score->samples == 0
                            ? -1
                            : static_cast<double>(score->top5) / static_cast<double>(score->samples);
    return {};
  }

  core::Result<void> diverged(const std::string& what) const {
    return core::fail(core::Errc::diverged, fmt::format("{}: diverged: {}{}", directory_.path(), what,
                                                        same_numbers() ? std::string(", as it was recorded")
                                                                       : std::string("; try a smaller train.lr")));
  }

  const ReplayRequest& request_;
  nn::Backend& backend_;
  core::HostAllocator memory_;
  experiment::RunDirectory directory_;
  std::optional<Session> session_;  // of the current segment
  RunningPrograms running_;         // at the end of the segment before
  ReplayTotals totals_;
  bool has_all_ends_ = true;  // of the session's segments so far
  std::size_t segments_ = 0;
  ReplayReport report_;
};

}  // namespace

core::Result<ReachedState> replay_until(const ReplayRequest& request, const Until& until, nn::Backend& backend) {
  auto directory = experiment::RunDirectory::open(request.run);
  if (!directory) return tl::unexpected(directory.error());
  try {
    return Replayer(request, backend, std::move(*directory)).reach(until);
  } catch (const core::KernelsFailed& failed) {
    return tl::unexpected(failed.error());
  }
}

core::Result<ReplayReport> replay_run(const ReplayRequest& request, nn::Backend& backend) {
  auto directory = experiment::RunDirectory::open(request.run);
  if (!directory) return tl::unexpected(directory.error());
  try {
    return Replayer(request, backend, std::move(*directory)).run();
  } catch (const core::KernelsFailed& failed) {
    return tl::unexpected(failed.error());
  }
}

}  // namespace troupe::replay
