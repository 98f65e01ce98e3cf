#include "apps/program.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "experiment/run_spec.hpp"
#include "nn/zoo/given_tensor.hpp"

namespace troupe::apps {
namespace {

using experiment::Settings;

constexpr std::int64_t kHashEvery = 100;  // steps: a program is less sure to compute the same bits again than Troupe

bool is_set(const Settings& settings, std::string_view key) { return settings.config.where(key) != "default"; }

/// What the program decides in its own code. `refused`: where a key was set.
template <class Refused>
core::Result<void> check_keys(const Settings& settings, const Refused& refused) {
  for (const auto* key : {"train.optimizer",
                          "train.lr",
                          "train.momentum",
                          "train.weight_decay",
                          "train.beta2",
                          "train.epsilon",
                          "train.rmsprop_epsilon",
                          "train.label_smoothing",
                          "train.clip_value",
                          "train.clip_norm",
                          "train.accumulate",
                          "train.recompute",
                          "data.validation",
                          "data.path",
                          "data.classes",
                          "data.shape",
                          "data.seed",
                          "data.decode_threads",
                          "data.mean",
                          "data.normalise",
                          "data.channel_mean",
                          "data.channel_deviation",
                          "data.statistics",
                          "data.resize",
                          "data.random_resized_crop",
                          "data.brightness",
                          "data.contrast",
                          "data.saturation",
                          "data.crop",
                          "data.pad",
                          "data.mirror",
                          "data.window",
                          "data.max_bad",
                          "data.max_pixels",
                          "data.train_samples",
                          "data.test_samples",
                          "data.stage"}) {
    if (const auto where = settings.config.where(key); refused(where))
      return core::fail(core::Errc::config,
                        fmt::format("{}: {} has no effect on a program of your own, which has its own data, model and "
                                    "optimizer: set it there, and leave it out here",
                                    where, key));
  }
  return {};
}

/// Workers that wait for each other must not give up a worker whose program may still answer.
core::Result<void> check_patience(const Settings& settings) {
  const auto strategy = experiment::make_strategy(settings);
  if (!strategy) return tl::unexpected(strategy.error());
  const auto needs = (*strategy)->needs();
  if (settings.cluster.workers == 1 || !(needs.in_step || needs.group) ||
      settings.model.silence_s <= settings.exchange.deadline_s)
    return {};
  const auto silence = settings.config.where("model.silence_s");
  return core::fail(core::Errc::config,
                    fmt::format("{}: model.silence_s = {:g}, but other workers wait {:g} s for a worker: set "
                                "exchange.deadline_s to at least as much, or model.silence_s to at most {:g}",
                                silence == "default" ? settings.config.where("exchange.deadline_s") : silence,
                                settings.model.silence_s, settings.exchange.deadline_s, settings.exchange.deadline_s));
}

/// What the user has set of `config`, as --set has it.
std::vector<std::string> written_keys(const core::Config& config) {
  const auto& schema = experiment::schema();
  const auto strategy = std::get<std::string>(config.value("strategy.name"));
  std::vector<std::string> all;
  for (const auto& option : schema.options())
    if (&option == schema.find(option.key, strategy) && config.where(option.key) != "default")
      all.push_back(fmt::format("{}={}", option.key, core::to_toml(config.value(option.key))));
  return all;
}

/// Where the user has written it, for messages: "--set", or a file.
std::string source_of(const core::Config& config) {
  const auto where = config.where("model.command");
  return where.substr(0, where.rfind(':'));
}

std::vector<std::string> texts_of(const std::vector<nn::GivenTensor>& tensors) {
  std::vector<std::string> texts;
  for (const auto& tensor : tensors) texts.push_back(nn::to_string(tensor));
  return texts;
}

}  // namespace

core::Result<void> check_no_program(const Settings& settings, std::string_view command) {
  if (settings.model.command.empty()) return {};
  return core::fail(core::Errc::config,
                    fmt::format("{}: model.command: {} is for models that Troupe computes: this one is a program's",
                                settings.config.where("model.command"), command));
}

core::Result<void> check_strategy_of_program(const Settings& settings) {
  const auto refuse = [&](const std::string& key, std::string_view what, std::string_view instead) {
    return core::fail(core::Errc::config, fmt::format("{}: {}{}, and the optimizer is the program's own: {}",
                                                      settings.config.where(key), key, what, instead));
  };
  if (settings.train.optimizer != "sgd")
    return refuse("strategy.name",
                  fmt::format(" = \"{}\" reads the velocity of the workers' optimizer", settings.strategy),
                  "use \"easgd\", and momentum in the program's optimizer");
  if (settings.strategy == "bsp" && settings.config.value("strategy.backup") != core::Value{std::int64_t{0}})
    return refuse("strategy.backup", " steps the optimizer on the servers",
                  "leave it out, or use \"easgd\", whose workers do not wait for each other");
  if (settings.strategy == "downpour" &&
      settings.config.value("strategy.server_optimizer") != core::Value{std::string("none")})
    return refuse("strategy.server_optimizer", " steps an optimizer on the servers",
                  "leave it out, or use \"diloco\", whose outer optimizer steps on means of parameters");
  return check_patience(settings);
}

core::Result<void> check_resumed_program(const Settings& settings) {
  return check_keys(settings, [](const std::string& where) { return where == "--set"; }).and_then([&] {
    return check_strategy_of_program(settings);
  });
}

core::Result<Settings> with_program(const Settings& settings, guest::GuestBackend& backend, experiment::Use use) {
  const auto given = [](const std::string& where) { return where != "default"; };
  if (auto fits = check_keys(settings, given); !fits) return tl::unexpected(std::move(fits.error()));
  auto said = backend.describe();
  if (!said) return tl::unexpected(std::move(said.error()));
  if (is_set(settings, "data.batch"))
    if (const auto why = guest::too_large_for(said->plan, std::ranges::max(settings.data.batch)); !why.empty())
      return core::fail(core::Errc::config, fmt::format("{}: {}", settings.config.where("data.batch"), why));
  auto overrides = written_keys(settings.config);
  const auto set = [&](std::string_view key, const core::Value& value) {
    overrides.push_back(fmt::format("{}={}", key, core::to_toml(value)));
  };
  set("model.tensors", texts_of(said->introduction.tensors));
  set("model.statistics", texts_of(said->introduction.statistics));
  set("model.program", said->introduction.program);
  set("data.train_samples", said->plan.samples);
  set("data.mean", std::string("none"));
  if (!is_set(settings, "data.batch")) set("data.batch", said->plan.batch);
  if (!is_set(settings, "run.epochs")) set("run.epochs", said->plan.epochs);
  if (!is_set(settings, "run.hash_every")) set("run.hash_every", kHashEvery);
  // Nothing of it is used but the rate, a factor of the program's own.
  set("train.optimizer", std::string("sgd"));
  set("train.lr", 1.0);
  // All are given anew as overrides, so that messages about them name what the user has written, and not a text that he never saw.
  auto described = core::Config::parse(experiment::schema(), "", "the command", overrides, source_of(settings.config))
                       .and_then([&](core::Config config) { return experiment::resolve(std::move(config), use); });
  if (!described) return described;
  if (auto fits = check_strategy_of_program(*described); !fits) return tl::unexpected(std::move(fits.error()));
  if (!said->introduction.has_optimizer) {
    const auto strategy = experiment::make_strategy(*described);
    if (!strategy) return tl::unexpected(strategy.error());
    if (!(*strategy)->needs().local_steps)
      return core::fail(core::Errc::config,
                        fmt::format("{}: strategy.name = \"{}\" exchanges gradients, and the program steps by itself: "
                                    "give troupe.join its optimizer, or use a strategy that exchanges parameters, like "
                                    "\"easgd\"",
                                    settings.config.where("strategy.name"), settings.strategy));
  }
  described->initial = std::make_shared<const experiment::InitialValues>(experiment::InitialValues{
      std::make_shared<const std::vector<float>>(std::move(said->parameters)), std::move(said->statistics)});
  return described;
}

}  // namespace troupe::apps
