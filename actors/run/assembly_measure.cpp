// Asks whether processes map each other's device memory, and chooses the reduction algorithms of a run by measuring, if exchange.algorithm is
// "auto".
#include <algorithm>

#include <fmt/format.h>

#include "actors/exchanger/measuring.hpp"
#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/requests/interruptible.hpp"
#include "actors/run/assembly.hpp"
#include "transport/exchange/collectives/choice.hpp"

namespace troupe::actors {

namespace {

constexpr std::uint32_t kMeasureRounds = 5;

constexpr auto kEverySite = [](const auto&) { return true; };
constexpr auto kHasWorkers = [](const auto& handle) { return !handle.members.workers.empty(); };

}  // namespace

/// Whether the sites of each host map each other's device memory: each has tried its peers' when it connected.
core::Result<void> Assembly::ask_for_mapping() {
  const auto has_neighbours = [&](const SiteHandle& handle) { return exchange_.has_neighbours(handle.number); };
  if (!exchange_.on_devices || !std::ranges::any_of(sites_, has_neighbours)) return {};
  const MeasureOrder order{.worker_sites = exchange_.worker_sites,
                           .site_hosts = exchange_.site_hosts,
                           .floats = {},
                           .algorithms = {std::string(exchange::name(exchange::Algorithm::shm))},
                           .rounds = 1};
  core::Result<void> result;
  auto ordered = order_all(order, kEverySite, [&](SiteHandle& handle, const Measured& told) {
    if (told.error.empty()) return;
    const auto error = at(handle, {told.code, told.error});
    if (told.code != core::Errc::config && result) result = tl::unexpected(error);
    if (not_mapped_.empty()) not_mapped_ = error.message;
  });
  if (!result) return result;
  exchange_.mapped = not_mapped_.empty();
  return ordered;
}

/// exchange.algorithm = "nccl": the first worker's site makes a group, and those of all workers join it at the same time.
core::Result<void> Assembly::join_devices() {
  const auto& algorithm = exchange::info(exchange::algorithm_of(spec_.settings->exchange.algorithm));
  if (!algorithm.on_devices || !spec_.needs.group || exchange_.in_place()) return {};
  if (spec_.needs.subgroups)
    return core::fail(
        core::Errc::config,
        fmt::format("exchange.algorithm = \"{}\" sums over all workers, and the groups of {} are smaller: "
                    "use \"auto\"",
                    algorithm.name, spec_.settings->strategy));
  MeasureOrder order{.worker_sites = exchange_.worker_sites,
                     .site_hosts = exchange_.site_hosts,
                     .floats = {},
                     .algorithms = {std::string(algorithm.name)},
                     .rounds = 1};
  core::Result<void> result;
  const auto note_error = [&](const SiteHandle& handle, const Measured& told) {
    if (!told.error.empty() && result) result = tl::unexpected(at(handle, {told.code, told.error}));
  };
  const auto is_first = [&](const SiteHandle& handle) { return handle.number == exchange_.worker_sites.front(); };
  if (auto ordered = order_all(order, is_first,
                               [&](SiteHandle& handle, const Measured& told) {
                                 note_error(handle, told);
                                 order.group = told.group;
                               });
      !ordered)
    return ordered;
  if (!result) return result;
  if (auto ordered = order_all(order, kHasWorkers, note_error); !ordered) return ordered;
  return result;
}

/// Sums in mapped memory have the bits of asa, which needs none.
void Assembly::sum_without_mapping() {
  if (!exchange_.on_devices || (exchange_.mapped && exchange_.on_one_host())) return;
  for (auto& reduction : exchange_.reductions)
    if (exchange::info(reduction.algorithm).in_mapped_memory) reduction.algorithm = exchange::Algorithm::asa;
}

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
  const bool mapped =
      exchange_.on_devices ? exchange_.mapped && exchange_.on_one_host() : experiment::may_sum_in_arenas(config);
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
  std::vector<exchange::Timing> timings;
  for (const auto length : order.floats)
    for (const auto algorithm : algorithms) timings.push_back({length, algorithm, 0});
  core::Result<void> result;
  // The slowest member's time counts: the others wait for it.
  auto ordered = order_all(order, kHasWorkers, [&](SiteHandle& handle, const Measured& told) {
    const bool can_be = std::ranges::all_of(told.seconds, [](double s) { return s >= 0 && s < 1e6; });
    if (!can_be && result) result = tl::unexpected(at(handle, {core::Errc::corrupt, "it measured invalid times"}));
    if (!told.error.empty() && result) result = tl::unexpected(at(handle, {told.code, told.error}));
    for (std::size_t k = 0; k < std::min(timings.size(), told.seconds.size()); ++k)
      timings[k].seconds = std::max(timings[k].seconds, told.seconds[k]);
  });
  if (!result) return tl::unexpected(std::move(result.error()));
  if (!ordered) return tl::unexpected(std::move(ordered.error()));
  return timings;
}

core::Result<void> Assembly::order_all(const MeasureOrder& order, const std::function<bool(const SiteHandle&)>& asked,
                                       const std::function<void(SiteHandle&, const Measured&)>& told) {
  using Asking = decltype(self_->request(SiteActor{}, kNoDeadline, order));
  using AskingHere = decltype(self_->request(ExchangerActor{}, kNoDeadline, order));
  std::vector<std::pair<SiteHandle*, Asking>> there;
  std::vector<std::pair<SiteHandle*, AskingHere>> here;
  // A site detects silence itself (Site::measure), and a lost site's proxy answers with the reason. The deadline is for a site that does
  // neither. Here, silence ends the request (receive() below).
  for (auto& handle : sites_) {
    if (!asked(handle)) continue;
    if (handle.there)
      there.emplace_back(&handle, self_->request(handle.there, measure_deadline(order), order));
    else if (handle.here)
      here.emplace_back(&handle, self_->request(handle.here->exchanger(), kNoDeadline, order));
  }
  core::Result<void> result;
  const auto measured = [&](SiteHandle* handle) {
    return [&, handle](const Measured& answer) { told(*handle, answer); };
  };
  const auto failed = [&](SiteHandle* handle) {
    return [&, handle](const caf::error& error) {
      if (result) result = tl::unexpected(no_answer(*handle, "did not measure", error));
    };
  };
  for (auto& [handle, asking] : there) receive(asking, stop_, measured(handle), failed(handle));
  for (auto& [handle, asking] : here)
    receive(asking, Movement{handle->here->moves(), kMeasureSilence}, stop_, measured(handle), failed(handle));
  return result;
}

}  // namespace troupe::actors
