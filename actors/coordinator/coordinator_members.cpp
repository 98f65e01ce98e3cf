// Members that are lost: who goes on without them, and who cannot. Members that come: in whose place, and when.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/protocol/proxy.hpp"

namespace troupe::actors {

namespace {

/// An endpoint's "peer tcp:… is lost: why", without what only an endpoint calls so.
std::string without_peer(const std::string& why) {
  constexpr std::string_view kSign = " is lost: ";
  const auto sign = why.find(kSign);
  return sign == std::string::npos ? why : why.substr(sign + kSign.size());
}

/// ", but for 40 samples of steps under way, which are passed over"; nothing when all of it is granted again.
std::string passed_over(const experiment::LostRecord& lost) {
  std::int64_t samples = 0;
  for (const auto& lease : lost.leases) samples += lease.samples;
  if (lost.again || samples == 0) return {};
  return fmt::format(", but for {} sample{} of steps under way, which are passed over", samples,
                     samples == 1 ? "" : "s");
}

}  // namespace

std::uint32_t CoordinatorBody::members() const { return static_cast<std::uint32_t>(std::ranges::count(alive_, true)); }

bool CoordinatorBody::is_alive(std::uint32_t site) const {
  const auto& sites = company_.worker_sites;
  bool any = false;  // worker
  for (std::uint32_t w = 0; w < sites.size(); ++w) {
    if (sites[w] != site) continue;
    if (alive_[w]) return true;
    any = true;
  }
  return !any;
}

void CoordinatorBody::site_lost(const SiteLost& news) {
  if (company_.workers.empty()) return early_losses_.push_back(news);
  if (ended_ || !is_alive(news.site) || !is_alive(news.lost)) return;
  if (news.site == 0) return lose_site(news.lost, without_peer(news.why));
  if (news.lost == 0) return lose_site(news.site, without_peer(news.why));
  const bool centre = std::ranges::find(company_.server_sites, news.lost) != company_.server_sites.end();
  // Else two workers have lost each other, and only what one wrote to the other is lost.
  if (centre || setup_.needs.group)
    return lose_site(news.lost, fmt::format("site {} does not reach it: {}", news.site, without_peer(news.why)));
  const auto& sites = company_.worker_sites;
  for (std::uint32_t one = 0; one < sites.size(); ++one)
    for (std::uint32_t other = 0; other < sites.size(); ++other)
      if (sites[one] == news.site && sites[other] == news.lost) letters_.parted(one, other);
}

void CoordinatorBody::lose_site(std::uint32_t site, const std::string& why) {
  for (std::uint32_t w = 0; w < company_.worker_sites.size(); ++w)
    if (company_.worker_sites[w] == site) lose(w, why);
}

/// A strategy whose workers share no collective goes on with those who are left; what the lost one had on lease returns.
void CoordinatorBody::lose(std::uint32_t worker, const std::string& why) {
  if (ended_ || !is_member(worker)) return;
  alive_[worker] = false;
  letters_.lost(worker);
  std::erase(arrivals_, worker);
  // It may be there still, and out of reach of the others: what it says from now on is nobody's.
  self_->send(company_.workers[worker], Halt{});
  self_->send(company_.loaders[worker], Halt{});
  if (rescues()) return members() > 0 || writes_rescue_ ? void() : end_rescue("nobody is left");
  const auto lost = fmt::format("{} is lost: {}", name_of(worker), why);
  const auto& sites = company_.server_sites;
  const bool with_centre =
      !company_.worker_sites.empty() && std::ranges::find(sites, company_.worker_sites[worker]) != sites.end();
  if (with_centre) {
    return fail(core::Errc::peer_lost, fmt::format("{}; and with it its part of the centre: {}", lost, how_to_go_on()));
  }
  const bool job = !setup_.launcher.empty();
  if (job || setup_.needs.group) {
    const auto end =
        job ? lost + "; that ends an MPI job"
            : fmt::format("{}; the others of {} cannot take a step without it", lost, setup_.settings->strategy);
    if (setup_.needs.whole_steps && members() > 0) return rescue(end);
    return fail(core::Errc::peer_lost, fmt::format("{}: {}", end, how_to_go_on()));
  }
  if (members() == 0) return fail(core::Errc::peer_lost, fmt::format("{}; nobody is left: {}", lost, how_to_go_on()));
  wants_[worker] = 0;
  const experiment::LostRecord record{worker, !setup_.needs.in_step, setup_.book->lost(worker)};
  self_->send(company_.recorder,
              Note{Note::Level::warning, fmt::format("{}; its batches return{}, {} of {} workers go on", lost,
                                                     passed_over(record), members(), setup_.started.workers)});
  // Before anything of the one that takes its place.
  if (keeps_journal()) journal_.add(encode(record));
  flush_journal();
  ++epoch_;
  tell_membership();
  seek(worker);
  if (!training_) return;
  for (std::uint32_t w = 0; w < wants_.size(); ++w) serve(w, false);  // what has come back
  if (setup_.book->quiet()) when_quiet();
}

std::string CoordinatorBody::how_to_go_on() const {
  const auto& launcher = setup_.launcher;
  return fmt::format("go on with `{}troupe train --resume {}`", launcher.empty() ? "" : launcher + " … ",
                     setup_.started.directory);
}

void CoordinatorBody::tell_membership() {
  const MembershipNews news{epoch_, member_list()};
  if (company_.exchanger) self_->send(company_.exchanger, news);
  for (const auto& server : company_.servers) self_->send(server, news);
  for (const auto w : news.workers) self_->send(company_.workers[w], news);
}

std::string CoordinatorBody::name_of(std::uint32_t worker) const {
  return worker < setup_.names.size() ? setup_.names[worker] : fmt::format("worker {}", worker);
}

std::vector<std::uint32_t> CoordinatorBody::member_list() const {
  std::vector<std::uint32_t> list;
  for (std::uint32_t w = 0; w < alive_.size(); ++w)
    if (alive_[w]) list.push_back(w);
  return list;
}

void CoordinatorBody::missed(std::uint32_t worker, const caf::error& error, const Next& next) {
  const bool silent = error == caf::sec::request_timeout;
  lose(worker, silent ? std::string("it does not answer, and nothing moves to it or from it")
                      : "no answer: " + reason_of(self_->system(), error));
  if (!ended_) next();
}

// ---- what members in other processes say

bool CoordinatorBody::hears(const LeaseRequest& request) {
  const auto wanted = request.worker < wants_.size() ? wants_[request.worker] : 0;
  return heard(rules_.check(speaker_of(self_), request, wanted));
}

bool CoordinatorBody::hears_from_here() {
  return heard(speaker_of(self_).here ? Refusal{} : "a message that is not for it to send");
}

bool CoordinatorBody::heard(const Refusal& refusal) {
  if (!refusal) return true;
  std::vector<std::string> names;
  const auto workers = rules_.workers_of(speaker_of(self_));
  for (const auto w : workers) names.push_back(name_of(w));
  const auto who = names.empty() ? "a process that has no part in the run" : fmt::format("{}", fmt::join(names, ", "));
  auto line = refusals_.add(who, *refusal);
  if (line && company_.recorder) self_->send(company_.recorder, Note{Note::Level::warning, std::move(*line)});
  if (!refusals_.enough(who) || company_.workers.empty()) return false;
  for (const auto w : workers) lose(w, "it says what no member says");
  return false;
}

// ---- newcomers

/// Nodes that the run did not wait for: as if they had been there, and been lost before the first step.
void CoordinatorBody::miss_absent() {
  for (std::uint32_t w = 0; w < company_.workers.size(); ++w) {
    if (company_.workers[w]) continue;
    alive_[w] = false;
    letters_.lost(w);
    if (keeps_journal()) journal_.add(encode(experiment::AbsentRecord{w}));
    setup_.book->lost(w);
    self_->send(company_.recorder, Note{Note::Level::info, fmt::format("{} is not there yet", name_of(w))});
    seek(w);
  }
  if (members() == alive_.size()) return;
  ++epoch_;
  tell_membership();
}

/// Whoever comes in its place is a new member, with the centre's parameters and a fresh half.
void CoordinatorBody::seek(std::uint32_t worker) {
  if (setup_.steward) self_->send(setup_.steward, Vacancy{worker});
}

void CoordinatorBody::arrived(std::uint32_t worker) {
  if (ended_ || is_member(worker) || std::ranges::find(arrivals_, worker) != arrivals_.end()) return;
  arrivals_.push_back(worker);
  if (setup_.needs.in_step) return;  // an epoch's end will do
  setup_.book->pause();
  if (training_ && setup_.book->quiet()) when_quiet();
}

/// In step a newcomer has its first share in a round of the epoch that begins.
/// It begins with a checkpoint, so that there must be one to be had.
bool CoordinatorBody::may_admit() const {
  return !stop_ && !arrivals_.empty() && !save_failed_ && (!setup_.needs.in_step || fresh_epoch_);
}

/// Training stands still, and nothing is on its way: the model is saved, and the newcomers begin with that.
void CoordinatorBody::admit(const Next& next) {
  setup_.book->pause();  // an epoch that has just begun does not stand still by itself
  const Next come = [this, next] {
    if (ended_) return;
    if (!may_admit()) return next();
    const auto worker = arrivals_.back();
    arrivals_.pop_back();
    prepare_newcomer(worker, [this, next] { may_admit() ? admit(next) : next(); });
  };
  const Next look = [this, come] { take_model([this, come] { save_durably(false, come); }); };
  if (!setup_.needs.in_step) return look();
  // What a round still owes somebody must not be taken for an answer to the newcomer's.
  settle_workers(look, [this, next] { admit(next); });
}

void CoordinatorBody::prepare_newcomer(std::uint32_t worker, const Next& next) {
  const auto first = steps_.of_newcomer(setup_.needs.in_step, member_list());
  const auto open = std::make_shared<bool>(true);
  // The steward has said why.
  const auto refused = [this, worker, next, open] {
    if (!std::exchange(*open, false)) return;
    seek(worker);
    if (!ended_) next();
  };
  // Who is to end does not wait for a newcomer. What becomes of it is the steward's to end.
  abandon_ = [next, open] {
    if (std::exchange(*open, false)) next();
  };
  ask<Admission, SiteMembers, OpenedSite>(
      site_of(worker), kAdmitSilence, setup_.steward,
      [this, worker, first, next, refused, open](const Admission& admission, const SiteMembers& members,
                                                 const OpenedSite& there) {
        if (ended_ || !*open) return;
        const bool there_is =
            members.workers.size() == 1 && members.workers[0] && members.loaders.size() == 1 && members.loaders[0];
        if (!admission.error.empty() || !there_is) return refused();
        *open = false;
        take_in(worker, first, members, there.site, next);
      },
      [refused](const caf::error&) { refused(); }, AdmissionOrder{worker, newest_checkpoint_, first, shard_versions_});
}

void CoordinatorBody::take_in(std::uint32_t worker, strategies::Step first_step, const SiteMembers& members,
                              const SiteActor& site, const Next& next) {
  company_.workers[worker] =
      self_->system().spawn(stand_in_worker, worker, members.workers.front(), company_.exchanger);
  company_.loaders[worker] = members.loaders.front();
  rules_.moved(company_.worker_sites[worker], members.loaders.front().node());
  self_->monitor(company_.workers[worker]);
  self_->monitor(company_.loaders[worker]);
  predecessors_[worker] = progress_.of(worker);
  steps_.joined(worker, first_step);
  alive_[worker] = true;
  ++epoch_;
  setup_.book->joined(worker);
  // The servers know it before it may speak to them.
  tell_membership();
  ask<SiteBegun>(
      site_of(worker), member_silence(), site,
      [this, worker, next](const SiteBegun&) {
        self_->send(company_.recorder,
                    Note{Note::Level::info, fmt::format("{} is here, as a new member: {} of {} workers",
                                                        name_of(worker), this->members(), setup_.started.workers)});
        // A replay begins anew with it, as it knows nothing of what a newcomer begins with.
        if (keeps_journal()) rotate_ = true;
        if (!ended_) next();
      },
      [this, worker, next](const caf::error& error) { missed(worker, error, next); },
      SiteCompany{company_.coordinator, company_.recorder, epoch_, company_.worker_sites, company_.server_sites,
                  member_list(), company_.site_hosts, company_.exchange});
}

}  // namespace troupe::actors
