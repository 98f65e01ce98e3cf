#include "experiment/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiment/automatic.hpp"
#include "experiment/exchange_check.hpp"
#include "experiment/settings_checks.hpp"
#include "transport/exchange/collectives/algorithm.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::experiment {
namespace {

using core::between;
using core::one_of;

/// More than any run needs; keeps counts within the 32 bits of messages.
constexpr double kMostMembers = 65'535;
constexpr double kMostEpochs = 1'000'000;

core::Rule checkpoint_period() {
  return {"\"N epochs\" | \"N steps\" | \"N s\" | \"N min\" | \"never\"", [](const core::Value& value) {
            const auto* text = std::get_if<std::string>(&value);
            return text != nullptr && parse_checkpoint_period(*text).has_value();
          }};
}

core::Rule evaluation_period() {
  return {"\"N epochs\" | \"N steps\"", [](const core::Value& value) {
            const auto* text = std::get_if<std::string>(&value);
            return text != nullptr && parse_evaluation_period(*text).has_value();
          }};
}

/// Of a text, or of every text in a list.
core::Rule device_name() {
  return {fmt::format("{}", nn::kDeviceNames),
          [](const core::Value& value) {
            const auto known = [](const std::string& name) { return nn::parse_device_name(name).has_value(); };
            if (const auto* text = std::get_if<std::string>(&value)) return known(*text);
            const auto* list = std::get_if<std::vector<std::string>>(&value);
            return list != nullptr && std::ranges::all_of(*list, known);
          },
          false,
          {"cpu", "cuda", "cuda_on_host"}};
}

core::Rule journal_policy() {
  return {"\"all\" | \"off\" | \"N KB\" | \"N MB\" | \"N GB\"", [](const core::Value& value) {
            const auto* text = std::get_if<std::string>(&value);
            return text != nullptr && parse_journal(*text).has_value();
          }};
}

/// The run's name becomes part of a directory's name.
core::Rule file_name() {
  return {"1 to 100 bytes, no slash, not beginning with a dot", [](const core::Value& value) {
            const auto* text = std::get_if<std::string>(&value);
            return text != nullptr && !text->empty() && text->size() <= 100 && text->front() != '.' &&
                   std::none_of(text->begin(), text->end(),
                                [](unsigned char c) { return c == '/' || c < 0x20 || c == 0x7f; });
          }};
}

std::vector<std::string> names_of_endpoints() {
  std::vector<std::string> names{"auto"};
  for (const auto& endpoint : transport::endpoint_infos()) names.emplace_back(endpoint.name);
  return names;
}

std::vector<std::string> names_of_algorithms() {
  std::vector<std::string> names;
  for (const auto& algorithm : exchange::algorithm_infos()) names.emplace_back(algorithm.name);
  return names;
}

}  // namespace

bool may_sum_in_arenas(const ExchangeConfig& config) {
  const auto algorithm = exchange::algorithm_of(config.algorithm);
  const auto* const endpoint = transport::find_endpoint(config.endpoint);
  return endpoint && endpoint->maps_memory && config.wire == "fp32" &&
         (algorithm == exchange::Algorithm::automatic || exchange::info(algorithm).in_mapped_memory);
}

std::optional<CheckpointPeriod> parse_checkpoint_period(std::string_view text) {
  if (text == "never") return CheckpointPeriod{};
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const std::string_view number = text.substr(0, space), unit = text.substr(space + 1);
  double count = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), count, std::chars_format::fixed);
  if (error != std::errc{} || end != number.data() + number.size() || !(count > 0) || count > 1e15) return std::nullopt;
  if (unit == "s") return CheckpointPeriod{.seconds = count};
  if (unit == "min") return CheckpointPeriod{.seconds = 60 * count};
  if (count != std::floor(count)) return std::nullopt;
  if (unit == "epoch" || unit == "epochs") return CheckpointPeriod{.epochs = static_cast<std::int64_t>(count)};
  if (unit == "step" || unit == "steps") return CheckpointPeriod{.steps = static_cast<std::int64_t>(count)};
  return std::nullopt;
}

