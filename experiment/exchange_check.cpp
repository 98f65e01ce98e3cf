#include "experiment/exchange_check.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "transport/registry/endpoint_registry.hpp"

namespace troupe::experiment {

namespace {

std::string text_of(const core::Config& config, std::string_view key) {
  return std::get<std::string>(config.value(key));
}

bool needs_job(const core::Config& config) {
  const auto* const endpoint = transport::find_endpoint(text_of(config, "exchange.endpoint"));
  return endpoint && endpoint->needs_job;
}

/// What a configuration needs for an algorithm that the endpoint's library executes.
std::string remedy_for_library_sums() {
  for (const auto& endpoint : transport::endpoint_infos())
    if (endpoint.sums_itself)
      return fmt::format("only {} reduces by itself: use \"auto\", or exchange.endpoint = \"{}\" under mpirun",
                         endpoint.library.title, endpoint.name);
  return "no endpoint reduces by itself: use \"auto\"";
}

}  // namespace

// Members that lend each other memory sum in place and round nothing. Over an endpoint this requires that they map each other's memory.
core::Result<void> check_exchange(const core::Config& config, Use use) {
  const auto text = [&](std::string_view key) { return text_of(config, key); };
  const auto refuse = [&](std::string_view key, std::string_view remedy) {
    return core::fail(core::Errc::config,
                      fmt::format("{}: {} = \"{}\": {}", config.where(key), key, text(key), remedy));
  };
  const auto* const endpoint = transport::find_endpoint(text("exchange.endpoint"));  // null: "auto"
  const auto& algorithm = exchange::info(exchange::algorithm_of(text("exchange.algorithm")));
  const bool processes = use == Use::processes;
  if (needs_job(config) && !processes)
    return refuse("exchange.endpoint", "its ranks are processes: start the run with mpirun");
  if (algorithm.in_library && (!processes || !endpoint || !endpoint->sums_itself))
    return refuse("exchange.algorithm", remedy_for_library_sums());
  const bool in_place = !endpoint && !processes;
  if (in_place && algorithm.algorithm != exchange::Algorithm::automatic && !algorithm.in_mapped_memory)
    return refuse("exchange.algorithm",
                  "members of one process sum in place: use \"auto\" or \"shm\", or an exchange.endpoint");
  if (in_place && text("exchange.wire") != "fp32")
    return refuse("exchange.wire",
                  "members of one process lend each other memory: use \"fp32\", or an exchange.endpoint");
  if (algorithm.on_devices && text("exchange.wire") != "fp32")
    return refuse("exchange.wire", "NCCL sums in float32: use \"fp32\", or exchange.algorithm = \"asa16\"");
  if (algorithm.on_devices && std::get<bool>(config.value("cluster.deterministic")))
    return refuse("exchange.algorithm",
                  "NCCL sums in an order of its own, which no replay has: use \"auto\", or cluster.deterministic = "
                  "false");
  if (algorithm.in_mapped_memory && endpoint && !endpoint->maps_memory)
    return refuse(
        "exchange.algorithm",
        fmt::format("over exchange.endpoint = \"{}\" no member maps another's memory: use \"auto\", or leave the "
                    "endpoint at \"auto\" where all workers are on one host",
                    endpoint->name));
  if (algorithm.in_mapped_memory && text("exchange.wire") != "fp32")
    return refuse("exchange.wire",
                  "exchange.algorithm = \"shm\" sums where the numbers are and rounds nothing: use \"fp32\", or "
                  "exchange.algorithm = \"asa16\"");
  return {};
}

exchange::Algorithm reduction_algorithm(const ExchangeConfig& config) {
  using exchange::Algorithm;
  const auto named = exchange::algorithm_of(config.algorithm);
  const bool may_round = named == Algorithm::automatic || named == Algorithm::asa;
  return may_round && config.wire != "fp32" ? Algorithm::asa16 : named;
}

Use intended_use(const core::Config& config) {
  // A job has no runs of one process: its other errors are those of a run under mpirun.
  if (needs_job(config)) return Use::processes;
  return !check_exchange(config, Use::run) && check_exchange(config, Use::processes) ? Use::processes : Use::run;
}

}  // namespace troupe::experiment
