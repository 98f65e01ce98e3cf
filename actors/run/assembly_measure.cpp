// Chooses the reduction algorithms of a run by measuring, if exchange.algorithm is "auto".
#include <algorithm>

#include "actors/exchanger/measuring.hpp"
#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/requests/interruptible.hpp"
#include "actors/run/assembly.hpp"
#include "transport/exchange/collectives/choice.hpp"

namespace troupe::actors {

namespace {

constexpr std::uint32_t kMeasureRounds = 5;

}  // namespace

/// "auto": the fastest algorithm for each length of vector, as measured by the members.
core::Result<void> Assembly::choose_reductions(const Beginning& beginning) {
  const auto& config = spec_.settings->exchange;
  if (config.algorithm != "auto" || config.wire != "fp32" || !spec_.needs.group || launch_.nodes.empty()) return {};
  const auto& before = beginning.exchange;
  // The same sites keep their algorithms: a resumed session computes the same sums.
  const auto same = [&](auto field) { return (*before).*field == exchange_.*field; };
  if (before && !before->measured.empty() && same(&ExchangePlan::endpoint) && same(&ExchangePlan::worker_sites) &&
      same(&ExchangePlan::site_hosts) && same(&ExchangePlan::on_devices)) {
    exchange_.reductions = before->reductions;
    exchange_.measured = before->measured;
    return {};
  }
  std::vector<std::uint32_t> hosts;
  for (const auto site : exchange_.worker_sites)
    if (!exchange_.site_hosts.empty()) hosts.push_back(exchange_.site_hosts[site]);
  const bool mapped = !exchange_.on_devices && experiment::may_sum_in_arenas(config);
  const auto algorithms = exchange::candidates(spec_.workers, hosts, mapped);
  if (algorithms.size() < 2) return {};
  auto timings = measure(algorithms);
  if (!timings) return tl::unexpected(timings.error());
  exchange_.measured = std::move(*timings);
  exchange_.reductions = exchange::choose(exchange_.measured);
  return {};
}

core::Result<std::vector<exchange::Timing>> Assembly::measure(const std::vector<exchange::Algorithm>& algorithms) {
  MeasureOrder order{.worker_sites = exchange_.worker_sites,
                     .site_hosts = exchange_.site_hosts,
                     .floats = {},
                     .algorithms = {},
                     .rounds = kMeasureRounds};
  for (const auto length : exchange::lengths_to_measure(most_floats(spec_, *layout_))) order.floats.push_back(length);
  for (const auto algorithm : algorithms) order.algorithms.emplace_back(exchange::name(algorithm));
  using Asking = decltype(self_->request(SiteActor{}, kNoDeadline, order));
  using AskingHere = decltype(self_->request(ExchangerActor{}, kNoDeadline, order));
  std::vector<std::pair<SiteHandle*, Asking>> there;
  std::vector<std::pair<SiteHandle*, AskingHere>> here;
  // A site detects silence itself (Site::measure), and a lost site's proxy answers with the reason. The deadline is for a site that does
  // neither. Here, silence ends the request (receive() below).
  for (auto& handle : sites_) {
    if (handle.members.workers.empty()) continue;
    if (handle.there)
      there.emplace_back(&handle, self_->request(handle.there, measure_deadline(order), order));
    else
      here.emplace_back(&handle, self_->request(handle.here->exchanger(), kNoDeadline, order));
  }
  std::vector<exchange::Timing> timings;
  for (const auto length : order.floats)
    for (const auto algorithm : algorithms) timings.push_back({length, algorithm, 0});
  core::Result<void> result;
  // The slowest member's time counts: the others wait for it.
  const auto measured = [&](SiteHandle* handle) {
    return [&, handle](const Measured& told) {
      const bool can_be = std::ranges::all_of(told.seconds, [](double s) { return s >= 0 && s < 1e6; });
      if (!can_be && result) result = tl::unexpected(at(*handle, {core::Errc::corrupt, "it measured invalid times"}));
      if (!told.error.empty() && result) result = tl::unexpected(at(*handle, {told.code, told.error}));
      for (std::size_t k = 0; k < std::min(timings.size(), told.seconds.size()); ++k)
        timings[k].seconds = std::max(timings[k].seconds, told.seconds[k]);
    };
  };
  const auto failed = [&](SiteHandle* handle) {
    return [&, handle](const caf::error& error) {
      if (result) result = tl::unexpected(no_answer(*handle, "did not measure", error));
    };
  };
  for (auto& [handle, asking] : there) receive(asking, stop_, measured(handle), failed(handle));
  for (auto& [handle, asking] : here)
    receive(asking, Movement{handle->here->moves(), kMeasureSilence}, stop_, measured(handle), failed(handle));
  if (!result) return tl::unexpected(result.error());
  return timings;
}

}  // namespace troupe::actors
