#include "nn/program/step_checks.hpp"

#include <stdexcept>

#include <fmt/format.h>

namespace troupe::nn {
namespace {

void check_labels(const Batch& batch, std::int64_t samples, std::int64_t labels) {
  if (labels < 0 || labels > samples || batch.labels.size() < static_cast<std::size_t>(labels))
    throw std::invalid_argument(
        fmt::format("{} labels for {} samples of a batch of {}", batch.labels.size(), labels, samples));
}

}  // namespace

void check_batch(const Batch& batch, std::int64_t samples, std::int64_t sample_floats, std::int64_t labels) {
  if (batch.images.size() != static_cast<std::size_t>(samples * sample_floats))
    throw std::invalid_argument(fmt::format("a batch of {} floats, compiled for {} samples of {}", batch.images.size(),
                                            samples, sample_floats));
  check_labels(batch, samples, labels);
}

void check_byte_batch(const Batch& batch, std::int64_t samples, std::int64_t sample_bytes, std::int64_t labels) {
  if (batch.bytes.size() != static_cast<std::size_t>(samples * sample_bytes) ||
      batch.cuts.size() != static_cast<std::size_t>(samples))
    throw std::invalid_argument(fmt::format("a batch of {} bytes with {} cuts, compiled for {} samples of {}",
                                            batch.bytes.size(), batch.cuts.size(), samples, sample_bytes));
  check_labels(batch, samples, labels);
}

core::OptimizerState checked_state(const core::OptimizerStep& step, core::OptimizerState state, std::size_t floats) {
  const int states = core::state_slots(step.kind);
  for (const auto& [needed, vector] : {std::pair{states > 0, &state.first}, {states > 1, &state.second}}) {
    if (!needed)
      *vector = {};
    else if (vector->size() != floats)
      throw std::invalid_argument(
          fmt::format("apply with a state of {} floats for {} parameters", vector->size(), floats));
  }
  return state;
}

}  // namespace troupe::nn
