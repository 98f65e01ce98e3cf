/// The data set of a run whose program reads its own samples (model.command): sample k's label is k, and its image one unused byte.
/// The test split is one sample: the program evaluates its model whole.
#pragma once

#include "data/config.hpp"
#include "data/registry.hpp"

namespace troupe::data {

/// Errc::config: data.train_samples is below 1 or above 2147483647.
[[nodiscard]] core::Result<std::shared_ptr<const Dataset>> open_numbers(const DataConfig& config, Split split,
                                                                        std::int64_t limit);
[[nodiscard]] core::Result<PublishedForm> numbers_form(const DataConfig& config);

}  // namespace troupe::data
