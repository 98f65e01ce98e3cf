/// Evaluates the model on a split of the data. One thread.
#pragma once

#include <functional>
#include <limits>

#include "core/kernels.hpp"
#include "data/batch_builder.hpp"
#include "experiment/confusion_matrix.hpp"
#include "experiment/run_spec.hpp"
#include "nn/backend.hpp"

namespace troupe::experiment {

struct Score {
  double loss = 0;         // mean over the samples; NaN: a program did not say
  std::int64_t top1 = 0;   // below 0: a program did not say
  std::int64_t top5 = -1;  // as top1, or fewer than five classes
  std::int64_t samples = 0;
  std::int64_t replaced = 0;  // of them, that could not be read: others stood in their place
  /// NaN: it is not known, or there was no sample.
  [[nodiscard]] double accuracy() const noexcept {
    return samples > 0 && top1 >= 0 ? static_cast<double>(top1) / static_cast<double>(samples)
                                    : std::numeric_limits<double>::quiet_NaN();
  }
  /// Below 0: fewer than five classes, or no sample.
  [[nodiscard]] double top5_share() const noexcept {
    return top5 < 0 || samples == 0 ? -1 : static_cast<double>(top5) / static_cast<double>(samples);
  }
};

/// Evaluates all samples of `builder` in order, batch by batch; parameters and statistics are canonical. Errors: those of the data and the
/// backend; Errc::interrupted when `goes_on`, asked after each batch, says no. Each sample is also counted in `confusion`, if it is given.
[[nodiscard]] core::Result<Score> evaluate(nn::Replica& replica, const data::BatchBuilder& builder,
                                           core::ConstSpan parameters, core::ConstSpan statistics,
                                           const std::function<bool()>& goes_on = {},
                                           ConfusionMatrix* confusion = nullptr);

/// How every evaluation of a run compiles its model, so that all have the same bits: batches of 100 samples, or fewer of large images.
/// REQUIRES the data to be open. `arenas` outlives the replica.
[[nodiscard]] nn::CompileOptions evaluation_options(const RunSpec& spec, int threads, core::Allocator& arenas);

/// The replica of such options. It prepares images of `test` itself, if it can.
[[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile_evaluation(nn::Backend& backend,
                                                                            const nn::Graph& graph,
                                                                            nn::CompileOptions options,
                                                                            const data::BatchBuilder& test);

/// Evaluates the test split of `spec`, whose data is open, on a replica compiled for it. Errors: as above, and those of Backend::compile.
[[nodiscard]] core::Result<Score> evaluate(const RunSpec& spec, nn::Backend& backend, core::ConstSpan parameters,
                                           core::ConstSpan statistics, ConfusionMatrix* confusion = nullptr);

}  // namespace troupe::experiment
