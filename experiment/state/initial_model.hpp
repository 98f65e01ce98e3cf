/// The weights of a file: those with which a new run begins in place of fresh ones (run.init, `troupe train --init`), and those that other
/// commands read. Pure functions of files; they open nothing for writing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment/run_spec.hpp"
#include "experiment/state/checkpoint.hpp"

namespace troupe::experiment {

/// `path`, or the newest whole checkpoint of the run directory `path`. Errc::config: nothing is there, or a directory of
/// no run. Errc::io: the run has no checkpoint.
[[nodiscard]] core::Result<std::string> checkpoint_file(const std::string& path);

/// A model as a file has it.
struct SavedModel {
  std::vector<float> parameters;       // canonical
  std::vector<float> statistics;       // canonical, in the order of statistics_layout(graph)
  std::string file;                    // its path
  std::optional<std::int64_t> step{};  // none: another program's file
};
/// The whole model in a checkpoint, a run's newest one, or another program's safetensors file. Errors: those of checkpoint_file(),
/// nn::read_weights and nn::weights_from.
[[nodiscard]] core::Result<SavedModel> load_model(const std::string& path, const nn::Graph& graph);

/// The first checkpoint of the run: step 0, with the model and the running statistics of the file that run.init names, and no other state.
/// With run.init_partial what does not fit the model is initialised as in a fresh run.
/// A run begins with it as a resumed run begins with its checkpoint: its members, also those at nodes, and its replay load the same file.
struct InitialModel {
  std::shared_ptr<const Checkpoint> checkpoint;  ///< null: run.init is not set
  std::string note;                              ///< for the user: which weights, and which tensors are fresh
};
/// Errors: those of checkpoint_file() and nn::read_weights; Errc::config names the file and the first tensors that the model has otherwise,
/// or not; run.init_partial without run.init.
[[nodiscard]] core::Result<InitialModel> initial_model(const RunSpec& spec);

}  // namespace troupe::experiment
