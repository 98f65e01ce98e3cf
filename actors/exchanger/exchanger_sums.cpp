// Reductions and broadcasts over several sites: group, algorithm and memory.
#include <algorithm>

#include <fmt/format.h>

#include "actors/exchanger/exchanger_body.hpp"

namespace troupe::actors {

exchange::Group ExchangerBody::group_of(const CollectiveOrder& order) const {
  exchange::Group group;
  for (std::size_t i = 0; i < order.group.size(); ++i) {
    const auto site = actors_.worker_sites.at(order.group[i]);
    if (order.group[i] == order.worker) group.rank = i;
    add(group, site, actors_.site_hosts);
  }
  return group;
}

void ExchangerBody::add(exchange::Group& group, std::uint32_t site, const std::vector<std::uint32_t>& hosts) const {
  group.peers.push_back(peers_.at(site).value_or(transport::Peer{}));
  if (!hosts.empty()) group.hosts.push_back(hosts.at(site));
}

caf::result<Measured> ExchangerBody::measure(const MeasureOrder& order) {
  const auto failed = [](const core::Error& error) { return Measured{.error = error.message, .code = error.code}; };
  if (ends()) return failed({core::Errc::peer_lost, "the run is over"});
  if (order.floats.empty() && exchange::info(exchange::algorithm_of(order.algorithms.at(0))).on_devices)
    return join(order);
  if (order.floats.empty()) {
    auto asked = self_->make_response_promise<Measured>();
    mapping_asked_ = asked;
    answer_mapping();
    return asked;
  }
  for (const auto& algorithm : order.algorithms) {
    const auto& info = exchange::info(exchange::algorithm_of(algorithm));
    const bool can = (!info.in_mapped_memory || arenas_) &&
                     (!info.in_unknown_order() || exchange::has_library(*operations_, order.worker_sites.size()));
    if (measuring_ || !can) return failed({core::Errc::config, "site: it cannot measure " + algorithm + " now"});
  }
  exchange::Group group;
  for (const auto site : order.worker_sites) {
    if (site == setup_.site) group.rank = group.size();
    add(group, site, order.site_hosts);
  }
  auto promise = self_->make_response_promise<Measured>();
  auto measuring =
      Measuring::create({*operations_, *setup_.kernels, *setup_.memory, *setup_.clock, arenas_.get(), &scratch_},
                        std::move(group), order, [promise, failed](core::Result<Measured> measured) mutable {
                          promise.deliver(measured ? *measured : failed(measured.error()));
                        });
  if (!measuring) return failed(measuring.error());
  measuring_ = std::move(*measuring);
  after_event();
  return promise;
}

caf::result<Measured> ExchangerBody::join(const MeasureOrder& order) {
  if (!device_sums_ || joining_)
    return Measured{.error = "site: it has no sums on devices, or joins a group already", .code = core::Errc::config};
  if (order.group.empty()) {
    auto made = device_sums_->make_group();
    return made ? Measured{.group = std::move(*made)}
                : Measured{.error = made.error().message, .code = made.error().code};
  }
  const auto rank = std::ranges::find(order.worker_sites, setup_.site) - order.worker_sites.begin();
  auto promise = self_->make_response_promise<Measured>();
  const auto operation = device_sums_->join(order.group, static_cast<std::size_t>(rank), order.worker_sites.size());
  joining_.emplace(operation, promise);
  return promise;
}

void ExchangerBody::joined(const transport::Completion& completion) {
  auto promise = std::move(joining_->second);
  joining_.reset();
  const bool done = completion.outcome == transport::Outcome::done;
  promise.deliver(done ? Measured{} : Measured{.error = completion.error.message, .code = completion.error.code});
}

void ExchangerBody::offer_arenas(std::uint32_t site, transport::Peer peer) {
  ++offers_;
  calls_->offer(peer, [this, site](const core::Result<void>& taken) {
    --offers_;
    const bool is_lost = !taken && taken.error().code == core::Errc::peer_lost;  // lost() reports it
    if (!taken && !is_lost && not_mapped_.empty())
      not_mapped_ = fmt::format("site {}: {}", site, taken.error().message);
  });
}

void ExchangerBody::answer_mapping() {
  if (!mapping_asked_ || offers_ > 0) return;
  mapping_asked_->deliver(not_mapped_.empty() ? Measured{}
                                              : Measured{.error = not_mapped_, .code = core::Errc::config});
  mapping_asked_.reset();
}

void ExchangerBody::collective(const CollectiveOrder& order, const BorrowedView& slice) {
  if (ends()) return;
  auto group = group_of(order);
  const ArenaPosition position = order.offset < 0 ? ArenaPosition{} : static_cast<std::size_t>(order.offset);
  const auto dense = packed(slice, position);
  exchange::CollectiveTask task{.algorithm = setup_.exchange.reduction(dense.data.size(), order.rounding),
                                .half = setup_.exchange.half(),
                                .scale = order.mean ? 1 / static_cast<float>(group.size()) : 1,
                                .vector = dense.data,
                                .arenas = arenas_.get(),
                                .scratch = &scratch_,
                                .tag = {.run = kRun,
                                        .exchange = static_cast<std::uint32_t>(order.exchange),
                                        .shard = static_cast<std::uint16_t>(order.step % transport::kMaxShard)}};
  if (order.root >= 0)
    task.root = static_cast<std::size_t>(std::ranges::find(order.group, static_cast<strategies::WorkerId>(order.root)) -
                                         order.group.begin());
  const auto which = next_running_++;
  auto& running = running_[which];
  running.order = order;
  running.slice = slice;
  running.dense = dense;
  running.began = setup_.clock->now();
  running.collective =
      exchange::make_collective(*operations_, *setup_.kernels, std::move(group), std::move(task),
                                [this, which](const core::Result<void>& result) { ended(which, result); });
  running.collective->start();
  after_event();
}

void ExchangerBody::note_wait(Running& running) {
  const auto last = running.collective->last_heard();
  if (last && !running.waited) running.waited = {running.order.group[*last], setup_.clock->now() - running.began};
}

void ExchangerBody::ended(std::uint64_t which, const core::Result<void>& result) {
  over_.push_back(which);
  auto& running = running_.at(which);
  // lost() reports a lost peer, once for all its operations.
  if (!result && result.error().code == core::Errc::peer_lost) return;
  if (!result) return run_error(result.error());
  const auto& order = running.order;
  if (order.offset >= 0) unpack(running.dense, static_cast<std::size_t>(order.offset), running.slice);
  CollectiveEnded end{.step = order.step, .exchange = order.exchange, .last = order.worker};
  if (running.collective) note_wait(running);  // else it ended while it was made, without a wait
  if (running.waited)
    std::tie(end.last, end.waited_ns) = std::pair(running.waited->first, running.waited->second.count());
  self_->send(actors_.workers.at(order.worker), end);
}

}  // namespace troupe::actors
