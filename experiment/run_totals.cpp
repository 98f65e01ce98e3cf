#include "experiment/run_totals.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

namespace troupe::experiment {

using Json = nlohmann::json;

/// A worker's sums; figures since the last report are not kept.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WorkerProgress, worker, steps, samples, compute_s, exchange_s, wait_s,
                                                load_s, exchanges, dropped, skipped, refused, passed, replaced, bytes,
                                                staleness_sum, staleness_count, staleness_max, staleness, waits)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(EpochTotals, loss, top1, samples, began_s, closed, last_loss)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SessionTotals, train_s, samples, workers)

namespace {

Json to_json_of(const TestScore& score) {
  return {{"loss", score.loss}, {"accuracy", score.accuracy}, {"top5", score.top5}};
}

/// Null means not finite.
double number(const Json& json) { return json.is_null() ? std::nan("") : json.get<double>(); }

}  // namespace

std::string to_text(const RunTotals& totals) {
  return Json{{"worker_steps", totals.worker_steps},
              {"steps", totals.steps},
              {"samples", totals.samples},
              {"train_s", totals.train_s},
              {"wall_s", totals.wall_s},
              {"center_version", totals.center_version},
              {"epoch", totals.epoch},
              {"test", to_json_of(totals.test)},
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
  if (json.contains("test")) {
    const auto& test = json["test"];
    totals.test = {number(test.at("loss")), number(test.at("accuracy")), number(test.at("top5"))};
  }
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
