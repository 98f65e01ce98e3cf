/// How many epochs of a run are done, between two reports of its ledger. What workers compute is no measure of it alone: samples of steps that are
/// passed over are done without being computed, and batches at an epoch's end that wrap around are computed beyond it.
#pragma once

#include <optional>

namespace troupe::experiment {

/// Epochs done, as a ledger report or line says: `epoch` (from 0) and the share of its samples that are `finished` (done and given up) of
/// those that it has. None: the numbers make no sense.
[[nodiscard]] std::optional<double> ledger_position(double epoch, double size, double omitted, double finished);

/// Plain state of one session.
struct RunPosition {
  /// Epochs done when this session had computed so many samples.
  struct Known {
    double epochs = 0, computed = 0;
  };
  double begun = 0;          // epochs done before this session
  double epoch_samples = 0;  // of the training split
  double epochs = 0;         // that the run has; 0: not known
  Known known{};             // the latest

  /// A session begins.
  void start(double epochs_done, double samples_of_epoch, double epochs_of_run);
  /// What is older than `known` changes nothing: reports of an evaluation beside training come late.
  void learn(double epochs_done, double computed);
  /// Epochs done when this session has computed so many samples, at most `epochs`. REQUIRES epoch_samples > 0.
  [[nodiscard]] double after(double computed) const;
  /// That workers compute for an epoch: `epoch_samples` before anything else is known.
  [[nodiscard]] double samples_per_epoch() const;
};

}  // namespace troupe::experiment
