/// The backends of commands. This file and devices.* are the only ones that depend on every backend. Thread rule: any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "experiment/settings.hpp"
#include "nn/backend.hpp"

namespace troupe::apps {

/// The backend for `cluster.device` or `cluster.devices`, or for the program of `model.command`; `on_output` takes the lines that the program
/// prints that evaluates, on any thread. The device of worker 0 is opened now, others when a worker is compiled (devices.hpp). Errc::config when
/// this build or this machine does not have it, with the reason.
[[nodiscard]] core::Result<std::unique_ptr<nn::Backend>> make_backend(
    const experiment::Settings& settings, std::function<void(const std::string&)> on_output = {});
/// The backend for one device.
[[nodiscard]] core::Result<std::unique_ptr<nn::Backend>> make_backend(const std::string& device);

/// "cuda:0: worker 0; cpu: workers 1 and 2"; empty where all compute on the CPU.
[[nodiscard]] std::string devices_text(const experiment::Settings& settings);

}  // namespace troupe::apps
