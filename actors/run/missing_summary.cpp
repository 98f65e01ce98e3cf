#include "actors/run/missing_summary.hpp"

#include <fstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/clock.hpp"
#include "experiment/evaluation.hpp"
#include "experiment/ledger/ledger.hpp"
#include "experiment/summary.hpp"
#include "nn/hash.hpp"

namespace troupe::actors {

namespace {

/// Whether metrics.jsonl records an end of the last session without an error.
bool has_ended(const RunDirectory& directory) {
  std::ifstream file(directory.metrics_file());
  bool ended = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(R"({"kind":"started")")) ended = false;
    if (!line.starts_with(R"({"kind":"ended")")) continue;
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ended = json.is_object() && json.contains("error") && json["error"].is_null();
  }
  return ended;
}

/// Whether summary.json is of this end, not of an earlier session.
bool is_there(const RunDirectory& directory, const Summary& summary) {
  std::ifstream file(directory.summary_file());
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("center_hash", "") == summary.center_hash && json.contains("steps") &&
         json["steps"] == summary.steps;
}

Summary of(const RunSpec& spec, const RunDirectory& directory, const Checkpoint& checkpoint) {
  auto summary = experiment::summary_of(*spec.settings, *spec.graph, spec.workers, spec.servers, directory.path());
  ProgressAggregator(spec.workers, spec.servers, checkpoint.totals).fill(summary, checkpoint.totals.train_s);
  summary.epochs = spec.leases->epoch() + (spec.leases->epoch_done() ? 1 : 0);
  summary.wall_s = checkpoint.totals.wall_s;
  const auto& validation = checkpoint.totals.validation;
  summary.validation = {.has = spec.source.validation != nullptr,
                        .loss = validation.loss,
                        .accuracy = validation.accuracy,
                        .top5 = validation.top5};
  experiment::take(summary, checkpoint.totals.watched);
  if (const auto ledger = experiment::last_ledger(directory.metrics_file())) {
    summary.ledger = *ledger;
    summary.wall_s = ledger->wall_s;
  }
  summary.center_hash = nn::center_hash(*checkpoint.vectors.at(""));
  return summary;
}

core::Result<void> write(const RunDirectory& directory, const RunEnd& end, const Note& note) {
  if (auto written = directory.write_summary(to_json(end.summary)); !written) return written;
  auto metrics = MetricsWriter::open(directory.metrics_file());
  if (!metrics) return tl::unexpected(std::move(metrics.error()));
  return metrics->append(experiment::to_json(note, 0)).and_then([&] {
    return metrics->append(experiment::to_json(end, 0));
  });
}

}  // namespace

RunEnd write_missing_summary(const RunSpec& spec, const RunDirectory& directory, const Checkpoint& checkpoint,
                             nn::Backend& backend, const report::ConsoleOptions& console_options) {
  RunEnd end{.summary = of(spec, directory, checkpoint), .failed = false, .error = {}};
  const auto fail = [](core::Error error) { return RunEnd{.summary = {}, .failed = true, .error = std::move(error)}; };
  // A run that trained more than run.epochs did not end at these epochs: a summary of them would be wrong.
  const bool further = spec.leases->epoch() >= static_cast<std::uint64_t>(spec.settings->run.epochs);
  if (further || (has_ended(directory) && is_there(directory, end.summary)))
    return fail({core::Errc::config, fmt::format("{}: all {} epochs are done; add --set run.epochs=N to train longer",
                                                 directory.path(), spec.settings->run.epochs)});
  const auto score = experiment::evaluate(spec, backend, *checkpoint.vectors.at(""), checkpoint.statistics);
  if (!score) return fail(score.error());
  end.summary.test_loss = score->loss;
  end.summary.test_accuracy = score->accuracy();
  end.summary.test_top5 = score->top5_share();
  const Note note{Note::Level::info,
                  fmt::format("all {} epochs are done and the summary is missing: the run was killed after its last "
                              "checkpoint; the summary is written now",
                              spec.settings->run.epochs)};
  const core::SteadyClock clock;
  report::Console console(console_options, clock);
  console.note(note);
  if (auto written = write(directory, end, note); !written) return fail(std::move(written.error()));
  console.ended(end);
  return end;
}

}  // namespace troupe::actors
