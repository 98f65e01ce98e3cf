#include "sim/cluster/recorded.hpp"

#include <algorithm>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/text/read_text.hpp"
#include "experiment/directory/run_directory.hpp"
#include "experiment/settings.hpp"

namespace troupe::sim {
namespace {

using core::Errc;
using Json = nlohmann::json;

/// At a microsecond per step, so many steps take 30 years: no run has more.
constexpr std::uint64_t kMostSteps = 1'000'000'000'000'000;

/// What the times of a session's steps depend on. Lists: one entry for all workers, or one each.
struct StepOptions {
  std::size_t workers = 1;
  std::vector<std::int64_t> batches{};
  std::int64_t micro_batches = 1;
  std::vector<double> slowdown{};

  /// REQUIRES a worker below `workers`.
  [[nodiscard]] std::int64_t batch(std::size_t worker) const {
    return batches.size() == 1 ? batches[0] : batches[worker];
  }
  [[nodiscard]] double slowdown_of(std::size_t worker) const {
    return slowdown.size() == 1 ? slowdown[0] : slowdown[worker];
  }
  [[nodiscard]] bool valid() const {
    const auto fits = [this](const auto& list) {
      return list.size() == 1 || (!list.empty() && list.size() >= workers);
    };
    return fits(batches) && fits(slowdown) && std::ranges::all_of(slowdown, [](double factor) { return factor > 0; });
  }
  bool operator==(const StepOptions&) const = default;
};

StepOptions options_of(const experiment::Settings& settings) {
  return {static_cast<std::size_t>(settings.cluster.workers), settings.data.batch, settings.train.accumulate,
          settings.cluster.slowdown};
}

/// What one worker has reported in one session.
struct Reported {
  double compute_s = 0;  // running sums
  std::uint64_t steps = 0;
  std::vector<RecordedSteps> times{};  // with the session's slowdown
};

struct Session {
  bool tells_options = false;  // those of older programs do not
  StepOptions options;         // if it does not: the workers only
  std::map<std::size_t, Reported> workers{};
};

/// Adds the steps between two reports of a worker in one session. Version 0.1 omitted the times of replaced workers but counted their
/// steps. Returns the error in the report; empty: none.
std::string add_report(const Json& line, Reported& worker) {
  const auto& count = line.at("steps");
  const auto compute_s = line.at("compute_s").get<double>();
  const auto steps = count.is_number_unsigned() ? count.get<std::uint64_t>() : kMostSteps;
  if (steps >= kMostSteps) return fmt::format("steps = {}: no number of steps", count.dump());
  if (!(compute_s >= 0)) return fmt::format("compute_s = {}: no time", compute_s);
  if (steps < worker.steps) worker.steps = 0;
  if (worker.steps == 0 || compute_s < worker.compute_s) worker.compute_s = 0;
  const auto more = steps - worker.steps;
  if (more == 0) return {};
  const double ms = 1e3 * (compute_s - worker.compute_s) / static_cast<double>(more);
  if (ms > kMostStepMs) return fmt::format("a step of {} ms", ms);
  if (ms > 0) worker.times.push_back({ms, more});
  worker.compute_s = compute_s;
  worker.steps = steps;
  return {};
}

/// `now`: of the run's configuration.
Session session_of(const Json& started, const StepOptions& now) {
  Session session{.tells_options = started.contains("batch"), .options = now};
  session.options.workers = started.value("workers", now.workers);
  if (!session.tells_options) return session;
  session.options.batches = started.at("batch").get<std::vector<std::int64_t>>();
  session.options.micro_batches = started.at("accumulate").get<std::int64_t>();
  session.options.slowdown = started.at("slowdown").get<std::vector<double>>();
  return session;
}

/// The sessions' reports; model and parameters into `run`. Every session counts from 0.
core::Result<std::vector<Session>> read_sessions(const std::string& path, const StepOptions& now, RecordedRun& run) {
  std::ifstream file(path);
  if (!file) return core::fail(Errc::data, fmt::format("{}: the run has no metrics", path));
  std::vector<Session> sessions;
  std::size_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    const auto wrong = [&](const std::string& what) {
      return core::fail(Errc::data, fmt::format("{}:{}: {}", path, number, what));
    };
    const auto line = Json::parse(text, nullptr, false);
    try {
      const auto kind = line.at("kind").get<std::string>();
      if (kind == "started") {
        run.model = line.at("model").get<std::string>();
        run.parameters = line.value("parameters", std::uint64_t{0});
        sessions.push_back(session_of(line, now));
        if (sessions.back().tells_options && !sessions.back().options.valid())
          return wrong("batch or slowdown has neither one entry nor one for each worker, or a slowdown is not above 0");
      }
      if (kind != "worker") continue;
      if (sessions.empty()) sessions.push_back({.options = now});
      const auto worker = line.at("worker").get<std::size_t>();
      auto& session = sessions.back();
      if (worker >= session.options.workers)
        return wrong(fmt::format("worker {} of {}", worker, session.options.workers));
      if (const auto what = add_report(line, session.workers[worker]); !what.empty()) return wrong(what);
    } catch (const Json::exception&) {
      if (file.peek() == std::ifstream::traits_type::eof()) break;  // cut off by a crash
      return wrong("no line of metrics");
    }
  }
  return sessions;
}

/// Whether the configurations kept beside the journal are all like `now`. A run without any is taken for one whose options stayed.
bool options_stayed(const experiment::RunDirectory& directory, const StepOptions& now) {
  const auto segments = directory.journals();
  return segments && std::ranges::all_of(*segments, [&](const experiment::JournalSegment& segment) {
           if (segment.config.empty()) return true;
           const auto settings =
               core::Config::load(experiment::schema(), segment.config, {}).and_then([](core::Config config) {
                 return experiment::resolve(std::move(config), experiment::Use::forecast);
               });
           return settings && options_of(*settings) == now;
         });
}

core::Result<void> read_metrics(const experiment::RunDirectory& directory, const StepOptions& now, RecordedRun& run) {
  const auto path = directory.metrics_file();
  auto sessions = read_sessions(path, now, run);
  if (!sessions) return tl::unexpected(std::move(sessions.error()));
  // config.toml is the last session's. Earlier ones that tell nothing of theirs count only if nothing shows that it was another one.
  const bool all_tell = std::ranges::all_of(*sessions, &Session::tells_options);
  const bool stayed = all_tell || sessions->size() == 1 || options_stayed(directory, now);
  std::vector<bool> left_out(now.workers);
  for (const auto& session : *sessions) {
    const bool known = session.tells_options || stayed || &session == &sessions->back();
    const auto& options = session.tells_options ? session.options : now;
    for (const auto& [worker, reported] : session.workers) {
      if (worker >= now.workers) break;  // it is gone since
      const bool counts =
          known && options.micro_batches == now.micro_batches && options.batch(worker) == now.batch(worker);
      left_out[worker] = left_out[worker] || !counts;
      for (const auto& [ms, count] : reported.times)
        if (counts) run.steps[worker].push_back({ms / options.slowdown_of(worker), count});
    }
  }
  for (std::size_t worker = 0; worker < run.steps.size(); ++worker)
    if (run.steps[worker].empty())
      return core::fail(
          Errc::data,
          fmt::format("{}: worker {} took no step{}: nothing to forecast from", path, worker,
                      left_out[worker] ? " with the data.batch and train.accumulate of the run's last session" : ""));
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
  if (auto read = read_metrics(*opened, options_of(*settings), run); !read)
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
