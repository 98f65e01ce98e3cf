/// The weights with which a new run begins in place of fresh ones: those of a checkpoint (run.init, `troupe train --init`). Pure functions
/// of files; they open nothing for writing.
#pragma once

#include <memory>
#include <string>

#include "experiment/run_spec.hpp"
#include "experiment/state/checkpoint.hpp"

namespace troupe::experiment {

/// `path`, or the newest whole checkpoint of the run directory `path`. Errc::config: nothing is there, or a directory of
/// no run. Errc::io: the run has no checkpoint.
[[nodiscard]] core::Result<std::string> checkpoint_file(const std::string& path);

/// The first checkpoint of the run: step 0, with the model and the running statistics of the file that run.init names, and no other state.
/// A run begins with it as a resumed run begins with its checkpoint: its members, also those at nodes, and its replay load the same file.
struct InitialModel {
  std::shared_ptr<const Checkpoint> checkpoint;  ///< null: run.init is not set
  std::string note;                              ///< for the user: which weights
};
/// Errors: those of checkpoint_file() and nn::load_checkpoint; Errc::config names the file and the first tensor that the model has
/// otherwise, or not.
[[nodiscard]] core::Result<InitialModel> initial_model(const RunSpec& spec);

}  // namespace troupe::experiment
