#include "experiment/settings_checks.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "transport/exchange/collectives/algorithm.hpp"

namespace troupe::experiment {
namespace {

core::Result<void> check_list_lengths(const Settings& settings) {
  if (auto batches = data::batches_per_worker(settings.data, settings.cluster.workers); !batches)
    return core::fail(core::Errc::config,
                      fmt::format("{}: {}", settings.config.where("data.batch"), batches.error().message));
  for (const auto& [key, given] : {std::pair{"cluster.threads_per_worker", settings.cluster.threads_per_worker.size()},
                                   {"cluster.slowdown", settings.cluster.slowdown.size()}}) {
    if (given != 1 && given != static_cast<std::size_t>(settings.cluster.workers))
      return core::fail(core::Errc::config,
                        fmt::format("{}: {} has {} values for {} workers: give one for all, or one per worker",
                                    settings.config.where(key), key, given, settings.cluster.workers));
  }
  return {};
}

/// The list of devices, and what no device of a kind computes in.
core::Result<void> check_devices(const Settings& settings) {
  const auto& cluster = settings.cluster;
  if (cluster.devices.size() > static_cast<std::size_t>(cluster.workers))
    return core::fail(core::Errc::config,
                      fmt::format("{}: cluster.devices has {} values for {} workers: give at most one per worker",
                                  settings.config.where("cluster.devices"), cluster.devices.size(), cluster.workers));
  if (settings.backends() == std::vector<std::string_view>{"gpu"}) return {};
  const auto refuse = [&](std::string_view key, std::string_view value, std::string_view why) {
    return core::fail(core::Errc::config,
                      fmt::format("{}: {} = \"{}\": {}, or GPUs for all workers (cluster.device = \"cuda\")",
                                  settings.config.where(key), key, value, why));
  };
  if (cluster.precision == "tf32" || cluster.precision == "fp16")
    return refuse("cluster.precision", cluster.precision, R"(a CPU computes in "fp32" or "bf16": use one of them)");
  if (exchange::info(exchange::algorithm_of(settings.exchange.algorithm)).on_devices)
    return refuse("exchange.algorithm", settings.exchange.algorithm, R"(it sums in the memory of GPUs: use "auto")");
  return {};
}

core::Result<void> check_parts(const Settings& settings) {
  for (const auto batch : settings.data.batch) {
    if (batch % settings.train.accumulate == 0) continue;
    return core::fail(
        core::Errc::config,
        fmt::format("{}: train.accumulate = {} must divide data.batch = {}: a step's batch is computed in "
                    "equal parts",
                    settings.config.where("train.accumulate"), settings.train.accumulate, batch));
  }
  return {};
}

/// Keys that prepare pictures, on a data set that has none.
core::Result<void> check_pictures(const Settings& settings) {
  const auto& data = settings.data;
  const auto kinds = data::dataset_kinds();
  const auto kind = std::ranges::find(kinds, data.name, &data::DatasetKind::name);
  if (kind == kinds.end() || kind->streamed) return {};
  for (const auto& [key, set] : {std::pair{"data.resize", data.resize > 0},
                                 {"data.random_resized_crop", data.random_resized_crop},
                                 {"data.brightness", data.brightness > 0},
                                 {"data.contrast", data.contrast > 0},
                                 {"data.saturation", data.saturation > 0}}) {
    if (!set) continue;
    std::vector<std::string_view> names;
    for (const auto& row : kinds)
      if (row.streamed) names.push_back(row.name);
    return core::fail(core::Errc::config,
                      fmt::format("{}: {} does nothing to {}: it is for {}; `troupe data convert` makes such files",
                                  settings.config.where(key), key, data.name, fmt::join(names, ", ")));
  }
  return {};
}

/// The test split decides about nothing but run.target_accuracy, as it always has.
core::Result<void> check_watch(const Settings& settings) {
  if (settings.data.validation != "none") return {};
  const auto refused = [&](const char* key, const std::string& value) {
    return core::fail(core::Errc::config, fmt::format("{}: {} = {} looks at a validation split, and there is none: set "
                                                      "data.validation, for example \"0.1\"",
                                                      settings.config.where(key), key, value));
  };
  if (settings.run.target_loss > 0) return refused("run.target_loss", fmt::format("{:g}", settings.run.target_loss));
  if (settings.run.patience > 0) return refused("run.patience", fmt::format("{}", settings.run.patience));
  if (settings.train.lr_policy == "plateau") return refused("train.lr_policy", "\"plateau\"");
  return {};
}

}  // namespace

core::Result<void> check_settings(const Settings& settings, Use use) {
  if (auto fits = check_list_lengths(settings); !fits) return fits;
  if (use != Use::forecast)
    if (auto fits = check_devices(settings); !fits) return fits;
  if (auto fits = check_parts(settings); !fits) return fits;
  if (auto fits = check_pictures(settings); !fits) return fits;
  return check_watch(settings);
}

}  // namespace troupe::experiment
