#include "service/forecast/run_forecast.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "experiment/run_spec.hpp"
#include "experiment/settings.hpp"
#include "sim/cluster/cluster_file.hpp"
#include "sim/forecast/forecast.hpp"
#include "store/run_directory.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::service {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// One host for members of one host, else a host per worker: where they are is not in the run's files.
bool on_one_host(const experiment::Settings& settings) {
  const auto& endpoint = settings.exchange.endpoint;
  return endpoint == "auto" || endpoint == "inproc" || endpoint == "shm";
}

/// GB/s of one worker's exchanges; 0: none was measured, and none takes time.
double exchange_speed(const MeasuredRun& run) {
  constexpr double kBytesPerGb = 1e9;
  return run.exchange_bytes > 0 && run.exchange_s > 0 ? run.exchange_bytes / run.exchange_s / kBytesPerGb : 0;
}

core::Result<sim::ClusterFile> cluster_of(const MeasuredRun& run, const experiment::Settings& settings) {
  constexpr double kLeast = 1e-6, kMost = 1e6;  // that a cluster file takes
  constexpr double kBits = 8;
  const double speed = exchange_speed(run) > 0 ? std::clamp(exchange_speed(run), kLeast, kMost / kBits) : 0;
  const auto workers = settings.cluster.workers;
  const bool one = on_one_host(settings);
  const auto text = fmt::format(
      "[hosts.measured]\ncount = {}\ndevices = {}\nstep_ms = 1\n[network]\n{} = {}\n[collectives]\ngb_per_s = "
      "{}\nmemory_gb_per_s = {}\n",
      one ? 1 : workers, one ? workers : 1, one ? "local_gb_per_s" : "gbit_per_s", one ? speed : kBits * speed, speed,
      one ? speed : 0);
  auto cluster = sim::parse_cluster(text, "the run's own times");
  if (!cluster) return cluster;
  cluster->models.push_back({run.model,
                             {.parameters = static_cast<std::int64_t>(run.parameters),
                              .epoch_samples = static_cast<std::int64_t>(run.epoch_samples)}});
  return cluster;
}

Json points_of(const std::vector<Moment>& moments) {
  auto points = Json::array();
  for (const auto& moment : moments) points.push_back({moment.t, moment.samples, moment.steps});
  return points;
}

Json place_of(const MeasuredRun& run, const std::optional<Moment>& moment) {
  if (!moment) return nullptr;
  const auto samples = static_cast<double>(std::max<std::uint64_t>(run.epoch_samples, 1));
  // Batches that are filled up compute more samples than an epoch has.
  const double epoch = std::min(run.begun_at + moment->samples / samples, run.epochs);
  return {{"samples", moment->samples}, {"steps", moment->steps}, {"epoch", epoch}};
}

/// Whole epochs that hold what is left of `epochs` after those that were done before this session.
std::int64_t left_of(double epochs, double begun_at) {
  constexpr double kRounding = 1e-9;
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(epochs - begun_at - kRounding)), 1);
}

/// The points until the forecast has trained what this session has to.
std::vector<Moment> until_end(std::vector<Moment> points, const std::optional<double>& end_s) {
  if (!end_s) return points;
  const auto end = moment_at(points, *end_s);
  std::erase_if(points, [&](const Moment& point) { return point.t >= *end_s; });
  if (end) points.push_back(*end);
  return points;
}

core::Result<experiment::Settings> settings_for(const std::string& directory, const ForecastQuestion& question) {
  auto overrides = question.overrides;
  if (!question.strategy.empty()) overrides.insert(overrides.begin(), "strategy.name=" + question.strategy);
  return core::Config::load(experiment::schema(), directory + "/" + question.run + "/config.toml", overrides)
      .and_then([](core::Config config) { return experiment::resolve(std::move(config), experiment::Use::forecast); });
}

}  // namespace

core::Result<void> check_question(const ForecastQuestion& question) {
  const auto& known = strategies::registry();
  if (!question.strategy.empty() &&
      std::ranges::none_of(known, [&](const auto& row) { return row.name == question.strategy; }))
    return core::fail(core::Errc::usage, fmt::format("there is no strategy \"{}\": GET /api/v1/strategies has all",
                                                     question.strategy.substr(0, 100)));
  for (const auto& one : question.overrides) {
    constexpr std::array kKeys{"exchange.algorithm=", "exchange.wire=", "cluster.servers="};
    const bool known_key =
        (one.starts_with("strategy.") && !one.starts_with("strategy.name=") && one.find('=') != std::string::npos) ||
        std::ranges::any_of(kKeys, [&](const char* key) { return one.starts_with(key); });
    if (!known_key)
      return core::fail(core::Errc::usage,
                        fmt::format("set={}: a forecast from measured times can change keys of [strategy] and "
                                    "exchange.algorithm, exchange.wire and cluster.servers, as KEY=VALUE",
                                    one.substr(0, 100)));
  }
  return {};
}

