#include "tests/histories/oracle.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tests/histories/record.hpp"

namespace troupe::histories {

using nlohmann::json;
using nodes::Process;
using nodes::program;

namespace {

using Lines = std::vector<std::string>;

void append(Lines& to, const Lines& more) { to.insert(to.end(), more.begin(), more.end()); }

double at(const json& summary, const char* section, const char* key) {
  const auto& value = summary.at(section).at(key);
  return value.is_number() ? value.get<double>() : std::nan("");
}

std::int64_t epoch_size(const History& history) {
  const auto samples = history.setting("data.train_samples");
  return samples.empty() ? 1200 : std::stoll(samples);
}

/// The same run without events, in one process and at full speed.
json undisturbed(const History& history, std::uint64_t epochs, const tests::Folder& folder, Lines& wrong) {
  auto command = program({"train", folder.file("config.toml"), "--quiet", "--json"});
  const auto set = [&command](const std::string& setting) { command.insert(command.end(), {"--set", setting}); };
  set(fmt::format("cluster.workers={}", history.workers));
  for (const auto& setting : history.settings)
    if (!setting.starts_with("exchange.") && (!setting.starts_with("run.") || setting.starts_with("run.seed=")))
      set(setting);
  for (const auto* setting : {"cluster.synthetic_step_ms=0", "cluster.slowdown=1", "cluster.server_placement=auto",
                              "run.journal=off", "run.checkpoint_every=never"})
    set(setting);
  set(fmt::format("run.epochs={}", epochs));
  set("run.dir=" + folder.file("undisturbed"));
  Process run(std::move(command));
  if (const int code = run.wait(); code != 0)
    wrong.push_back(fmt::format("undisturbed, it ends with exit code {}: {}", code, run.err()));
  return json::parse(run.out(), nullptr, false);
}

/// Tolerances: a run recovers from the effects of a fault (lost optimizer state, passed-over steps, another number of workers) within a few
/// epochs, and runs of a few epochs with different seeds differ by less.
void check_learning(const History& history, const json& summary, const tests::Folder& folder, Lines& wrong) {
  constexpr double kFactor = 1.6, kMargin = 0.35;
  const auto twin = undisturbed(history, summary.at("epochs"), folder, wrong);
  if (twin.is_discarded()) return;
  const double loss = at(summary, "test", "loss"), alone = at(twin, "test", "loss");
  if (!(loss <= kFactor * alone + kMargin))
    wrong.push_back(fmt::format("test loss {:.4f}; undisturbed {:.4f}", loss, alone));
  const double accuracy = at(summary, "test", "accuracy"), expected = at(twin, "test", "accuracy");
  constexpr double kChance = 0.1, kNoise = 0.1;  // of 200 samples
  if (!(accuracy >= kChance + (expected - kChance) * 0.7 - kNoise))
    wrong.push_back(fmt::format("test accuracy {:.3f}; undisturbed {:.3f}", accuracy, expected));
}

void check_counts(const Conduct& conduct, const Accounts& accounts, const Outcome& outcome, Lines& wrong) {
  const auto& summary = outcome.summary;
  const std::uint64_t steps = summary.at("steps"), samples = summary.at("samples"), epochs = summary.at("epochs");
  if (steps < accounts.steps || steps > accounts.steps_most)
    wrong.push_back(
        fmt::format("summary.json: {} steps; the journal has {} to {}", steps, accounts.steps, accounts.steps_most));
  if (!outcome.lost && !conduct.passes_over && samples != accounts.samples)
    wrong.push_back(fmt::format("summary.json: {} samples; the journal has {}", samples, accounts.samples));
  if (epochs != accounts.epochs)
    wrong.push_back(fmt::format("summary.json: {} epochs; the journal has {}", epochs, accounts.epochs));
  if (!(at(summary, "train", "loss") > 0)) wrong.push_back("summary.json: no training loss");
  for (const auto& worker : summary.at("per_worker"))
    for (const auto* key : {"compute_s", "exchange_s", "wait_s", "load_s"})
      if (worker.at(key).get<double>() < 0)
        wrong.push_back(fmt::format("summary.json: {} of a worker is {}", key, worker.at(key).dump()));
}

/// Every hash that the records cover: all of them, if no process was killed before it had handed in its last records.
void check_replay(const History& history, const Outcome& outcome, Lines& wrong) {
  Process replay(program({"replay", outcome.run, "--json"}));
  const int code = replay.wait();
  const auto replayed = json::parse(replay.out(), nullptr, false);
  if (code != 0 || replayed.is_discarded())
    return wrong.push_back(fmt::format("`troupe replay` ends with exit code {}: {}", code, replay.err()));
  const auto expect = [&](bool holds, const char* what) {
    if (!holds) wrong.push_back(fmt::format("`troupe replay`: {}: {}", what, replay.out()));
  };
  expect(replayed.at("hashes") > 0, "nothing was compared");
  const bool bounded = !history.setting("run.journal").empty();
  expect(bounded || replayed.at("missing") == 0, "segments are missing");
  if (outcome.lost || outcome.crashed) return;
  expect(replayed.at("replayed") == replayed.at("events"), "not everything was replayed");
  expect(replayed.at("complete") == (replayed.at("missing") == 0), "it is not complete");
  expect(replayed.at("center_hash") == outcome.summary.at("center_hash"), "it comes to another model");
}

Lines judge_all(const History& history, const Outcome& outcome, const tests::Folder& folder) {
  Lines wrong = outcome.wrong;
  if (outcome.run.empty() || outcome.summary.is_discarded() || outcome.summary.is_null()) return wrong;
  const auto conduct = conduct_of(history);
  for (const auto& file : temporaries(outcome.run)) wrong.push_back("a temporary file is left: " + file);
  if (const auto reports = read_reports(outcome.run))
    append(wrong, check_reports(*reports, outcome.summary.at("epochs")));
  else
    wrong.push_back(reports.error().message);
  if (const auto segments = read_segments(outcome.run)) {
    const auto accounts = account({epoch_size(history), conduct.in_step, conduct.passes_over}, *segments);
    append(wrong, accounts.wrong);
    if (history.setting("run.journal").empty() && !segments->empty() && segments->front().number != 1)
      wrong.push_back(
          fmt::format("run.journal = \"all\", and the journal begins with segment {}", segments->front().number));
    check_counts(conduct, accounts, outcome, wrong);
  } else {
    wrong.push_back(segments.error().message);
  }
  check_replay(history, outcome, wrong);
  check_learning(history, outcome.summary, folder, wrong);
  return wrong;
}

}  // namespace

Lines judge(const History& history, const Outcome& outcome, const tests::Folder& folder) try {
  return judge_all(history, outcome, folder);
} catch (const json::exception& e) {
  auto wrong = outcome.wrong;
  wrong.push_back(std::string("what the run has left cannot be read: ") + e.what());
  return wrong;
}

}  // namespace troupe::histories
