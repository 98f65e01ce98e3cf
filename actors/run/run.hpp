/// Spawns the members of a run, trains, and ends them: called by `troupe train`.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "actors/control/network.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "experiment/confusion_matrix.hpp"
#include "experiment/report/console.hpp"
#include "experiment/reports.hpp"
#include "nn/backend.hpp"

namespace troupe::actors {

struct RunRequest {
  Settings settings;
  /// An existing run directory to resume; empty: a new one under settings.run.dir.
  std::string resume;
  /// With `resume`: ignores plan.json; backend and members choose again.
  bool replan = false;
  report::ConsoleOptions console;
  /// Nodes for the members, "host:port" each; none: all members are in this process.
  std::vector<std::string> nodes{};
  /// Start once so many nodes are connected; nodes that connect later join the run as new members. 0: all.
  std::size_t min_nodes = 0;
  NetworkOptions network{};
  std::string version{};  // of this program; nodes must have the same
  /// Not 0: the nodes are the other ranks of an MPI job, and each rank, this one included, has so many workers.
  std::uint32_t workers_per_rank = 0;
  std::string launcher{};                  // the program that started the MPI job, for messages: "mpirun", "srun"
  std::string resume_options{};            // of the command that resumes the run, for messages: " --nodes h1:4242"
  std::vector<experiment::Note> notes{};   // shown first
  std::function<void()> on_begin{};        // all members are ready; the run directory is made next
  std::function<void()> on_console{};      // from now on the console writes to standard error
  std::function<void()> on_console_end{};  // it has written all: programs go on after their last batches
  std::function<void(const std::string&)> on_directory{};  // the run directory's path: training begins
  /// Told when training begins how to ask for a checkpoint from any thread, and at the run's end, with null, that it is over.
  std::function<void(std::function<void()>)> on_save_action{};
  /// The run is over, but one of its actors has not ended in time: it waits for something that does not answer, such as a device. What
  /// returns from here waits for it without a deadline.
  std::function<void(const RunEnd&)> on_late_actors{};
};

/// Blocks until the run is over. After a request of `stop` the run takes a checkpoint and ends (Errc::interrupted). While nodes get ready
/// there is nothing to save: then it ends after the current computation in this process, and makes no directory. Expected failures come
/// back as RunEnd::error; the run directory holds the state reached by then. Call from one thread at a time.
[[nodiscard]] RunEnd run_training(const RunRequest& request, nn::Backend& backend, std::stop_token stop);

struct CheckedRun {
  std::string text;                       // describes the run in a few lines
  std::vector<experiment::Note> notes{};  // settings that are valid, but probably not intended
  bool data_opened = false;
};
/// `troupe check`: checks all that needs no training: options, model shapes, whether the strategy fits the members, and the data set if
/// `open_data`. Cost: compiles each worker's replica.
[[nodiscard]] core::Result<CheckedRun> check_run(const Settings& settings, nn::Backend& backend, bool open_data);

struct Evaluation {
  double loss = 0;
  double accuracy = 0;
  double top5 = -1;
  std::int64_t samples = 0;
  std::int64_t replaced = 0;  // of them, that could not be read: others stood in their place
  std::string model, dataset, hash;
  std::vector<std::string> class_names;  // empty: numbers
  experiment::ConfusionMatrix confusion;
};
/// `troupe eval`: the test split under a checkpoint file, under the newest valid checkpoint of a run directory, or under weights of another
/// program.
/// `settings` come from the run directory's config.toml, the one beside the checkpoint's folder, or the checkpoint itself.
[[nodiscard]] core::Result<Evaluation> evaluate_checkpoint(const Settings& settings, const std::string& checkpoint,
                                                           nn::Backend& backend);

}  // namespace troupe::actors
