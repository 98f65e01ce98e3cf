/// Real gradients for phantom workers: the model, its data and the company's numbers. One compiled replica per batch size computes
/// for all workers in turn: a worker's parameters go in, its gradients come out, in the backend's own layout. Steps are computed when
/// their virtual time is over; nobody touches a worker's parameters meanwhile, so it makes no difference when. One thread, the one
/// that created it.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "data/batch_builder.hpp"
#include "experiment/bad_updates.hpp"
#include "experiment/blueprint.hpp"
#include "experiment/evaluation.hpp"
#include "experiment/state/start_state.hpp"
#include "nn/backend.hpp"
#include "sim/mail.hpp"
#include "sim/gradients/phantom_memory.hpp"

namespace troupe::sim {

/// Where the model stands after an epoch.
struct EpochPoint {
  std::uint32_t epoch = 0;  ///< epochs done
  double train_s = 0;       ///< virtual
  double train_loss = 0;
  double train_accuracy = 0;
  experiment::Score test{};
};

class Gradients {
 public:
  /// `blueprint` with its data opened; `backend` outlives the object. Errors: those of Backend::compile, out_of_memory, Errc::config for
  /// batches whose layouts differ and for a precision that the backend has not got.
  [[nodiscard]] static core::Result<std::unique_ptr<Gradients>> create(const experiment::Blueprint& blueprint,
                                                                       nn::Backend& backend, int buckets);

  [[nodiscard]] PhantomMemory& memory() noexcept { return *memory_; }
  [[nodiscard]] std::int64_t max_bad_updates() const { return blueprint_.settings->train.max_bad_updates; }
  /// Vectors for a worker that begins, with the run's first parameters. Errc::out_of_memory.
  [[nodiscard]] core::Result<void> begin(strategies::WorkerId worker);
  /// The centre's parameters for a worker that has just joined.
  void fetch_center(strategies::WorkerId worker);
  /// Computes `lease` for `worker`. Errc::diverged when the loss is not finite, or too many gradients in a row could not be used (names
  /// worker and step); those of the data.
  [[nodiscard]] core::Result<void> step(strategies::WorkerId worker, strategies::Step step, const data::Lease& lease);

  /// Takes the model where the strategy has it, of `workers` (living, ascending) with these weights and the letters that they have not
  /// read (by reader), and its score. Errc::diverged when it is not finite. `closes_epoch`: what was trained since the last time is an
  /// epoch's.
  [[nodiscard]] core::Result<void> evaluate(std::span<const strategies::WorkerId> workers,
                                            std::span<const double> weights, std::span<const UnreadLetter> letters,
                                            bool closes_epoch, EpochPoint at);
  [[nodiscard]] const std::vector<EpochPoint>& epochs() const noexcept { return epochs_; }
  [[nodiscard]] const experiment::Score& score() const noexcept { return score_; }  ///< of the latest evaluation
  [[nodiscard]] double train_loss()
      const noexcept;  ///< mean of the samples since the last epoch closed, else of that epoch
  [[nodiscard]] std::string model_hash() const;  ///< of the latest evaluation

 private:
  Gradients() = default;
  [[nodiscard]] core::Result<void> take_model(std::span<const strategies::WorkerId> workers,
                                              std::span<const double> weights, std::span<const UnreadLetter> letters);

  experiment::Blueprint blueprint_;
  const core::Kernels* kernels_ = nullptr;
  std::map<strategies::WorkerId, experiment::BadUpdates> bad_gradients_;  // in a row
  core::HostAllocator allocator_;
  experiment::StartState start_;
  std::map<std::int64_t, std::unique_ptr<nn::Replica>> replicas_;  // by batch
  std::unique_ptr<nn::Replica> evaluator_;
  std::optional<PhantomMemory> memory_;
  std::vector<float> first_statistics_;  // in the arena's layout
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
  std::vector<float> model_;       // canonical, of the latest evaluation
  std::vector<float> statistics_;  // canonical
  experiment::Score score_;
  std::vector<EpochPoint> epochs_;
  double loss_ = 0;  // sums over the samples since the last epoch closed
  std::int64_t correct_ = 0;
  std::int64_t samples_ = 0;
};

}  // namespace troupe::sim
