// A forecast as JSON and as text.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/plural.hpp"
#include "experiment/summary.hpp"
#include "sim/forecast/forecast.hpp"

namespace troupe::sim {
namespace {

using strategies::Cause;
using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kWaitsInJson = 100;
constexpr std::size_t kWaitsInText = 3;

std::vector<std::uint64_t> staleness(const SimulationResult& result) {
  std::vector<std::uint64_t> sums(strategies::StalenessHistogram::kEdges.size(), 0);
  for (const auto& worker : result.workers)
    for (std::size_t bin = 0; bin < sums.size(); ++bin) sums[bin] += worker.totals.staleness.counts()[bin];
  return sums;
}

const char* name(Cause::Kind kind) { return kind == Cause::Kind::worker ? "worker" : "server"; }

OrderedJson simulated(const Forecast& forecast) {
  const auto& result = forecast.result;
  OrderedJson json{{"cluster", forecast.cluster},
                   {"seed", forecast.seed},
                   {"train_s", core::seconds(result.trained)},
                   {"alone_images_per_s", result.alone_images_per_s},
                   {"ideal_images_per_s", result.ideal_images_per_s},
                   {"speedup", result.speedup()},
                   {"efficiency", result.efficiency()},
                   {"events", result.events},
                   {"network_bytes", result.network_bytes},
                   {"busiest_card", result.busiest_card},
                   {"busiest_server", result.busiest_server},
                   {"lost", result.lost},
                   {"returned", result.returned},
                   {"staleness", staleness(result)},
                   {"step_ms", forecast.step_ms},
                   {"step_times", forecast.step_times},
                   {"waits", OrderedJson::array()}};
  for (const auto& [waiter, cause, time] : longest_waits(result, kWaitsInJson))
    json["waits"].push_back({waiter, name(cause.kind), cause.id, core::seconds(time)});
  if (result.learned) {
    json["epochs"] = OrderedJson::array();
    for (const auto& point : result.learned->epochs)
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
  const auto& result = forecast.result;
  const auto time = experiment::average_time(s.per_worker);
  const auto share = [&](double part) { return time.total_s() > 0 ? 100 * part / time.total_s() : 0; };
  const auto plural = [](std::uint64_t count, const char* noun) { return core::counted(count, noun); };
  auto text = fmt::format("{}, {}: {}, {}, on {}\n", s.strategy, s.model, plural(s.workers, "worker"),
                          plural(s.servers, "server"), forecast.cluster);
  text += fmt::format("  {:.1f} images/s, {:.2f} times worker 0 alone, {:.1f} % of what all would do alone\n",
                      s.images_per_s, result.speedup(), 100 * result.efficiency());
  text += fmt::format("  a step takes {:.2f} ms ({})\n", forecast.step_ms, forecast.step_times);
  if (result.learned)
    text += fmt::format("  test accuracy {:.2f} %, training loss {:.4f}\n", 100 * s.test_accuracy, s.train_loss);
  text += fmt::format("  {} in {:.3f} s of training ({} finished)\n", plural(s.steps, "step"),
                      core::seconds(result.trained), plural(s.epochs, "epoch"));
  text += fmt::format("  a worker's time: {:.1f} % computing, {:.1f} % exchanging, {:.1f} % waiting for others\n",
                      share(time.compute_s), share(time.exchange_s), share(time.wait_s));
  if (s.staleness_max > 0)
    text += fmt::format("  staleness: {:.2f} versions on average, {} at most\n", s.staleness_mean, s.staleness_max);
  if (result.lost > 0) text += fmt::format("  {} lost, {} came back\n", plural(result.lost, "worker"), result.returned);
  text += fmt::format("  busiest network card {:.1f} %", 100 * result.busiest_card);
  text += s.servers > 0 ? fmt::format(", busiest server {:.1f} %\n", 100 * result.busiest_server) : "\n";
  for (const auto& [waiter, cause, waited] : longest_waits(result, kWaitsInText))
    text += fmt::format("  worker {} waited {:.3f} s for {} {}\n", waiter, core::seconds(waited), name(cause.kind),
                        cause.id);
  return text;
}

}  // namespace troupe::sim
