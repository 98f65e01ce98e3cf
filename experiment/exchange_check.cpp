#include "experiment/exchange_check.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace troupe::experiment {

// Members that lend each other memory sum in place and round nothing. Over an endpoint this requires that they map each other's memory.
core::Result<void> check_exchange(const core::Config& config, Use use) {
  const auto text = [&](std::string_view key) { return std::get<std::string>(config.value(key)); };
  const auto refuse = [&](std::string_view key, std::string_view remedy) {
    return core::fail(core::Errc::config,
                      fmt::format("{}: {} = \"{}\": {}", config.where(key), key, text(key), remedy));
  };
  const auto endpoint = text("exchange.endpoint"), algorithm = text("exchange.algorithm");
  const bool processes = use == Use::processes;
  if (endpoint == "mpi" && !processes)
    return refuse("exchange.endpoint", "its ranks are processes: start the run with mpirun");
  if (algorithm == "ar" && (!processes || endpoint != "mpi"))
    return refuse("exchange.algorithm",
                  "only MPI reduces by itself: use \"auto\", or exchange.endpoint = \"mpi\" under mpirun");
  const bool in_place = endpoint == "auto" && !processes;
  if (in_place && algorithm != "auto" && algorithm != "shm")
    return refuse("exchange.algorithm",
                  "members of one process sum in place: use \"auto\" or \"shm\", or an exchange.endpoint");
  if (in_place && text("exchange.wire") != "fp32")
    return refuse("exchange.wire",
                  "members of one process lend each other memory: use \"fp32\", or an exchange.endpoint");
  if (algorithm == "shm" && endpoint != "auto" && !maps_memory(endpoint))
    return refuse(
        "exchange.algorithm",
        fmt::format("over exchange.endpoint = \"{}\" no member maps another's memory: use \"auto\", or leave the "
                    "endpoint at \"auto\" where all workers are on one host",
                    endpoint));
  if (algorithm == "shm" && text("exchange.wire") != "fp32")
    return refuse("exchange.wire",
                  "exchange.algorithm = \"shm\" sums where the numbers are and rounds nothing: use \"fp32\", or "
                  "exchange.algorithm = \"asa16\"");
  return {};
}

Use intended_use(const core::Config& config) {
  // MPI has no runs of one process: its other errors are those of a run under mpirun.
  if (std::get<std::string>(config.value("exchange.endpoint")) == "mpi") return Use::processes;
  return !check_exchange(config, Use::run) && check_exchange(config, Use::processes) ? Use::processes : Use::run;
}

}  // namespace troupe::experiment
