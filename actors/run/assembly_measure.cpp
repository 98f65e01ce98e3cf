// Asks whether processes map each other's device memory, and chooses the reduction algorithms of a run by measuring, if exchange.algorithm is
// "auto".
#include <algorithm>

#include <fmt/format.h>

#include "actors/exchanger/measuring.hpp"
#include "actors/requests/answers.hpp"
#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"
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
  auto ordered = order_all(order, kEverySite, [&](SiteHandle& handle, const Measured& told) -> core::Result<void> {
    if (told.error.empty()) return {};
    const auto error = at(handle, {told.code, told.error});
    if (told.code != core::Errc::config) return tl::unexpected(error);
    if (not_mapped_.empty()) not_mapped_ = error.message;
    return {};
  });
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
  const auto error_of = [&](const SiteHandle& handle, const Measured& told) -> core::Result<void> {
    if (told.error.empty()) return {};
    return tl::unexpected(at(handle, {told.code, told.error}));
  };
  const auto is_first = [&](const SiteHandle& handle) { return handle.number == exchange_.worker_sites.front(); };
  if (auto ordered = order_all(order, is_first,
                               [&](SiteHandle& handle, const Measured& told) {
                                 order.group = told.group;
                                 return error_of(handle, told);
                               });
      !ordered)
    return ordered;
  return order_all(order, kHasWorkers, error_of);
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
  // The slowest member's time counts: the others wait for it.
  auto ordered = order_all(order, kHasWorkers, [&](SiteHandle& handle, const Measured& told) -> core::Result<void> {
    if (!told.error.empty()) return tl::unexpected(at(handle, {told.code, told.error}));
    const bool can_be = std::ranges::all_of(told.seconds, [](double s) { return s >= 0 && s < 1e6; });
    if (!can_be) return tl::unexpected(at(handle, {core::Errc::corrupt, "it measured invalid times"}));
    for (std::size_t k = 0; k < std::min(timings.size(), told.seconds.size()); ++k)
      timings[k].seconds = std::max(timings[k].seconds, told.seconds[k]);
    return {};
  });
  if (!ordered) return tl::unexpected(std::move(ordered.error()));
  return timings;
}

core::Result<void> Assembly::order_all(const MeasureOrder& order, const std::function<bool(const SiteHandle&)>& asked,
                                       const std::function<core::Result<void>(SiteHandle&, const Measured&)>& told) {
  Answers<Measured> answers(*context_.system);
  std::vector<SiteHandle*> handles;
  // A site detects silence itself (SiteBody::measure), and a lost site's proxy answers with the reason. The deadline is for a site that does
  // neither. Here, silence ends the request.
  for (auto& handle : sites_) {
    if (!asked(handle) || (!handle.there && !handle.here)) continue;
    if (handle.there)
      answers.ask(handle.there, measure_deadline(order), order);
    else
      answers.ask(handle.here->exchanger(), kNoDeadline, order, Movement{handle.here->moves(), kMeasureSilence});
    handles.push_back(&handle);
  }
  while (auto next = answers.next(stop_)) {
    auto& handle = *handles[next->request];
    if (next->error) return tl::unexpected(no_answer(handle, "did not measure", *next->error));
    if (auto accepted = told(handle, next->answer); !accepted) return accepted;
  }
  if (stop_.stop_requested()) return tl::unexpected(core::interrupted_early());
  return {};
}

}  // namespace troupe::actors
