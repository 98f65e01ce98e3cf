// Newcomers: workers at a new site, which take the places of lost or absent ones.
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/protocol/proxy.hpp"
#include "actors/requests/deadlines.hpp"

namespace troupe::actors {

using coordination::TaskOutcome;

void CoordinatorBody::find_replacement(strategies::WorkerId worker) {
  if (setup_.rejoin_manager) self_->send(setup_.rejoin_manager, Vacancy{worker});
}

/// The rejoin manager reports the reason of a refusal. If the run no longer waits for this newcomer, it ends the newcomer's site.
void CoordinatorBody::prepare_newcomer(const coordination::Order& order) {
  const auto answer = [this, number = order.number](TaskOutcome outcome) {
    machine_.answered({.number = number, .outcome = outcome, .newest = {}});
  };
  ask<Admission, SiteMembers, OpenedSite>(
      site_of(order.worker), kAdmitSilence, setup_.rejoin_manager,
      [this, order, answer](const Admission& admission, const SiteMembers& members, const OpenedSite& there) {
        if (!machine_.awaits(order.number)) return;
        const bool there_is =
            members.workers.size() == 1 && members.workers[0] && members.loaders.size() == 1 && members.loaders[0];
        if (!admission.error.empty() || !there_is) return answer(TaskOutcome::refused);
        take_in(order.worker, members, there.site);
        answer(TaskOutcome::done);
      },
      [answer](const caf::error&) { answer(TaskOutcome::refused); },
      AdmissionOrder{order.worker, newest_checkpoint_, order.first_step, shard_versions_});
}

void CoordinatorBody::take_in(std::uint32_t worker, const SiteMembers& members, const SiteActor& site) {
  actors_.workers[worker] = self_->system().spawn(worker_proxy, worker, members.workers.front(), actors_.exchanger);
  proxies_.push_back(actors_.workers[worker]);
  actors_.loaders[worker] = members.loaders.front();
  checks_.site_replaced(actors_.worker_sites[worker], members.loaders.front().node());
  self_->monitor(actors_.workers[worker]);
  self_->monitor(actors_.loaders[worker]);
  predecessors_[worker] = progress_.of(worker);
  newcomers_[worker] = site;
}

void CoordinatorBody::begin_newcomer(std::uint32_t worker, const Continuations& next) {
  const auto site = newcomers_.extract(worker).mapped();
  ask<SiteBegun>(
      site_of(worker), member_silence(), site,
      [this, worker, next](const SiteBegun&) {
        ledger_.joined(worker, session_s());
        tell_member(worker, MemberReport::Event::joined, {});
        note(Note::Level::info, fmt::format("{} joined as a new member: {} of {} workers{}", machine_.name_of(worker),
                                            machine_.members().count(), setup_.started.workers,
                                            setup_.graph->is_program() ? "; its optimizer begins anew" : ""));
        next.done();
      },
      [this, worker, next](const caf::error& error) { missed(worker, error, next.interrupted); },
      SiteDirectory{actors_.coordinator, actors_.recorder, machine_.members().epoch(), actors_.worker_sites,
                    actors_.server_sites, member_list(), actors_.site_hosts, actors_.exchange});
}

}  // namespace troupe::actors
