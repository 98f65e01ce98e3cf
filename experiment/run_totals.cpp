#include "experiment/run_totals.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

namespace troupe::experiment {

using Json = nlohmann::json;

/// As in a worker line of metrics.jsonl.
void to_json(nlohmann::json& json, const Traffic& row) {
  json = nlohmann::json::array({name(row.purpose), row.member, row.bytes});
}
void from_json(const nlohmann::json& json, Traffic& row) {
  const auto purpose = json.at(0).get<std::string>();
  for (int p = 0; p <= static_cast<int>(kLastPurpose); ++p)
    if (name(static_cast<Purpose>(p)) == purpose)
      row = {static_cast<Purpose>(p), json.at(1).is_null() ? 0 : json.at(1).get<std::uint32_t>(), json.at(2)};
}

/// A worker's sums; figures since the last report are not kept.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WorkerProgress, worker, steps, samples, compute_s, forward_s,
                                                backward_s, optimizer_s, exchange_s, wait_s, load_s, exchanges, dropped,
                                                skipped, refused, passed, replaced, bytes, staleness_sum,
                                                staleness_count, staleness_max, norm_sum, norm_max, staleness, waits,
                                                traffic)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(EpochTotals, loss, top1, samples, began_s, closed, last_loss)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SessionTotals, train_s, samples, workers, gone)

namespace {

Json to_json_of(const TestScore& score) {
  return {{"loss", score.loss}, {"accuracy", score.accuracy}, {"top5", score.top5}};
}

/// Null means not finite.
double number(const Json& json) { return json.is_null() ? std::nan("") : json.get<double>(); }

Json to_json_of(const coordination::EvaluatedAt& at) {
  return {{"leases", at.leases}, {"epoch", at.epoch}, {"train_s", at.train_s}};
}

Json to_json_of(const coordination::WatchState& watched) {
  return {{"evaluations", watched.evaluations},
          {"since_best", watched.since_best},
          {"since_fall", watched.since_fall},
          {"lr_factor", watched.lr_factor},
          {"best_loss", watched.best.loss},
          {"best_accuracy", watched.best.accuracy},
          {"best_at", to_json_of(watched.best_at)},
          {"to_beat_loss", watched.to_beat.loss},
          {"to_beat_accuracy", watched.to_beat.accuracy},
          {"last_at", to_json_of(watched.last_at)},
          {"extra_at", to_json_of(watched.extra_at)},
          {"begun_at", to_json_of(watched.begun_at)},
          {"target_s", watched.target_s},
          {"target_accuracy", watched.target_accuracy},
          {"target_loss", watched.target_loss}};
}

coordination::EvaluatedAt evaluated_at(const Json& json) {
  return {json.at("leases"), json.at("epoch"), json.at("train_s")};
}

/// For older programs every evaluation counted.
coordination::WatchState watch_state(const Json& json) {
  const coordination::Score best{number(json.at("best_loss")), number(json.at("best_accuracy"))};
  const bool older = !json.contains("extra_at");
  return {.evaluations = json.at("evaluations"),
          .since_best = json.at("since_best"),
          .since_fall = json.at("since_fall"),
          .lr_factor = json.at("lr_factor"),
          .best = best,
          .best_at = evaluated_at(json.at("best_at")),
          .to_beat =
              older ? best : coordination::Score{number(json.at("to_beat_loss")), number(json.at("to_beat_accuracy"))},
          .last_at = evaluated_at(json.at("last_at")),
          .extra_at = older ? coordination::EvaluatedAt{} : evaluated_at(json.at("extra_at")),
          .begun_at = evaluated_at(json.at("begun_at")),
          .target_s = number(json.at("target_s")),
          .target_accuracy = number(json.value("target_accuracy", Json())),
          .target_loss = number(json.value("target_loss", Json()))};
}

TestScore score_of(const Json& json) {
  return {number(json.at("loss")), number(json.at("accuracy")), number(json.at("top5"))};
}

}  // namespace

void take(Summary& summary, const coordination::WatchState& watched) {
  if (std::isfinite(watched.target_s)) summary.time_to_target_s = watched.target_s;
  auto& validation = summary.validation;
  if (!validation.has || watched.evaluations == 0) return;
  validation.evaluations = watched.evaluations;
  validation.best_loss = watched.best.loss;
  validation.best_accuracy = watched.best.accuracy;
  validation.best_epoch = watched.best_at.epoch;
  validation.best_train_s = watched.best_at.train_s;
}

std::string to_text(const RunTotals& totals) {
  return Json{{"worker_steps", totals.worker_steps},
              {"steps", totals.steps},
              {"samples", totals.samples},
              {"train_s", totals.train_s},
              {"wall_s", totals.wall_s},
              {"center_version", totals.center_version},
              {"epoch", totals.epoch},
              {"test", to_json_of(totals.test)},
              {"validation", to_json_of(totals.validation)},
              {"evaluations", to_json_of(totals.watched)},
              {"session", totals.session}}
      .dump();
}

core::Result<RunTotals> parse_totals(std::string_view text) try {
  const auto json = Json::parse(text);
  RunTotals totals{.worker_steps = json.at("worker_steps"),
                   .steps = json.at("steps"),
                   .samples = json.at("samples"),
                   .train_s = json.at("train_s"),
                   .wall_s = json.at("wall_s"),
                   .center_version = json.value("center_version", std::uint64_t{0})};
  totals.epoch = {.began_s = totals.train_s, .closed = true};
  if (json.contains("epoch")) json["epoch"].get_to(totals.epoch);
  if (json.contains("session")) json["session"].get_to(totals.session);
  if (json.contains("test")) totals.test = score_of(json["test"]);
  if (json.contains("validation")) totals.validation = score_of(json["validation"]);
  if (json.contains("evaluations")) totals.watched = watch_state(json["evaluations"]);
  return totals;
} catch (const Json::exception&) {
  return core::fail(core::Errc::corrupt, "the field \"totals\" is not what a run writes");
}

void complete(RunTotals& totals, std::string_view summary) try {
  if (!totals.session.workers.empty()) return;
  const auto json = Json::parse(summary);
  auto session = SessionTotals{};
  for (const auto& line : json.at("per_worker")) {
    auto worker = line.get<WorkerProgress>();
    const auto row = session.workers.size();
    worker.waits = json.at("waits").at("seconds").at(row).get<std::vector<double>>();
    worker.staleness = json.at("staleness").at("workers").at(row).get<std::vector<std::uint64_t>>();
    for (const auto count : worker.staleness) worker.staleness_count += count;
    const auto sum = number(line.at("staleness_mean")) * static_cast<double>(worker.staleness_count);
    worker.staleness_sum = static_cast<std::uint64_t>(std::llround(sum));
    session.samples += worker.samples;
    session.workers.push_back(std::move(worker));
  }
  const double rate = number(json.at("train").at("images_per_s"));
  session.train_s = rate > 0 ? static_cast<double>(session.samples) / rate : 0;
  const double loss = number(json.at("train").at("loss"));
  const auto& test = json.at("test");
  const auto top5 = test.at("top5").is_null() ? -1 : test.at("top5").get<double>();
  const TestScore score{number(test.at("loss")), number(test.at("accuracy")), top5};
  totals.session = std::move(session);
  totals.test = score;
  if (std::isfinite(loss)) totals.epoch.last_loss = loss;
} catch (const Json::exception&) {
  // A foreign or damaged file: unknown fields stay unknown.
}

}  // namespace troupe::experiment
