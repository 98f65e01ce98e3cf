/// Runs whose model is a program of the user's (model.command): what the program says of itself becomes part of the configuration. Thread
/// rule: the main thread.
#pragma once

#include "experiment/settings.hpp"
#include "guest/backend.hpp"

namespace troupe::apps {

/// `settings` with what the program says: its tensors, the number of its samples, and its batch and epochs where the user has not set them.
/// Starts the program (guest::GuestBackend::describe). Errc::config: keys that the program decides itself, or a strategy that needs the
/// inside of the optimizer. Others: from describe().
[[nodiscard]] core::Result<experiment::Settings> with_program(const experiment::Settings& settings,
                                                              guest::GuestBackend& backend, experiment::Use use);

/// Errc::config, if the model is a program: `command` is for models that Troupe computes.
[[nodiscard]] core::Result<void> check_no_program(const experiment::Settings& settings, std::string_view command);

/// For the resume of a program's run: what --set must not change. Errc::config.
[[nodiscard]] core::Result<void> check_resumed_program(const experiment::Settings& settings);

/// Errc::config: the strategy needs more of a program's optimizer than that it steps.
[[nodiscard]] core::Result<void> check_strategy_of_program(const experiment::Settings& settings);

}  // namespace troupe::apps
