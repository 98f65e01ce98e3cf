/// All settings of one run: the option tables of all folders together, resolved and cross-checked. Thread rule: values; any thread may call
/// schema().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.hpp"
#include "data/config.hpp"
#include "nn/backend.hpp"
#include "nn/device_names.hpp"
#include "nn/optimizer.hpp"
#include "nn/zoo/models.hpp"
#include "strategies/coordination/checkpoint_schedule.hpp"
#include "strategies/coordination/evaluation_watch.hpp"
#include "strategies/registry/registry.hpp"

namespace troupe::experiment {

struct RunConfig {
  std::string name = "run";
  std::int64_t seed = 1;
  std::int64_t epochs = 5;
  std::string dir = "runs";
  std::string journal = "all";
  std::int64_t hash_every = 0;  // steps of a worker between hashes of its parameters in the journal; 0: none
  bool tensorboard = true;
  std::string checkpoint_every = "1 epoch";  // "N epochs" | "N steps" | "N s" | "N min" | "never"
  std::int64_t keep_checkpoints = 2;
  std::string evaluate_every = "1 epoch";  // "N epochs" | "N steps"
  std::string evaluation = "paused";       // or "beside": training goes on meanwhile
  double target_accuracy = 0;              // stop at this accuracy; 0: never
  double target_loss = 0;                  // stop at this loss; 0: never
  std::int64_t patience = 0;               // evaluations without a better score after which the run stops; 0: never
  std::string monitor = "accuracy";        // or "loss": which score must get better
  double max_seconds = 0;                  // of training; 0: no limit
  std::int64_t max_epochs = 0;             // after which a run of `epochs` stops; 0: no limit
  std::string init;           // a checkpoint, another program's safetensors, or a run directory; empty: fresh weights
  bool init_partial = false;  // take the tensors of `init` that fit

  [[nodiscard]] std::int64_t limited_epochs() const noexcept;  // what `max_epochs` leaves of `epochs`
};

struct ClusterConfig {
  std::int64_t workers = 2;
  std::int64_t workers_per_rank = 1;
  std::int64_t servers = 1;
  std::string server_placement = "auto";
  std::vector<std::int64_t> threads_per_worker{1};
  std::vector<double> slowdown{1};
  double synthetic_step_ms = 0;
  std::string device = "cpu";
  std::vector<std::string> devices{};  // by worker, from the beginning again if there are more; empty: device
  bool deterministic = true;
  std::string precision = "fp32";
  std::string kernels = "measured";
  std::string pinning = "auto";
};

struct ExchangeConfig {
  std::string endpoint = "auto";
  std::string algorithm = "auto";
  std::string wire = "fp32";
  double deadline_s = 600;
  bool map_devices = true;
};

[[nodiscard]] const core::Table<RunConfig>& run_table();
[[nodiscard]] const core::Table<ClusterConfig>& cluster_table();
[[nodiscard]] const core::Table<ExchangeConfig>& exchange_table();

/// When the coordinator takes periodic checkpoints.
using coordination::CheckpointPeriod;
/// "N epochs" | "N steps" | "N s" | "N min" | "never"; N > 0, whole for epochs and steps. Null for anything else.
[[nodiscard]] std::optional<CheckpointPeriod> parse_checkpoint_period(std::string_view text);

/// When the model is evaluated: "N epochs" | "N steps", N > 0 and whole. Null for anything else.
[[nodiscard]] std::optional<CheckpointPeriod> parse_evaluation_period(std::string_view text);

/// What follows from the scores (strategies/coordination/evaluation_watch.hpp).
[[nodiscard]] coordination::WatchOptions watch_options(const RunConfig& run, const nn::TrainConfig& train);

/// How much of the journal is kept.
struct JournalPolicy {
  bool keep = true;
  std::uint64_t bytes = 0;  // approximate limit of segments and their start states together; 0: none
};
/// "off" | "all" | "N KB" | "N MB" | "N GB" (powers of 1000), N > 0. Null for anything else.
[[nodiscard]] std::optional<JournalPolicy> parse_journal(std::string_view text);

/// What the model of a fresh run begins with, where a program of the user's says it. Canonical.
struct InitialValues {
  std::shared_ptr<const std::vector<float>> parameters;
  std::vector<float> statistics;
};

struct Settings {
  core::Config config;  // resolved; the source of all fields below
  RunConfig run;
  nn::ModelConfig model;
  data::DataConfig data;
  nn::TrainConfig train;
  std::string strategy;
  ClusterConfig cluster;
  ExchangeConfig exchange;
  CheckpointPeriod checkpoint;
  CheckpointPeriod evaluation;
  JournalPolicy journal;
  std::shared_ptr<const InitialValues> initial{};  // no key; null: as the model's initialisers say

