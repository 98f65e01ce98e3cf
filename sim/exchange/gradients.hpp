/// Real gradients for phantom workers: the model, its data and all vectors. One compiled replica per device and batch size computes for its
/// workers in turn, in the backend's own layout: a worker's parameters and its loss scale go in, its gradients come out. A step is computed when its virtual time is
/// over, or its first bucket is ready; the worker's parameters do not change meanwhile, so the moment does not matter. One thread, the
/// one that created the object.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "experiment/bad_updates.hpp"
#include "experiment/batches/batch_memory.hpp"
#include "experiment/evaluation.hpp"
#include "experiment/run_spec.hpp"
#include "experiment/state/start_state.hpp"
#include "nn/backend.hpp"
#include "sim/exchange/peer_mailbox.hpp"
#include "sim/exchange/phantom_memory.hpp"

namespace troupe::sim {

/// The model's results after an epoch.
struct EpochPoint {
  std::uint32_t epoch = 0;  ///< finished epochs
  double train_s = 0;       ///< virtual
  double train_loss = 0;
  double train_accuracy = 0;
  experiment::Score test{};
};

class Gradients {
 public:
  /// `spec`: its data is open. `backend` outlives the object. Errors: those of Backend::compile, out_of_memory,
  /// Errc::config for batches with different layouts and for a precision that the backend does not have.
  [[nodiscard]] static core::Result<std::unique_ptr<Gradients>> create(const experiment::RunSpec& spec,
                                                                       nn::Backend& backend, int buckets);

  [[nodiscard]] PhantomMemory& memory() noexcept { return *memory_; }
  [[nodiscard]] std::int64_t max_bad_updates() const { return spec_.settings->train.max_bad_updates; }
  /// Creates the vectors of a worker that begins, with the run's initial parameters. Errc::out_of_memory.
  [[nodiscard]] core::Result<void> begin(strategies::WorkerId worker);
  /// Copies the centre's parameters to a worker that has just joined.
  void fetch_center(strategies::WorkerId worker);
  /// Computes `lease` for `worker`. Errc::diverged when the loss is not finite or too many consecutive gradients are unusable (names
  /// worker and step); also the errors of the data.
  [[nodiscard]] core::Result<void> step(strategies::WorkerId worker, strategies::Step step, const data::Lease& lease);

  /// Takes the model from where the strategy keeps it and evaluates it. `workers`: living, ascending, with their weights;
  /// `peer_messages`: their unread ones, by reader. Errc::diverged when the model is not finite. `closes_epoch`: the steps since the last
  /// close make up an epoch.
  [[nodiscard]] core::Result<void> evaluate(std::span<const strategies::WorkerId> workers,
                                            std::span<const double> weights,
                                            std::span<const UnreadMessage> peer_messages, bool closes_epoch,
                                            EpochPoint at);
  [[nodiscard]] const std::vector<EpochPoint>& epochs() const noexcept { return epochs_; }
  [[nodiscard]] const experiment::Score& score() const noexcept { return score_; }  ///< of the latest evaluation
  /// The same on the split that decides: the validation split, or without one the test split.
  [[nodiscard]] const experiment::Score& deciding() const noexcept { return deciding_; }
  [[nodiscard]] double train_loss()
      const noexcept;  ///< mean over the samples of this epoch; if there are none, of the epoch before
  [[nodiscard]] std::string model_hash() const;  ///< of the latest evaluation

 private:
  /// A replica for the workers of a device that have one batch size, and its batches.
  struct Computing {
    std::int64_t batch = 0;
    std::string_view backend;                 // of its workers' devices
    const core::Allocator* arenas = nullptr;  // where the backend would have them: each device has memory of its own
    std::uint64_t first_state = 0;            // nn::Replica::state_of_steps() of a new one
    std::unique_ptr<nn::Replica> replica;
    std::unique_ptr<experiment::BatchMemory> memory;
  };

  Gradients() = default;
  /// Compiles what worker `worker` computes with, unless an earlier one does, too.
  [[nodiscard]] core::Result<void> compile(nn::Backend& backend, strategies::WorkerId worker);
  [[nodiscard]] const nn::Layout& layout() const { return *computing_.front().replica->layout(); }
  void close_epoch();
  [[nodiscard]] core::Result<void> take_model(std::span<const strategies::WorkerId> workers,
                                              std::span<const double> weights,
                                              std::span<const UnreadMessage> peer_messages);

  experiment::RunSpec spec_;
  const core::Kernels* kernels_ = nullptr;
  std::map<strategies::WorkerId, experiment::BadUpdates> bad_gradients_;  // consecutive
  std::map<strategies::WorkerId, experiment::LossWatch> losses_;
  std::map<strategies::WorkerId, std::uint64_t> states_;  // in fp16: each worker's loss scale (Replica::state_of_steps)
  core::HostAllocator allocator_;
  experiment::StartState start_;
  std::vector<Computing> computing_;   // at least one
  std::vector<std::size_t> computes_;  // by worker: the one of computing_
  std::unique_ptr<nn::Replica> evaluator_;
  std::optional<PhantomMemory> memory_;
  std::vector<float> first_statistics_;  // in the arena's layout
  std::vector<float> model_;             // canonical, of the latest evaluation
  std::vector<float> statistics_;        // canonical
  experiment::Score score_;
  experiment::Score deciding_;
  std::vector<EpochPoint> epochs_;
  std::uint32_t epoch_ = 0;                                      // of the latest step
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();  // training loss of the epoch before
  double loss_ = 0;                                              // sums of this epoch
  std::int64_t correct_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace troupe::sim
