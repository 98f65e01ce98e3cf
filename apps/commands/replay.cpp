#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/arguments/config.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/devices.hpp"
#include "apps/output.hpp"
#include "apps/progress_line.hpp"
#include "core/text/layout.hpp"
#include "core/text/plural.hpp"
#include "core/text/utc_text.hpp"
#include "experiment/directory/run_directory.hpp"
#include "sim/replay/run.hpp"
#include "sim/replay/session.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::apps {
namespace {

struct ReplayArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::string until;
  bool json = false;
};

std::string sentences(const replay::ReplayReport& report) {
  std::string text;
  for (const auto& note : report.notes) text += note_text(note);
  for (const auto& segment : report.segments) {
    if (segment.complete) {
      text += fmt::format("{}: {}, {}\n", segment.path, core::counted(segment.events, "event"),
                          !report.same_numbers  ? std::string("the same schedule under other numbers")
                          : segment.hashes == 1 ? std::string("1 hash, as recorded")
                                                : fmt::format("{} hashes, all as recorded", segment.hashes));
    } else {
      text += fmt::format(
          "{}: cut off; {} of {} replayed, {} as recorded; what follows needs records that were not written\n",
          segment.path, segment.replayed, core::counted(segment.events, "event"),
          core::counted(segment.hashes, "hash", "hashes"));
    }
  }
  const auto& s = report.summary;
  const auto result = [](std::uint64_t steps, std::uint64_t samples, double accuracy, double loss,
                         const std::string& hash) {
    // A program may tell one of the two, or none.
    std::vector<std::string> scores;
    if (std::isfinite(accuracy)) scores.push_back(fmt::format("accuracy {:.2f} %", 100 * accuracy));
    if (std::isfinite(loss)) scores.push_back(fmt::format("loss {:.4f}", loss));
    const auto test = scores.empty() ? std::string("not evaluated") : fmt::format("test {}", fmt::join(scores, ", "));
    return fmt::format("{}, {}; {}, {}\n", core::counted(steps, "step"), core::counted(samples, "sample"), test, hash);
  };
  if (const auto& r = report.recorded)
    text += "recorded  " + result(r->steps, r->samples, r->test_accuracy, r->test_loss, r->center_hash);
  text += "replayed  " + result(s.steps, s.samples, s.test_accuracy, s.test_loss, s.center_hash);
  if (report.same_numbers)
    text += fmt::format("{}: {} of {} replayed, {} compared\n",
                        report.complete() ? "verified from beginning to end" : "not the whole run", report.replayed(),
                        core::counted(report.events(), "event"), core::counted(report.hashes(), "hash", "hashes"));
  return text;
}

/// Keeps beside the journal what was found. Where that cannot be written, the replay is as good.
void keep(const std::string& run, std::vector<replay::SegmentVerification> found) {
  if (found.empty()) return;
  const auto kept = replay::remember(run, {core::utc_text(std::time(nullptr)), TROUPE_VERSION, std::move(found)});
  if (!kept)
    print_note(
        {experiment::Note::Level::warning, "the replay's result is not kept with the run: " + kept.error().message});
}

/// Only up to a place in the journal.
core::Result<void> run_until(const replay::ReplayRequest& request, const replay::Until& until, nn::Backend& backend,
                             ProgressLine& progress, bool json) {
  const auto reached = replay::replay_until(request, until, backend);
  progress.clear();
  if (!reached) return tl::unexpected(reached.error());
  return print(json ? to_json(*reached) + "\n" : to_text(*reached));
}

core::Result<void> run_replay(const ReplayArguments& arguments) {
  const auto until =
      arguments.until.empty() ? core::Result<replay::Until>(replay::Until{}) : replay::parse_until(arguments.until);
  if (!until) return tl::unexpected(until.error());
  const auto run = experiment::RunDirectory::open(arguments.run);
  if (!run) return tl::unexpected(run.error());
  if (auto checked = replay::check_overrides(run->config_file(), arguments.overrides); !checked) return checked;
  const auto settings = load_settings(run->config_file(), arguments.overrides, experiment::Use::remains);
  if (!settings) return tl::unexpected(settings.error());
  // Sessions may have computed on other devices: two names stand for any.
  const auto backend =
      settings->model.command.empty() ? make_devices_backend({settings->device(0), "cpu"}, 2) : make_backend(*settings);
  if (!backend) return tl::unexpected(backend.error());
  ProgressLine progress("replay");
  std::vector<replay::SegmentVerification> found;
  const replay::ReplayRequest request{
      arguments.run, arguments.overrides,
      [&](double done, std::size_t segments) {
        progress.show(
            done / static_cast<double>(segments),
            segments > 1 ? fmt::format("segment {} of {}", static_cast<std::size_t>(done) + 1, segments) : "");
      },
      [&](replay::SegmentVerification segment) { found.push_back(std::move(segment)); }};
  if (!arguments.until.empty()) {
    auto ended = run_until(request, *until, **backend, progress, arguments.json);
    keep(run->path(), std::move(found));
    return ended;
  }
  const auto report = replay::replay_run(request, **backend);
  progress.clear();
  keep(run->path(), std::move(found));
  if (!report) return tl::unexpected(report.error());
  for (const auto& note : report->notes)
    if (arguments.json) print_note(note);
  const auto printed = print(arguments.json ? to_json(*report) + "\n" : sentences(*report));
  return printed ? report->check() : printed;
}

Action declare_replay(CLI::App& app) {
  const auto arguments = std::make_shared<ReplayArguments>();
  app.add_option("RUN_DIR", arguments->run, "a run's directory, with its journal")->required();
  auto* const set = add_set(app, arguments->overrides);
  app.add_option("--until", arguments->until,
                 "replay up to there and show the hashes of the state: 40 steps of every worker (40) or of one "
                 "(worker1:40), or an event of a member (worker1#31, server0#12); 2/ before it: in segment 2")
      ->type_name("PLACE")
      ->excludes(set);
  app.add_flag("--json", arguments->json,
               "print the summary, computed anew, and what was compared, as one line of JSON");
  return [arguments] { return run_replay(*arguments); };
}

/// The strategies' options that --set may change; it has no topics of its own.
core::Result<std::string> replay_appendix(std::string_view topic, std::size_t columns) {
  if (!topic.empty() && topic != "all")
    return core::fail(core::Errc::usage, fmt::format("troupe replay has no help about \"{}\"", topic));
  auto text = core::wrapped(
                  "What a replay with the recorded numbers finds is kept as replay.json in the run's directory; the "
                  "dashboard shows it beside each event.",
                  columns, 0, 0) +
              "\n\n" +
              core::wrapped(
                  "--set replays the recorded schedule with other numbers. It can change train.*, and of a strategy's "
                  "options those that never change which exchange comes when:",
                  columns, 0, 0) +
              "\n\n";
  for (const auto& row : strategies::registry())
    text += core::list_row(
        row.name, row.replayable_options.empty() ? "none" : fmt::format("{}", fmt::join(row.replayable_options, ", ")),
        14, columns);
  return text;
}

}  // namespace

Command replay() {
  return {.name = "replay",
          .summary = "execute a recorded run again, in the recorded order, and compare every hash",
          .examples =
              "  troupe replay runs/20260102-030405-mnist-easgd\n"
              "  troupe replay runs/20260102-030405-mnist-easgd --set strategy.alpha=0.1\n"
              "  troupe replay runs/20260102-030405-mnist-easgd --until worker1:40\n",
          .declare = declare_replay,
          .appendix = replay_appendix};
}

}  // namespace troupe::apps
