#include "apps/sweep/trials.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/grid/results.hpp"
#include "experiment/ledger/ledger.hpp"

namespace troupe::apps {
namespace {

using core::Result;
using grid::RunStatus;
using grid::Status;
using sweep::Step;

Reading reading_of(const RunStatus& run_status, std::int64_t rung_epochs, std::int64_t whole,
                   const std::string& metric) {
  if (run_status.status == Status::diverged)
    return {.reached = true,
            .last = true,
            .score = std::nullopt,
            .diverged_after = experiment::last_position(run_status.directory + "/metrics.jsonl")};
  const auto json = nlohmann::ordered_json::parse(run_status.summary, nullptr, false);
  if (run_status.status != Status::done || !json.is_object()) return {};
  Reading reading;
  const auto epochs = json.value("epochs", std::int64_t{0});
  const auto stopped =
      json.contains("stopped_by") && json["stopped_by"].is_string() ? json["stopped_by"].get<std::string>() : "";
  const bool by_limit = stopped == "max_epochs";
  reading.last = !by_limit;
  reading.reached = reading.last || epochs >= rung_epochs;
  // Complete, though only the rung was asked for: as when a user has trained it to its end.
  if (epochs >= whole) reading.last = true;
  const auto loss = metric.substr(0, metric.rfind('.')) + ".loss";
  bool is_sound = false;
  for (const auto& [key, value] : grid::flatten(json)) {
    if (key == metric && value.is_number()) reading.score = value.get<double>();
    is_sound = is_sound || (key == loss && value.is_number());
  }
  reading.untold = is_sound && !reading.score;
  return reading;
}

}  // namespace

SweepTrials::SweepTrials(const SweepPlan& plan) : plan_(plan), search_(plan.space, plan.options) {
  runs_.file = plan.file;
  runs_.directory = plan.directory;
  runs_.varied = plan.keys();
}

Result<void> SweepTrials::restore(const std::vector<SweepEvent>& events, const std::string& path) {
  std::size_t line = 1;
  for (const auto& event : events) {
    ++line;
    const auto damaged = [&] {
      return core::fail(core::Errc::corrupt,
                        fmt::format("{}:{}: does not follow from the lines before; remove the sweep's directory, or "
                                    "what is from this line on",
                                    path, line));
    };
    const auto& step = event.step;
    elapsed_s_ = std::max(elapsed_s_, event.t);
    if (event.kind == SweepEvent::Kind::pause) continue;
    if (event.kind == SweepEvent::Kind::begin) {
      const auto point = step.rung == 0 ? plan_.space.point_of(event.settings) : sweep::Point{};
      if (!search_.begin(step, point)) return damaged();
      if (step.rung == 0) add(step.trial);
      continue;
    }
    if (step.trial >= search_.trials().size() || search_.trials()[step.trial].under_way != step.rung) return damaged();
    event.kind == SweepEvent::Kind::score ? take(step, event.result, event.t) : take_failure(step, event.error);
  }
  auto index = grid::read_status_index(plan_.directory, runs_.runs, unnamed_in_sweeps());
  if (!index) return tl::unexpected(std::move(index.error()));
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (search_.trials()[i].failed || !states_[i].invalid.empty()) continue;
    set_status(i, std::move(index->statuses[i]));
  }
  return {};
}

void SweepTrials::add(std::size_t trial) {
  const auto& point = search_.trials()[trial].point;
  auto run = plan_.run(trial, point);
  auto& state = states_.emplace_back();
  state.name = plan_.name(trial, point);
  if (run) {
    runs_.runs.push_back(std::move(*run));
    return;
  }
  runs_.runs.push_back({state.name, {0, plan_.choices(point)}, {}, fmt::format("invalid {}", trial)});
  state.status.status = Status::failed;
  state.status.exit_code = core::exit_code(run.error().code);
  state.invalid = std::move(run.error().message);
  state.status.error = state.invalid;
}

void SweepTrials::take(const Step& step, const sweep::Search::Result& result, double t) {
  search_.ended(step, result);
  states_[step.trial].status.score = RunStatus::Score{plan_.options.rungs[step.rung], result.score};
  states_[step.trial].scored_s.push_back(t);
}
void SweepTrials::take_failure(const Step& step, const std::string& error) {
  search_.failed(step);
  auto& status = states_[step.trial].status;
  status.status = Status::failed;
  status.error = error;
}

SweepEvent SweepTrials::beginning(const Step& step, double t) const {
  SweepEvent event{.t = t, .step = step};
  const auto& point = search_.trials()[step.trial].point;
  for (std::size_t i = 0; step.rung == 0 && i < plan_.space.size(); ++i)
    if (point[i]) event.settings.emplace_back(plan_.space[i].key, plan_.space.text(i, *point[i]));
  return event;
}

Reading SweepTrials::read(const Step& step) const {
  return reading_of(states_[step.trial].status, epochs(step), plan_.epochs(), plan_.metric);
}

void SweepTrials::set_status(std::size_t trial, RunStatus status) {
  status.score = states_[trial].status.score;
  states_[trial].status = std::move(status);
}

std::vector<RunStatus> SweepTrials::statuses() const {
  std::vector<RunStatus> all;
  for (const auto& state : states_) all.push_back(state.status);
  return all;
}

sweep::Record SweepTrials::record(double elapsed_s, std::string state) const {
  return record_of(plan_, search_, states_, elapsed_s, std::move(state));
}

std::optional<std::size_t> SweepTrials::best() const {
  const auto order = search_.ranking();
  if (order.empty() || !search_.trials()[order.front()].scores.back()) return std::nullopt;
  return order.front();
}

}  // namespace troupe::apps