core::Result<Json> forecast_run(const std::string& directory, const ForecastQuestion& question,
                                const ForecastLimits& limits, const std::stop_token& stop) {
  const auto measured = measure_run(directory, question.run, stop);
  if (!measured) return tl::unexpected(measured.error());
  const auto opened = store::open_run_directory(directory, question.run);
  if (!opened || !store::is_regular(opened->run.get(), "config.toml"))
    return core::fail(core::Errc::config, question.run + " has no config.toml");
  auto settings = settings_for(directory, question);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  if (static_cast<std::size_t>(settings->cluster.workers) > limits.workers)
    return core::fail(core::Errc::config, fmt::format("{} workers: the service forecasts runs of at most {}; use "
                                                      "`troupe simulate --from`",
                                                      settings->cluster.workers, limits.workers));
  auto cluster = cluster_of(*measured, *settings);
  if (!cluster) return tl::unexpected(std::move(cluster.error()));
  Moments simulated;
  bool cut_off = false;
  const auto end = Clock::now() + limits.computing;
  const auto epoch_samples = static_cast<double>(measured->epoch_samples);
  constexpr double kLongestSeconds = 1e6;  // of a pause: a file may say anything
  // The simulation begins where this session did.
  auto& limits_of_run = settings->run;
  limits_of_run.epochs = left_of(static_cast<double>(limits_of_run.epochs), measured->begun_at);
  if (limits_of_run.max_epochs > 0)
    limits_of_run.max_epochs = left_of(static_cast<double>(limits_of_run.max_epochs), measured->begun_at);
  const auto strategy = settings->strategy;
  const auto workers = settings->cluster.workers;
  const sim::ForecastRequest request{
      .settings = std::move(*settings),
      .cluster = std::move(*cluster),
      .model = measured->model,
      .from = directory + "/" + question.run,
      .pause = std::chrono::round<core::Duration>(
          std::chrono::duration<double>(std::min(measured->evaluation_s, kLongestSeconds))),
      .watch = [&](const sim::SimulatedMoment& now) {
        simulated.add({core::seconds(now.at), now.epochs * epoch_samples, static_cast<double>(now.steps)});
        cut_off = cut_off || Clock::now() > end;
        return !cut_off && !stop.stop_requested();
      }};
  const auto forecast = sim::forecast(request);
  if (!forecast && !cut_off) return tl::unexpected(forecast.error());
  if (forecast)
    simulated.add({core::seconds(forecast->result.wall), static_cast<double>(forecast->summary.samples),
                   static_cast<double>(forecast->summary.steps)});
  const auto now = measured->moments.latest();
  const auto end_s = time_of_samples(simulated.all(), (measured->epochs - measured->begun_at) * epoch_samples);
  const auto points = until_end(simulated.all(), end_s);
  auto notes = Json::array();
  // Another strategy does not use the keys of the run's own, which nobody has asked for it; but those of the question it should.
  const auto is_of_own = [&](const std::string& text) {
    return !question.strategy.empty() && std::ranges::any_of(request.settings.config.unused(), [&](const auto& key) {
      const auto asked = [&](const std::string& one) { return one.starts_with(key + "="); };
      return text == experiment::unused_text(key, strategy) && std::ranges::none_of(question.overrides, asked);
    });
  };
  if (forecast)
    for (const auto& note : forecast->notes)
      if (!is_of_own(note.text)) notes.push_back(note.text);
  const double speed = exchange_speed(*measured);
  return Json{{"run", question.run},
              {"strategy", strategy},
              {"set", question.overrides},
              {"own", question.strategy.empty() && question.overrides.empty()},
              {"position", measured->position},
              {"workers", workers},
              {"epochs", measured->epochs},
              {"epoch_samples", measured->epoch_samples},
              {"begun_at", measured->begun_at},
              {"step_ms", forecast ? Json(forecast->step_ms) : Json(nullptr)},
              {"exchange_gb_per_s", speed > 0 ? Json(speed) : Json(nullptr)},
              {"evaluation_s", measured->evaluation_s},
              {"actual", points_of(measured->moments.all())},
              {"points", points_of(points)},
              {"now",
               {{"t", now.t},
                {"actual", place_of(*measured, now)},
                {"forecast", place_of(*measured, moment_at(points, now.t))}}},
              {"end_s", end_s ? Json(*end_s) : Json(nullptr)},
              {"cut_off", cut_off},
              {"notes", notes}};
}

}  // namespace troupe::service
