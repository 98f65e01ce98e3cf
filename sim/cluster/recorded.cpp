#include "sim/cluster/recorded.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/read_text.hpp"
#include "experiment/directory/run_directory.hpp"
#include "experiment/settings.hpp"

namespace troupe::sim {
namespace {

using core::Errc;
using Json = nlohmann::json;

/// Running sums of one worker.
struct Sums {
  double compute_s = 0;
  std::uint64_t steps = 0;
};

/// At a microsecond per step, so many steps take 30 years: no run has more.
constexpr std::uint64_t kMostSteps = 1'000'000'000'000'000;

/// Adds the steps between two reports of a worker in one session. Version 0.1 omitted the times of replaced workers but counted their
/// steps. Returns the error in the report; empty: none.
std::string add_report(const Json& line, Sums& sums, double slowdown, std::vector<RecordedSteps>& steps) {
  const auto& count = line.at("steps");
  const Sums now{line.at("compute_s").get<double>(),
                 count.is_number_unsigned() ? count.get<std::uint64_t>() : kMostSteps};
  if (now.steps >= kMostSteps) return fmt::format("steps = {}: no number of steps", count.dump());
  if (!(now.compute_s >= 0)) return fmt::format("compute_s = {}: no time", now.compute_s);
  if (now.steps < sums.steps) sums = {};
  if (now.compute_s < sums.compute_s) sums.compute_s = 0;
  const auto more = now.steps - sums.steps;
  if (more == 0) return {};
  const double ms = 1e3 * (now.compute_s - sums.compute_s) / static_cast<double>(more) / slowdown;
  if (ms > kMostStepMs) return fmt::format("a step of {} ms", ms);
  if (ms > 0) steps.push_back({ms, more});
  sums = now;
  return {};
}

core::Result<void> read_metrics(const std::string& path, const experiment::Settings& settings, RecordedRun& run) {
  std::ifstream file(path);
  if (!file) return core::fail(Errc::data, fmt::format("{}: the run has no metrics", path));
  std::vector<Sums> sums(run.steps.size());
  std::size_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    const auto line = Json::parse(text, nullptr, false);
    try {
      const auto kind = line.at("kind").get<std::string>();
      if (kind == "started") {
        run.model = line.at("model").get<std::string>();
        run.parameters = line.value("parameters", std::uint64_t{0});
        std::ranges::fill(sums, Sums{});  // every session counts from 0
      }
      if (kind != "worker") continue;
      const auto worker = line.at("worker").get<std::size_t>();
      if (worker >= sums.size())
        return core::fail(Errc::data, fmt::format("{}:{}: worker {} of {}", path, number, worker, sums.size()));
      if (const auto wrong = add_report(line, sums[worker], settings.slowdown(worker), run.steps[worker]);
          !wrong.empty())
        return core::fail(Errc::data, fmt::format("{}:{}: {}", path, number, wrong));
    } catch (const Json::exception&) {
      if (file.peek() == std::ifstream::traits_type::eof()) break;  // cut off by a crash
      return core::fail(Errc::data, fmt::format("{}:{}: no line of metrics", path, number));
    }
  }
  for (std::size_t worker = 0; worker < run.steps.size(); ++worker)
    if (run.steps[worker].empty())
      return core::fail(Errc::data, fmt::format("{}: worker {} took no step: nothing to forecast from", path, worker));
  return {};
}

}  // namespace

core::Result<StepProfile> load_profile(const std::string& path) {
  const auto text = core::read_text("step profile", path);
  if (!text) return tl::unexpected(text.error());
  const auto refuse = [&](std::string_view why) {
    return core::fail(
        Errc::config,
        fmt::format("{}: no step profile: {}; write one with `troupe bench step --profile FILE`", path, why));
  };
  const auto json = Json::parse(*text, nullptr, false);
  const auto part = [&](const char* key) { return json.is_object() && json.contains(key) ? json[key] : Json{}; };
  const auto model = part("model"), batch = part("batch"), steps = part("steps_ms");
  if (json.is_discarded()) return refuse(text->empty() ? "the file is empty" : "it is no JSON, or was cut off");
  if (!model.is_string()) return refuse("\"model\" is missing or no text");
  if (!batch.is_number_integer()) return refuse("\"batch\" is missing or no whole number");
  if (!steps.is_array() || steps.empty()) return refuse("\"steps_ms\" is missing, empty or no list");
  StepProfile profile{.model = model, .batch = batch, .steps_ms = {}};
  if (const auto parameters = part("parameters"); parameters.is_number_unsigned()) profile.parameters = parameters;
  for (const auto& ms : steps) {
    const double time = ms.is_number() ? ms.get<double>() : 0;
    if (!(time > 0 && time <= kMostStepMs))
      return refuse(fmt::format("steps_ms has {}, which is no time between 0 and {} ms", ms.dump(), kMostStepMs));
    profile.steps_ms.push_back(time);
  }
  return profile;
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
  run.micro_batches = settings->train.accumulate;
  run.steps.resize(static_cast<std::size_t>(settings->cluster.workers));
  if (auto read = read_metrics(opened->metrics_file(), *settings, run); !read)
    return tl::unexpected(std::move(read.error()));
  return run;
}

StepTimes measured(const std::vector<double>& steps_ms, std::int64_t micro_batches) {
  StepTimes times{.draws = static_cast<std::uint32_t>(micro_batches)};
  for (const double ms : steps_ms) times.measured_ns.push_back(1e6 * ms);
  return times;
}

StepTimes measured(const std::vector<RecordedSteps>& steps) {
  StepTimes times;
  std::uint64_t so_far = 0;
  for (const auto& [mean_ms, count] : steps) {
    times.measured_ns.push_back(1e6 * mean_ms);
    times.up_to.push_back(so_far += count);
  }
  return times;
}

}  // namespace troupe::sim
