/// `troupe train --dry-run`: what a run would be, without training and without writing a file. Thread rule: the main thread; blocks while it
/// measures a step.
#pragma once

#include <string>

#include "core/error.hpp"
#include "experiment/settings.hpp"
#include "nn/backend.hpp"

namespace troupe::apps {

struct DryRun {
  std::string profile{};  ///< a step profile (docs/formats/step-profile.md) in place of a measurement; empty: measure
  bool json = false;      ///< one line of JSON: docs/formats/dry-run.md
};

/// Prints the layers of the model, the memory of a worker and of the servers, the number of steps, and a forecast of the time. Opens the
/// data set only if neither its images' form nor its length is published. Cost: compiles each kind of worker's replica, and steps for about
/// a second. Errors: those of build_run_spec(), compile() and of the profile.
[[nodiscard]] core::Result<void> dry_run(const experiment::Settings& settings, nn::Backend& backend,
                                         const DryRun& options);

}  // namespace troupe::apps
