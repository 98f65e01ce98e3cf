/// The validation split: samples held out of the training split, or a data set of its own. Early stopping, the best checkpoint, targets and
/// plateau schedules look at it; training and the test split have none of its samples. Pure functions; the data sets made here are as
/// thread-safe as the one they are cut from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/config/config.hpp"
#include "core/error.hpp"
#include "data/dataset.hpp"

namespace troupe::data {

/// One value of `data.validation`.
struct Validation {
  double share = 0;        ///< of the training samples; 0: none
  std::int64_t count = 0;  ///< of the training samples; 0: none
  std::string folder{};    ///< of a data set of the same kind, whose test split is taken; empty: none
  [[nodiscard]] bool none() const noexcept { return share == 0 && count == 0 && folder.empty(); }
};

/// "none" | "0.1" (a share, above 0 and below 1) | "5000" (a count) | "folder:PATH". Null for anything else.
[[nodiscard]] std::optional<Validation> parse_validation(std::string_view text);
[[nodiscard]] core::Rule validation_rule();

/// How many of `samples` training samples are held out: a share is rounded down, but takes at least one.
[[nodiscard]] std::int64_t held_out(const Validation& validation, std::int64_t samples);

struct HeldOut {
  std::shared_ptr<const Dataset> train;       ///< the rest
  std::shared_ptr<const Dataset> validation;  ///< in the order of the files, like the rest
};
/// Which samples are held out depends on `seed` and the number of samples only: it is the same in every process and session. Memory: 4 bytes
/// per sample. Errc::config if no sample would remain to train. REQUIRES a share or a count, and fewer than 2^32 samples.
[[nodiscard]] core::Result<HeldOut> hold_out(std::shared_ptr<const Dataset> train, const Validation& validation,
                                             std::uint64_t seed);

}  // namespace troupe::data