std::optional<CheckpointPeriod> parse_evaluation_period(std::string_view text) {
  const auto period = parse_checkpoint_period(text);
  return period && period->seconds == 0 && (period->epochs > 0 || period->steps > 0) ? period : std::nullopt;
}

coordination::WatchOptions watch_options(const RunConfig& run, const nn::TrainConfig& train) {
  const bool falls = train.lr_policy == "plateau";
  return {.monitor = run.monitor == "loss" ? coordination::Monitor::loss : coordination::Monitor::accuracy,
          .target_accuracy = run.target_accuracy,
          .target_loss = run.target_loss,
          .patience = static_cast<std::uint64_t>(run.patience),
          .lr_patience = falls ? static_cast<std::uint64_t>(train.lr_patience) : 0,
          .lr_gamma = train.lr_gamma};
}

std::optional<JournalPolicy> parse_journal(std::string_view text) {
  if (text == "all") return JournalPolicy{};
  if (text == "off") return JournalPolicy{.keep = false};
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto number = text.substr(0, space);
  const auto unit = text.substr(space + 1);
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
  if (error != std::errc{} || end != number.data() + number.size() || count == 0 || count > 1'000'000)
    return std::nullopt;
  for (const auto& [name, bytes] :
       {std::pair{"KB", std::uint64_t{1000}}, {"MB", std::uint64_t{1'000'000}}, {"GB", std::uint64_t{1'000'000'000}}}) {
    if (unit == name) return JournalPolicy{.bytes = count * bytes};
  }
  return std::nullopt;
}

std::int64_t RunConfig::limited_epochs() const noexcept {
  return max_epochs > 0 ? std::min(epochs, max_epochs) : epochs;
}

const core::Table<RunConfig>& run_table() {
  static const core::Table<RunConfig> table{
      "run",
      {{"name", &RunConfig::name, file_name(), "what the run is called; part of its directory's name"},
       {"seed", &RunConfig::seed, core::at_least(0), "of initial parameters, shuffling, augmentation and dropout"},
       {"epochs", &RunConfig::epochs, between(1, kMostEpochs), "passes over the training data, all workers together"},
       {"dir", &RunConfig::dir, core::not_empty(), "where run directories are made, relative to the working directory"},
       {"checkpoint_every", &RunConfig::checkpoint_every, checkpoint_period(),
        "how often the model is saved; steps count over all workers"},
       {"journal", &RunConfig::journal, journal_policy(),
        "the order of every decision, from which a run can be replayed: \"all\", \"off\", or the newest \"64 MB\" of "
        "it"},
       {"hash_every", &RunConfig::hash_every, between(0, core::kMostCount),
        "steps of a worker between two hashes of its parameters in the journal, besides those of every model that is "
        "evaluated or saved: a replay names the first that differs; 0: none; with model.command the default is 100"},
       {"tensorboard", &RunConfig::tensorboard, core::anything(),
        "write events.out.tfevents.* into the run's directory"},
       {"keep_checkpoints", &RunConfig::keep_checkpoints, between(2, core::kMostCount),
        "newest checkpoints that are kept"},
       {"evaluate_every", &RunConfig::evaluate_every, evaluation_period(),
        "how often the model is evaluated on the validation split, or without one on the test split; steps count over "
        "all workers"},
       {"evaluation", &RunConfig::evaluation, one_of({"paused", "beside"}),
        "paused: the workers stand still meanwhile, and their threads evaluate; beside: training goes on while a copy "
        "of the model is evaluated"},
       {"target_accuracy", &RunConfig::target_accuracy, between(0, 1),
        "stop when the accuracy on the validation split, or without one on the test split, reaches it; 0: never"},
       {"target_loss", &RunConfig::target_loss, between(0, core::kMostFloat),
        "stop when the validation loss has fallen to it; 0: never"},
       {"patience", &RunConfig::patience, between(0, core::kMostCount),
        "evaluations in a row without a better validation score after which the run stops; 0: never"},
       {"monitor", &RunConfig::monitor, one_of({"accuracy", "loss"}),
        "the validation score that makes a model the best, and that patience, train.lr_patience and best.safetensors "
        "follow"},
       {"max_seconds", &RunConfig::max_seconds, between(0, 1e9),
        "seconds of training after which the run stops and is evaluated; 0: no limit"},
       {"max_epochs", &RunConfig::max_epochs, between(0, kMostEpochs),
        "epochs after which the run stops and is evaluated; the learning rate's schedule is still that of run.epochs, "
        "and --resume with a greater limit goes on; 0: no limit"},
       {"init", &RunConfig::init, core::anything(),
        "a new run begins with the weights of this checkpoint, of the newest one of this run directory, or of a "
        "safetensors file with torchvision's names; empty: with fresh ones"},
       {"init_partial", &RunConfig::init_partial, core::anything(),
        "take the tensors of run.init that fit the model, and begin the others afresh: for another classifier"}}};
  return table;
}

const core::Table<ClusterConfig>& cluster_table() {
  static const core::Table<ClusterConfig> table{
      "cluster",
      {{"workers", &ClusterConfig::workers, between(1, kMostMembers),
        "replicas of the model that train; under mpirun their number follows from the ranks"},
       {"workers_per_rank", &ClusterConfig::workers_per_rank, between(1, kMostMembers),
        "under mpirun: cluster.workers is so many times the number of ranks"},
       {"servers", &ClusterConfig::servers, between(1, kMostMembers),
        "shards of the centre, for strategies that have one"},
       {"server_placement", &ClusterConfig::server_placement, one_of({"auto", "dedicated", "colocated"}),
        "where several processes keep the centre: with the coordinator, so that no lost worker costs a part of it, or "
        "shard "
        "by shard with the workers; auto: dedicated"},
       {"threads_per_worker", &ClusterConfig::threads_per_worker, core::both(between(1, 1024), core::not_empty()),
        "threads that compute one replica: one number, or a list with one per worker"},
       {"slowdown", &ClusterConfig::slowdown, core::both(between(1, 1000), core::not_empty()),
        "how many times as long a worker takes for a step: it sleeps for the rest; one number, or one per worker"},
       {"synthetic_step_ms", &ClusterConfig::synthetic_step_ms, between(0, 60'000),
        "every step takes at least so long, before slowdown: for studies with more workers than cores; 0: as it is"},
       {"device", &ClusterConfig::device, device_name(),
        "what replicas compute on; cuda: an NVIDIA GPU, where this build and this machine have it; the workers of a "
        "host take its GPUs in turn; cuda:N: that one"},
       {"devices", &ClusterConfig::devices, device_name(),
        "the device of each worker, in place of cluster.device; a list shorter than the workers begins again: "
        "[\"cuda:0\", \"cuda:1\", \"cpu\"]"},
       {"precision", &ClusterConfig::precision, one_of({"fp32", "bf16", "tf32", "fp16"}),
        "of forward and backward; parameters, their gradients and the optimizer are always float32; tf32 and fp16: "
        "GPUs only"},
       {"deterministic", &ClusterConfig::deterministic, core::anything(),
        "the same run gives the same bits; false: a GPU may be faster, and a replay cannot compare numbers"},
       {"kernels", &ClusterConfig::kernels, one_of({"measured", "fixed"}),
        "how the algorithm of each convolution is chosen: by measurement when the run starts, with the choices in "
        "plan.json, or by a fixed rule, so that two runs compute the same bits; with several batch sizes always by the "
        "rule"},
       {"pinning", &ClusterConfig::pinning, one_of({"auto", "off"}),
        "auto: each worker's threads have cores of their own and memory near them, where there are enough cores; a "
        "worker gives its cores up when other programs use them"}}};
  return table;
}

const core::Table<ExchangeConfig>& exchange_table() {
  static const core::Table<ExchangeConfig> table{
      "exchange",
      {{"endpoint", &ExchangeConfig::endpoint, one_of(names_of_endpoints()),
        "what carries parameters between workers; auto: members of one process lend each other memory"},
       {"algorithm", &ExchangeConfig::algorithm, one_of(names_of_algorithms()),
        "how sums over workers are formed; auto: in place within a process, else the fastest that members measure"},
       {"deadline_s", &ExchangeConfig::deadline_s, between(1, 1e6),
        "a run ends when a worker has waited so long for a server or a reduction and nothing has moved meanwhile: "
        "longer than the slowest worker needs"},
       {"map_devices", &ExchangeConfig::map_devices, core::anything(),
        "processes of one host map each other's device memory where they can; false: they copy through the host"},
       {"wire", &ExchangeConfig::wire, one_of({"fp32", "fp16", "bf16"}),
        "number format of differences between processes: gradients, sums of steps, what servers answer; parameters "
        "that a worker goes on from travel in float32"}}};
  return table;
}

nn::Precision Settings::precision() const noexcept {
  return nn::parse_precision(cluster.precision).value_or(nn::Precision::fp32);  // cluster_table() checks the name
}

std::vector<std::string> Settings::devices() const {
  if (cluster.devices.empty()) return {cluster.device};
  std::vector<std::string> names;
  for (const auto& name : cluster.devices)
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

std::string_view Settings::backend(std::size_t worker) const noexcept {
  const auto known = nn::parse_device_name(device(worker));
  return nn::backend_of(known ? known->kind : nn::DeviceKind::cpu);
}

std::vector<std::string_view> Settings::backends() const {
  std::vector<std::string_view> all;
  for (std::size_t worker = 0; worker < std::max<std::size_t>(cluster.devices.size(), 1); ++worker)
    if (std::ranges::find(all, backend(worker)) == all.end()) all.push_back(backend(worker));
  return all;
}

const core::Schema& schema() {
  static const core::Schema whole = [] {
    core::Schema s;
    s.add(run_table());
    s.add(nn::model_table());
    s.add(data::data_table());
    s.add(nn::train_table());
    strategies::add_options(s);
    s.add(cluster_table());
    s.add(exchange_table());
    add_derivations(s);
    return s;
  }();
  return whole;
}

core::Result<Settings> resolve(core::Config config, Use use) {
  if (use == Use::run || use == Use::processes) {
    if (auto served = check_exchange(config, use); !served) return tl::unexpected(std::move(served.error()));
  }
  Settings settings;
  settings.run = config.get(run_table());
  settings.model = config.get(nn::model_table());
  settings.data = config.get(data::data_table());
  settings.train = config.get(nn::train_table());
  settings.strategy = config.get(strategies::strategy_table()).name;
  settings.cluster = config.get(cluster_table());
  settings.exchange = config.get(exchange_table());
  settings.journal = parse_journal(settings.run.journal).value();
  settings.checkpoint = parse_checkpoint_period(settings.run.checkpoint_every).value();
  settings.evaluation = parse_evaluation_period(settings.run.evaluate_every).value();
  settings.config = std::move(config);
  if (auto fits = check_settings(settings, use); !fits) return tl::unexpected(std::move(fits.error()));
  return settings;
}

std::vector<std::string> keys_in_force(const core::Config& config) {
  const auto& strategy = std::get<std::string>(config.value("strategy.name"));
  std::vector<std::string> keys;
  for (const auto& option : schema().options())
    if (option.scope.empty() || option.scope == strategy) keys.push_back(option.key);
  return keys;
}

}  // namespace troupe::experiment
