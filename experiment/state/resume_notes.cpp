#include "experiment/state/resume_notes.hpp"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "data/fingerprint.hpp"
#include "data/validation.hpp"
#include "experiment/automatic.hpp"
#include "nn/optimizer.hpp"

namespace troupe::experiment {
namespace {

/// A run directory holds the rate that "auto" became: for other workers, or another strategy, it is another one. Empty: nothing to say.
std::string unfitting_rate(const core::Config& now, const core::Config& recorded) {
  const auto rate = std::get<double>(now.value("train.lr"));
  if (rate != automatic_rate(recorded) || rate != std::get<double>(recorded.value("train.lr"))) return {};
  const auto fitting = automatic_rate(now);
  if (fitting == rate || now.where("train.lr") == "--set") return {};
  return fmt::format(
      "train.lr = {} is what \"auto\" means for the workers, strategy and batch before, and is kept; for those now it "
      "means {}: --set train.lr=auto takes it",
      rate, fitting);
}

/// "data.name = "fashion-mnist", before "mnist""; empty: the settings name the same data.
std::string changed_data(const core::Config& now, const core::Config& recorded) {
  std::vector<std::string> keys{"data.name",          "data.path",         "data.seed",
                                "data.train_samples", "data.test_samples", "data.validation"};
  const auto validation = data::parse_validation(std::get<std::string>(now.value("data.validation")));
  if (validation && !validation->none() && validation->folder.empty()) keys.emplace_back("run.seed");  // it holds out
  std::string changes;
  for (const auto& key : keys)
    if (now.value(key) != recorded.value(key))
      changes += fmt::format("{}{} = {}, before {}", changes.empty() ? "" : "; ", key, core::to_toml(now.value(key)),
                             core::to_toml(recorded.value(key)));
  return changes;
}

/// Empty: each sample of the epoch comes once.
std::string another_order(const RunSpec& spec, const core::Config& recorded) {
  const auto& now = spec.settings->config.value("run.seed");
  const auto& before = recorded.value("run.seed");
  const auto accounts = spec.leases->accounts();
  const bool begun = accounts.done + accounts.given_up > 0 && !spec.leases->epoch_done();
  if (now == before || !begun) return {};
  return fmt::format(
      "run.seed = {}, before {}: what is left of epoch {} has another order, so that samples come twice in it and "
      "others "
      "not at all; leave it out, or change it at the end of an epoch",
      core::to_toml(now), core::to_toml(before), accounts.epoch + 1);
}

}  // namespace

std::string data_fingerprint(const RunSpec& spec) {
  if (!spec.source.train || !spec.source.test) return {};
  const auto hash = data::fingerprint(spec.source);
  return hash ? fmt::format("{:016x}", *hash) : std::string{};
}

std::vector<Note> notes_on_resume(const RunSpec& spec, const Checkpoint& checkpoint, const core::Config& recorded) {
  std::vector<Note> notes;
  const auto warn = [&](std::string text) { notes.push_back({Note::Level::warning, std::move(text)}); };
  const auto& settings = *spec.settings;
  const auto changes = changed_data(settings.config, recorded);
  // A checkpoint of an older program has no fingerprint: then the settings must do.
  if (checkpoint.data.empty() ? !changes.empty() : checkpoint.data != data_fingerprint(spec))
    warn(
        fmt::format("the data are not those that the run was trained on so far ({}): its results now mix both; a new "
                    "run keeps them apart",
                    changes.empty() ? "the files have changed" : changes));
  if (auto text = another_order(spec, recorded); !text.empty()) warn(std::move(text));
  if (checkpoint.optimizer != settings.train.optimizer)
    warn(fmt::format("train.optimizer = \"{}\": the run was trained with \"{}\" so far, and lr = {} was for that",
                     settings.train.optimizer, checkpoint.optimizer, core::to_toml(recorded.value("train.lr"))));
  else if (auto text = unfitting_rate(settings.config, recorded); !text.empty())
    warn(std::move(text));
  const auto before = recorded.get(nn::train_table());
  const auto epochs = recorded.get(run_table()).epochs;
  if (epochs == settings.run.epochs || !nn::depends_on_length(settings.train)) return notes;
  const auto workers = static_cast<int>(spec.workers);
  const double at = spec.leases->epoch_position();
  const double old_rate = nn::learning_rate(before, at, static_cast<double>(epochs), workers);
  const double rate = nn::learning_rate(settings.train, at, static_cast<double>(settings.run.epochs), workers);
  if (std::abs(rate - old_rate) > 0.01 * std::max(rate, old_rate))
    warn(
        fmt::format("run.epochs = {}, before {}: train.lr_policy = \"{}\" follows the run's length, so the learning "
                    "rate jumps from {:.3g} to {:.3g}; a lower train.lr, or train.lr_policy = \"constant\", avoids it",
                    settings.run.epochs, epochs, settings.train.lr_policy, old_rate, rate));
  return notes;
}

}  // namespace troupe::experiment
