#include "experiment/state/local_rank.hpp"

namespace troupe::experiment {
namespace {

std::uint32_t host_of_worker(const ExchangePlan& exchange, std::uint32_t worker) {
  const auto site = worker < exchange.worker_sites.size() ? exchange.worker_sites[worker] : 0;
  return site < exchange.site_hosts.size() ? exchange.site_hosts[site] : 0;
}

}  // namespace

int local_rank(const Settings& settings, const ExchangePlan& exchange, std::uint32_t worker) {
  int rank = 0;
  for (std::uint32_t other = 0; other < worker; ++other)
    if (settings.device(other) == settings.device(worker) &&
        host_of_worker(exchange, other) == host_of_worker(exchange, worker))
      ++rank;
  return rank;
}

}  // namespace troupe::experiment
