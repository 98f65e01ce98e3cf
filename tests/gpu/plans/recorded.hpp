/// The convolutions and products of a model, as the compiler asks a device for them. For tests.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gpu/device/products.hpp"
#include "nn/backend.hpp"

namespace troupe::gpu::testing {

struct RecordedDescriptions {
  std::set<Convolution> convolutions;
  std::set<MatrixProduct> products;
};

/// Of a model of the zoo with its own input, for training with batches of `batch`. No memory is needed.
[[nodiscard]] RecordedDescriptions record_descriptions(const std::string& model, nn::Precision precision,
                                                       std::int64_t batch, bool deterministic = true);

/// The names of all models of the zoo.
[[nodiscard]] std::vector<std::string> all_models();

}  // namespace troupe::gpu::testing
