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

bool other_data(const RunSpec& spec, const Checkpoint& checkpoint, const std::string& changes) {
  // A checkpoint of an older program has no fingerprint: then the settings must do.
  return checkpoint.data.empty() ? !changes.empty() : checkpoint.data != data_fingerprint(spec);
}

std::string unfitting_data(const RunSpec& spec, const Checkpoint& checkpoint, const core::Config& recorded) {
  const auto changes = changed_data(spec.settings->config, recorded);
  const auto which = changes.empty() ? "the files have changed" : changes;
  const bool split = decides_on_another_split(spec, checkpoint, recorded);
  constexpr auto kAnew = "the best validation score, and evaluations without a better one, count from here on";
  if (other_data(spec, checkpoint, changes))
    return fmt::format(
        "the data are not those that the run was trained on so far ({}): its results now mix both{}; a "
        "new run keeps them apart",
        which, split ? fmt::format(", and {}", kAnew) : "");
  return split ? fmt::format("the validation split is not the one that decided so far ({}): {}", which, kAnew) : "";
}

/// Empty: the rate goes on where it was.
std::string jumping_rate(const RunSpec& spec, const core::Config& recorded) {
  const auto& train = spec.settings->train;
  const auto before = recorded.get(nn::train_table());
  const auto epochs = spec.settings->run.epochs, epochs_before = recorded.get(run_table()).epochs;
  const auto workers = static_cast<int>(spec.workers);
  const auto workers_before = static_cast<int>(std::get<std::int64_t>(recorded.value("cluster.workers")));
  const double at = spec.leases->epoch_position();
  const auto rate_of = [at](const nn::TrainConfig& config, std::int64_t length, int number) {
    return nn::learning_rate(config, at, static_cast<double>(length), number);
  };
  const auto differ = [](double one, double other) { return std::abs(one - other) > 0.01 * std::max(one, other); };
  const double old_rate = rate_of(before, epochs_before, workers_before), rate = rate_of(train, epochs, workers);
  const bool by_length = epochs != epochs_before && nn::depends_on_length(train);
  const bool by_workers = differ(rate, rate_of(train, epochs, workers_before));
  if (!differ(old_rate, rate) || (!by_length && !by_workers)) return {};
  std::string why;
  if (by_length)
    why = fmt::format("run.epochs = {}, before {}: train.lr_policy = \"{}\" follows the run's length", epochs,
                      epochs_before, train.lr_policy);
  if (by_workers)
    why += fmt::format(
        "{}cluster.workers = {}, before {}: {}", by_length ? "; " : "", workers, workers_before,
        train.scale_lr ? "train.scale_lr multiplies train.lr by it" : "the warm-up begins at train.lr divided by it");
  // The falls of a plateau are in both.
  const double factor = train.lr_policy == "plateau" ? spec.leases->lr_factor() : 1;
  const auto remedy = by_length ? std::string(R"(a lower train.lr, or train.lr_policy = "constant", avoids it)")
                                : fmt::format("train.lr = {:.3g} avoids it", train.lr * old_rate / rate);
  return fmt::format("{}, so the learning rate jumps from {:.3g} to {:.3g}; {}", why, factor * old_rate, factor * rate,
                     remedy);
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
      "others not at all; leave it out, or change it at the end of an epoch",
      core::to_toml(now), core::to_toml(before), accounts.epoch + 1);
}

}  // namespace

std::string data_fingerprint(const RunSpec& spec) {
  if (!spec.source.train || !spec.source.test) return {};
  const auto hash = data::fingerprint(spec.source);
  return hash ? fmt::format("{:016x}", *hash) : std::string{};
}

std::string validation_fingerprint(const RunSpec& spec) {
  if (!spec.source.train) return {};
  if (!spec.source.validation) return "none";
  const auto hash = data::fingerprint(*spec.source.validation);
  return hash ? fmt::format("{:016x}", *hash) : std::string{};
}

bool decides_on_another_split(const RunSpec& spec, const Checkpoint& checkpoint, const core::Config& recorded) {
  if (!checkpoint.validation.empty()) return checkpoint.validation != validation_fingerprint(spec);
  // Of an older program, as above.
  const auto& config = spec.settings->config;
  const auto& split = config.value("data.validation");
  if (split != recorded.value("data.validation")) return true;
  const auto parsed = data::parse_validation(std::get<std::string>(split));
  return parsed && !parsed->none() && other_data(spec, checkpoint, changed_data(config, recorded));
}

std::vector<Note> notes_on_resume(const RunSpec& spec, const Checkpoint& checkpoint, const core::Config& recorded) {
  std::vector<Note> notes;
  const auto warn = [&](std::string text) {
    if (!text.empty()) notes.push_back({Note::Level::warning, std::move(text)});
  };
  const auto& settings = *spec.settings;
  warn(unfitting_data(spec, checkpoint, recorded));
  if (checkpoint.optimizer != settings.train.optimizer)
    warn(fmt::format("train.optimizer = \"{}\": the run was trained with \"{}\" so far, and lr = {} was for that",
                     settings.train.optimizer, checkpoint.optimizer, core::to_toml(recorded.value("train.lr"))));
  else
    warn(unfitting_rate(settings.config, recorded));
  warn(jumping_rate(spec, recorded));
  warn(another_order(spec, recorded));
  return notes;
}

}  // namespace troupe::experiment
