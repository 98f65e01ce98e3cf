#include "sim/recorded.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "experiment/run_directory.hpp"
#include "experiment/settings.hpp"

namespace troupe::sim {
namespace {

using core::Errc;
using Json = nlohmann::json;

/// Sums of one worker, as far as they are read.
struct Sums {
  double compute_s = 0;
  std::uint64_t steps = 0;
};

/// Adds the steps between two reports of a worker. A worker that begins anew, after a resume, begins at nothing.
void add_report(const Json& line, Sums& sums, double slowdown, std::vector<double>& steps_ms) {
  const Sums now{line.at("compute_s").get<double>(), line.at("steps").get<std::uint64_t>()};
  if (now.steps < sums.steps || now.compute_s < sums.compute_s) sums = {};
  const auto steps = now.steps - sums.steps;
  const double ms = 1e3 * (now.compute_s - sums.compute_s) / static_cast<double>(std::max<std::uint64_t>(steps, 1));
  if (ms > 0) steps_ms.insert(steps_ms.end(), steps, ms / slowdown);
  if (steps > 0) sums = now;
}

core::Result<void> read_metrics(const std::string& path, const experiment::Settings& settings, RecordedRun& run) {
  std::ifstream file(path);
  if (!file) return core::fail(Errc::data, fmt::format("{}: the run has no metrics", path));
  std::vector<Sums> sums(run.steps_ms.size());
  std::size_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    const auto line = Json::parse(text, nullptr, false);
    try {
      const auto kind = line.at("kind").get<std::string>();
      if (kind == "started") run.model = line.at("model").get<std::string>();
      if (kind != "worker") continue;
      const auto worker = line.at("worker").get<std::size_t>();
      if (worker >= sums.size())
        return core::fail(Errc::data, fmt::format("{}:{}: worker {} of {}", path, number, worker, sums.size()));
      add_report(line, sums[worker], settings.slowdown(worker), run.steps_ms[worker]);
    } catch (const Json::exception&) {
      if (file.peek() == std::ifstream::traits_type::eof()) break;  // cut off by a crash
      return core::fail(Errc::data, fmt::format("{}:{}: no line of metrics", path, number));
    }
  }
  for (std::size_t worker = 0; worker < run.steps_ms.size(); ++worker)
    if (run.steps_ms[worker].empty())
      return core::fail(Errc::data, fmt::format("{}: worker {} took no step: nothing to forecast from", path, worker));
  return {};
}

}  // namespace

core::Result<StepProfile> load_profile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return core::fail(Errc::config, fmt::format("cannot read step profile {}", path));
  const auto refuse = [&](std::string_view why) {
    return core::fail(
        Errc::config,
        fmt::format("{}: no step profile: {}; write one with `troupe bench step --profile FILE`", path, why));
  };
  try {
    const auto json = Json::parse(file);
    StepProfile profile{.model = json.at("model"), .batch = json.at("batch"), .steps_ms = json.at("steps_ms")};
    if (profile.steps_ms.empty()) return refuse("steps_ms is empty");
    if (!std::all_of(profile.steps_ms.begin(), profile.steps_ms.end(),
                     [](double ms) { return std::isfinite(ms) && ms > 0; }))
      return refuse("steps_ms has a time that is not above 0");
    return profile;
  } catch (const Json::exception& error) {
    return refuse(error.what());
  }
}

core::Result<RecordedRun> load_recorded(const std::string& directory) {
  const auto opened = experiment::RunDirectory::open(directory);
  if (!opened) return tl::unexpected(opened.error());
  const auto settings = opened->read_config(experiment::schema(), {}).and_then([](core::Config config) {
    return experiment::resolve(std::move(config), experiment::Use::forecast);
  });
  if (!settings) return tl::unexpected(settings.error());
  RecordedRun run;
  run.batches = settings->data.batch;
  run.steps_ms.resize(static_cast<std::size_t>(settings->cluster.workers));
  if (auto read = read_metrics(opened->metrics_file(), *settings, run); !read)
    return tl::unexpected(std::move(read.error()));
  return run;
}

StepTimes measured(const std::vector<double>& steps_ms) {
  StepTimes times;
  for (const double ms : steps_ms) times.measured_ns.push_back(1e6 * ms);
  return times;
}

}  // namespace troupe::sim