  [[nodiscard]] nn::Precision precision() const noexcept;
  /// What this worker computes on, as the configuration names it. Evaluations compute on worker 0's.
  [[nodiscard]] const std::string& device(std::size_t worker) const noexcept {
    return cluster.devices.empty() ? cluster.device : cluster.devices[worker % cluster.devices.size()];
  }
  /// The devices of all workers, each once, in the order of the workers.
  [[nodiscard]] std::vector<std::string> devices() const;
  /// The backend (nn::backend_of) of a worker's device: "cpu", "gpu".
  [[nodiscard]] std::string_view backend(std::size_t worker) const noexcept;
  /// The backends of these, each once. Of several: the workers' arenas are canonical.
  [[nodiscard]] std::vector<std::string_view> backends() const;
  /// For the replica of a worker; the caller adds arenas and plan. With several batch sizes nothing is measured: plan.json, which replays
  /// and resumes go by, has the choices for one.
  [[nodiscard]] nn::CompileOptions compile_options(std::size_t worker) const {
    return {.batch = batch(worker),
            .precision = precision(),
            .device_name = device(worker),
            .canonical_arenas = backends().size() > 1,
            .threads = threads(worker),
            .seed = static_cast<std::uint64_t>(run.seed),
            .label_smoothing = train.label_smoothing,
            .recompute = train.recompute,
            .measure = cluster.kernels == "measured" && data.batch.size() == 1,
            .deterministic = cluster.deterministic,
            .worker = static_cast<std::uint32_t>(worker),
            .workers = static_cast<std::uint32_t>(cluster.workers),
            .parallel = model.parallel == "neurons" ? nn::Parallel::neurons : nn::Parallel::none,
            .overlap = model.overlap};
  }
  [[nodiscard]] std::int64_t batch(std::size_t worker) const { return per_worker(data.batch, worker); }
  [[nodiscard]] int threads(std::size_t worker) const {
    return static_cast<int>(per_worker(cluster.threads_per_worker, worker));
  }
  [[nodiscard]] double slowdown(std::size_t worker) const { return per_worker(cluster.slowdown, worker); }

 private:
  /// A list of one value applies to all.
  template <class T>
  static T per_worker(const std::vector<T>& list, std::size_t worker) {
    return list.size() == 1 ? list.front() : list.at(worker);
  }
};

/// Whether members of several sites may sum in each other's arenas, by `shm` or because "auto" may choose it: arenas must then be allocated
/// for it. The endpoint is `config`'s.
[[nodiscard]] bool may_sum_in_arenas(const ExchangeConfig& config);

/// Every option of the program, in the order of a config's sections: run, model, data, train, strategy, cluster, exchange.
[[nodiscard]] const core::Schema& schema();

/// The keys that `config`'s strategy reads, in the order of schema().
[[nodiscard]] std::vector<std::string> keys_in_force(const core::Config& config);

/// What settings are for: a run in this process; a run over several processes; the files of an earlier run (its exchange does not matter);
/// a forecast, which needs no capability of this build: devices, wires and algorithms are only numbers in it. No use decides whether there is
/// the device: who makes the backend does.
enum class Use : std::uint8_t { run, processes, remains, forecast };

/// Binds the sections and checks them against each other: list lengths against workers, and for a run the capabilities of this build. Not
/// whether model, data and strategy suit each other (check_run in actors/run/run.hpp). Errc::config with file:line.
[[nodiscard]] core::Result<Settings> resolve(core::Config config, Use use = Use::run);

}  // namespace troupe::experiment
