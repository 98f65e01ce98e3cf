// A forecast as JSON and as text.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiment/summary.hpp"
#include "sim/forecast/forecast.hpp"

namespace troupe::sim {
namespace {

using strategies::Cause;
using Json = nlohmann::ordered_json;

constexpr std::size_t kWaitsInJson = 100;
constexpr std::size_t kWaitsInText = 3;

std::vector<std::uint64_t> staleness(const Outcome& outcome) {
  std::vector<std::uint64_t> sums(strategies::StalenessHistogram::kEdges.size(), 0);
  for (const auto& worker : outcome.workers)
    for (std::size_t bin = 0; bin < sums.size(); ++bin) sums[bin] += worker.totals.staleness.counts()[bin];
  return sums;
}

const char* name(Cause::Kind kind) { return kind == Cause::Kind::worker ? "worker" : "server"; }

Json simulated(const Forecast& forecast) {
  const auto& outcome = forecast.outcome;
  Json json{{"cluster", forecast.cluster},
            {"seed", forecast.seed},
            {"train_s", core::seconds(outcome.trained)},
            {"alone_images_per_s", outcome.alone_images_per_s},
            {"ideal_images_per_s", outcome.ideal_images_per_s},
            {"speedup", outcome.speedup()},
            {"efficiency", outcome.efficiency()},
            {"events", outcome.events},
            {"network_bytes", outcome.network_bytes},
            {"busiest_card", outcome.busiest_card},
            {"busiest_server", outcome.busiest_server},
            {"lost", outcome.lost},
            {"returned", outcome.returned},
            {"staleness", staleness(outcome)},
            {"waits", Json::array()}};
  for (const auto& [waiter, cause, time] : longest_waits(outcome, kWaitsInJson))
    json["waits"].push_back({waiter, name(cause.kind), cause.id, core::seconds(time)});
  if (outcome.learned) {
    json["epochs"] = Json::array();
    for (const auto& point : outcome.learned->epochs)
      json["epochs"].push_back({{"epoch", point.epoch},
                                {"train_s", point.train_s},
                                {"train_loss", point.train_loss},
                                {"train_accuracy", point.train_accuracy},
                                {"test_loss", point.test.loss},
                                {"test_accuracy", point.test.accuracy()}});
  }
  return json;
}

}  // namespace

std::string to_json(const Forecast& forecast) {
  auto json = experiment::to_json(forecast.summary);
  json.pop_back();  // the closing brace
  return json + ",\"simulated\":" + simulated(forecast).dump() + "}";
}

std::string to_text(const Forecast& forecast) {
  const auto& s = forecast.summary;
  const auto& outcome = forecast.outcome;
  const auto time = experiment::average_time(s.per_worker);
  const auto share = [&](double part) { return time.total_s() > 0 ? 100 * part / time.total_s() : 0; };
  const auto plural = [](std::uint64_t count, const char* noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
  };
  auto text = fmt::format("{}, {}: {}, {}, on {}\n", s.strategy, s.model, plural(s.workers, "worker"),
                          plural(s.servers, "server"), forecast.cluster);
  text += fmt::format("  {:.1f} images/s, {:.2f} times worker 0 alone, {:.1f} % of what all would do alone\n",
                      s.images_per_s, outcome.speedup(), 100 * outcome.efficiency());
  if (outcome.learned)
    text += fmt::format("  test accuracy {:.2f} %, training loss {:.4f}\n", 100 * s.test_accuracy, s.train_loss);
  text += fmt::format("  {} in {:.3f} s of training ({} finished)\n", plural(s.steps, "step"),
                      core::seconds(outcome.trained), plural(s.epochs, "epoch"));
  text += fmt::format("  a worker's time: {:.1f} % computing, {:.1f} % exchanging, {:.1f} % waiting for others\n",
                      share(time.compute_s), share(time.exchange_s), share(time.wait_s));
  if (s.staleness_max > 0)
    text += fmt::format("  staleness: {:.2f} versions on average, {} at most\n", s.staleness_mean, s.staleness_max);
  if (outcome.lost > 0)
    text += fmt::format("  {} lost, {} came back\n", plural(outcome.lost, "worker"), outcome.returned);
  text += fmt::format("  busiest network card {:.1f} %", 100 * outcome.busiest_card);
  text += s.servers > 0 ? fmt::format(", busiest server {:.1f} %\n", 100 * outcome.busiest_server) : "\n";
  for (const auto& [waiter, cause, waited] : longest_waits(outcome, kWaitsInText))
    text += fmt::format("  worker {} waited {:.3f} s for {} {}\n", waiter, core::seconds(waited), name(cause.kind),
                        cause.id);
  return text;
}

}  // namespace troupe::sim
