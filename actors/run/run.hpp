/// Puts a company together, trains, and takes it apart again: what `troupe train` calls.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "experiment/report/console.hpp"
#include "actors/control/network.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "experiment/reports.hpp"
#include "nn/backend.hpp"

namespace troupe::actors {

struct RunRequest {
  Settings settings;
  /// An existing run directory to go on in; empty: a new one under settings.run.dir.
  std::string resume;
  /// Of such a run: the plan that it was made with is left unread, and backend and members choose anew.
  bool replan = false;
  report::ConsoleOptions console;
  /// Where the members are to be, "host:port" each; none: all in this process.
  std::vector<std::string> nodes{};
  /// So many of the nodes are enough to begin; who comes later is a new member. 0: all.
  std::size_t min_nodes = 0;
  NetworkOptions network{};
  std::string version{};  // of this program; nodes must have the same
  /// Not 0: the nodes are the other ranks of an MPI job, and so many workers are at each rank, this one included.
  std::uint32_t workers_per_rank = 0;
  std::string launcher{};                 // what has started such a job, for messages: "mpirun", "srun"
  std::vector<experiment::Note> notes{};  // to be shown first
  std::function<void()> on_begin{};       // everybody is ready: from now on there is a directory, and something to save
};

/// Blocks until the run is over. `stop` asks it to take a checkpoint and end (Errc::interrupted); while nodes get ready there
/// is none to take: then it ends as soon as what is computed in this process lets it, and leaves no directory. Everything that is expected
/// to go wrong comes back as RunEnd::error; the run directory then holds what was reached. Call from one thread at a time.
[[nodiscard]] RunEnd run_training(const RunRequest& request, nn::Backend& backend, std::stop_token stop);

struct CheckedRun {
  std::string text;                       // describes the run in a few lines
  std::vector<experiment::Note> notes{};  // what the settings may do and hardly mean
};
/// `troupe check`: everything that can be known without training: options, model shapes, strategy against company, and the
/// data set if `open_data`.
[[nodiscard]] core::Result<CheckedRun> check_run(const Settings& settings, nn::Backend& backend, bool open_data);

struct Evaluation {
  double loss = 0;
  double accuracy = 0;
  double top5 = -1;
  std::int64_t samples = 0;
  std::string model, dataset, hash;
};
/// `troupe eval`: the test split under a checkpoint file, or under the newest valid checkpoint of a run directory.
/// `settings` come from the run directory's config.toml, or the one beside the checkpoint's folder.
[[nodiscard]] core::Result<Evaluation> evaluate_checkpoint(const Settings& settings, const std::string& checkpoint,
                                                           nn::Backend& backend);

}  // namespace troupe::actors
