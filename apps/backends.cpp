#include "apps/backends.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/devices.hpp"
#include "cpu/backend.hpp"
#include "guest/backend.hpp"
#include "nn/program/own_process.hpp"

namespace troupe::apps {

core::Result<std::unique_ptr<nn::Backend>> make_backend(const experiment::Settings& settings,
                                                        std::function<void(const std::string&)> on_output) {
  if (const auto& model = settings.model; !model.command.empty())
    return guest::make_backend({.command = model.command,
                                .start = std::chrono::duration<double>(model.start_s),
                                .silence = std::chrono::duration<double>(model.silence_s),
                                .end = nn::patience_at_end(model),
                                .fingerprint = model.program,
                                .samples = model.program.empty() ? 0 : settings.data.train_samples,
                                .workers = static_cast<std::uint32_t>(settings.cluster.workers),
                                .seed = static_cast<std::uint64_t>(settings.run.seed),
                                .threads = settings.threads(0),
                                .epochs = settings.config.where("run.epochs") == "default" ? 0 : settings.run.epochs},
                               std::move(on_output));
  const auto devices = settings.devices();
  if (devices == std::vector<std::string>{"cpu"}) return cpu::make_backend();
  return make_devices_backend(devices, static_cast<std::size_t>(settings.cluster.workers));
}

core::Result<std::unique_ptr<nn::Backend>> make_backend(const std::string& device) {
  if (device == "cpu") return cpu::make_backend();
  return make_devices_backend({device}, 1);
}

std::string devices_text(const experiment::Settings& settings) {
  const auto devices = settings.devices();
  if (devices == std::vector<std::string>{"cpu"}) return {};
  std::vector<std::string> texts;
  for (const auto& device : devices) {
    std::vector<std::size_t> workers;
    for (std::size_t w = 0; w < static_cast<std::size_t>(settings.cluster.workers); ++w)
      if (settings.device(w) == device) workers.push_back(w);
    texts.push_back(
        fmt::format("{}: {} {}", device, workers.size() == 1 ? "worker" : "workers", fmt::join(workers, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace troupe::apps
