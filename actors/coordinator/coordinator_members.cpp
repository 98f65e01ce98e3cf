// Lost members: whether the run goes on without them. Newcomers: whose place they take, and when.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/protocol/proxy.hpp"
#include "actors/requests/deadlines.hpp"

namespace troupe::actors {

namespace {

/// The reason in an endpoint's "peer tcp:… is lost: why", without the endpoint's name of the peer.
std::string without_peer(const std::string& why) {
  constexpr std::string_view kSign = " is lost: ";
  const auto sign = why.find(kSign);
  return sign == std::string::npos ? why : why.substr(sign + kSign.size());
}

/// ", but for 40 samples of steps under way, which are passed over"; empty when all of it is granted again.
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
  const auto& sites = actors_.worker_sites;
  bool any = false;  // worker
  for (std::uint32_t w = 0; w < sites.size(); ++w) {
    if (sites[w] != site) continue;
    if (alive_[w]) return true;
    any = true;
  }
  return !any;
}

void CoordinatorBody::site_lost(const SiteLost& news) {
  if (actors_.workers.empty()) return early_losses_.push_back(news);
  if (ended_ || !is_alive(news.site) || !is_alive(news.lost)) return;
  if (news.site == 0) return lose_site(news.lost, without_peer(news.why));
  if (news.lost == 0) return lose_site(news.site, without_peer(news.why));
  const bool centre = std::ranges::find(actors_.server_sites, news.lost) != actors_.server_sites.end();
  // Else two workers have lost each other, and only peer messages between them are lost.
  if (centre || setup_.needs.group)
    return lose_site(news.lost, fmt::format("site {} does not reach it: {}", news.site, without_peer(news.why)));
  const auto& sites = actors_.worker_sites;
  for (std::uint32_t one = 0; one < sites.size(); ++one)
    for (std::uint32_t other = 0; other < sites.size(); ++other)
      if (sites[one] == news.site && sites[other] == news.lost) peer_messages_.parted(one, other);
}

void CoordinatorBody::lose_site(std::uint32_t site, const std::string& why) {
  for (std::uint32_t w = 0; w < actors_.worker_sites.size(); ++w)
    if (actors_.worker_sites[w] == site) lose(w, why);
}

/// A strategy whose workers share no collective goes on with the remaining workers; the lost worker's leases return.
void CoordinatorBody::lose(std::uint32_t worker, const std::string& why) {
  if (ended_ || !is_member(worker)) return;
  alive_[worker] = false;
  peer_messages_.lost(worker);
  std::erase(arrivals_, worker);
  // It may still live, out of reach of the others: its messages are ignored from now on.
  self_->send(actors_.workers[worker], Halt{});
  self_->send(actors_.loaders[worker], Halt{});
  if (in_emergency())
    return members() > 0 || writes_emergency_checkpoint_ ? void() : end_emergency("no worker is left");
  const auto lost = fmt::format("{} is lost: {}", name_of(worker), why);
  const auto& sites = actors_.server_sites;
  const bool with_centre =
      !actors_.worker_sites.empty() && std::ranges::find(sites, actors_.worker_sites[worker]) != sites.end();
  if (with_centre) {
    return fail(core::Errc::peer_lost, fmt::format("{}; and with it its part of the centre: {}", lost, how_to_go_on()));
  }
  const bool job = !setup_.launcher.empty();
  if (job || setup_.needs.group) {
    const auto end =
        job ? lost + "; that ends an MPI job"
            : fmt::format("{}; the others of {} cannot take a step without it", lost, setup_.settings->strategy);
    if (setup_.needs.whole_steps && members() > 0) return begin_emergency_checkpoint(end);
    return fail(core::Errc::peer_lost, fmt::format("{}: {}", end, how_to_go_on()));
  }
  if (members() == 0)
    return fail(core::Errc::peer_lost, fmt::format("{}; no worker is left: {}", lost, how_to_go_on()));
  wants_[worker] = 0;
  const experiment::LostRecord record{worker, !setup_.needs.in_step, setup_.book->lost(worker)};
  self_->send(actors_.recorder,
              Note{Note::Level::warning, fmt::format("{}; its batches return{}, {} of {} workers go on", lost,
                                                     passed_over(record), members(), setup_.started.workers)});
  // Before any record of the worker that takes its place.
  if (keeps_journal()) journal_.add(encode(record));
  flush_journal();
  ++epoch_;
  tell_membership();
  seek(worker);
  if (!training_) return;
  for (std::uint32_t w = 0; w < wants_.size(); ++w) serve(w, false);  // the leases that have returned
  if (setup_.book->quiet()) when_quiet();
}

std::string CoordinatorBody::how_to_go_on() const {
  const auto& launcher = setup_.launcher;
  return fmt::format("go on with `{}troupe train --resume {}`", launcher.empty() ? "" : launcher + " … ",
                     setup_.started.directory);
}

void CoordinatorBody::tell_membership() {
  const MembershipNews news{epoch_, member_list()};
  if (actors_.exchanger) self_->send(actors_.exchanger, news);
  for (const auto& server : actors_.servers) self_->send(server, news);
  for (const auto w : news.workers) self_->send(actors_.workers[w], news);
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

// ---- messages of members in other processes

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
  if (line && actors_.recorder) self_->send(actors_.recorder, Note{Note::Level::warning, std::move(*line)});
  if (!refusals_.enough(who) || actors_.workers.empty()) return false;
  for (const auto w : workers) lose(w, "it says what no member says");
  return false;
}

// ---- newcomers

/// Nodes that the run did not wait for: treated as if their workers had been lost before the first step.
void CoordinatorBody::miss_absent() {
  for (std::uint32_t w = 0; w < actors_.workers.size(); ++w) {
    if (actors_.workers[w]) continue;
    alive_[w] = false;
    peer_messages_.lost(w);
    if (keeps_journal()) journal_.add(encode(experiment::AbsentRecord{w}));
    setup_.book->lost(w);
    self_->send(actors_.recorder, Note{Note::Level::info, fmt::format("{} is not there yet", name_of(w))});
    seek(w);
  }
  if (members() == alive_.size()) return;
  ++epoch_;
  tell_membership();
}

/// The replacement is a new member, with the centre's parameters and a fresh rule.
void CoordinatorBody::seek(std::uint32_t worker) {
  if (setup_.rejoin_manager) self_->send(setup_.rejoin_manager, Vacancy{worker});
}

void CoordinatorBody::arrived(std::uint32_t worker) {
  if (ended_ || is_member(worker) || std::ranges::find(arrivals_, worker) != arrivals_.end()) return;
  arrivals_.push_back(worker);
  if (setup_.needs.in_step) return;  // it joins at an epoch's end
  setup_.book->pause();
  if (training_ && setup_.book->quiet()) when_quiet();
}

/// In step a newcomer begins with a round of the epoch that begins. It loads a checkpoint, so the latest one must have been written.
bool CoordinatorBody::may_admit() const {
  return !stop_ && !arrivals_.empty() && !save_failed_ && (!setup_.needs.in_step || fresh_epoch_);
}

/// Training is paused, and no exchange is pending: the model is saved, and the newcomers begin with it.
void CoordinatorBody::admit(const Next& next) {
  setup_.book->pause();  // an epoch that has just begun is not paused yet
  const Next come = [this, next] {
    if (ended_) return;
    if (!may_admit()) return next();
    const auto worker = arrivals_.back();
    arrivals_.pop_back();
    prepare_newcomer(worker, [this, next] { may_admit() ? admit(next) : next(); });
  };
  const Next look = [this, come] { take_model([this, come] { save_durably(false, come); }); };
  if (!setup_.needs.in_step) return look();
  // An answer that a round still owes must not be taken for an answer to the newcomer's requests.
  settle_workers(look, [this, next] { admit(next); });
}

void CoordinatorBody::prepare_newcomer(std::uint32_t worker, const Next& next) {
  const auto first = steps_.of_newcomer(setup_.needs.in_step, member_list());
  const auto open = std::make_shared<bool>(true);
  // The rejoin manager has reported the reason.
  const auto refused = [this, worker, next, open] {
    if (!std::exchange(*open, false)) return;
    seek(worker);
    if (!ended_) next();
  };
  // A run that ends does not wait for a newcomer. The rejoin manager ends the newcomer's site.
  abandon_ = [next, open] {
    if (std::exchange(*open, false)) next();
  };
  ask<Admission, SiteMembers, OpenedSite>(
      site_of(worker), kAdmitSilence, setup_.rejoin_manager,
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
  actors_.workers[worker] = self_->system().spawn(worker_proxy, worker, members.workers.front(), actors_.exchanger);
  actors_.loaders[worker] = members.loaders.front();
  rules_.moved(actors_.worker_sites[worker], members.loaders.front().node());
  self_->monitor(actors_.workers[worker]);
  self_->monitor(actors_.loaders[worker]);
  predecessors_[worker] = progress_.of(worker);
  steps_.joined(worker, first_step);
  alive_[worker] = true;
  ++epoch_;
  setup_.book->joined(worker);
  // The servers know the newcomer before it may send them requests.
  tell_membership();
  ask<SiteBegun>(
      site_of(worker), member_silence(), site,
      [this, worker, next](const SiteBegun&) {
        self_->send(actors_.recorder,
                    Note{Note::Level::info, fmt::format("{} is here, as a new member: {} of {} workers",
                                                        name_of(worker), this->members(), setup_.started.workers)});
        // A new segment: a replay cannot know what the newcomer begins with.
        if (keeps_journal()) rotate_ = true;
        if (!ended_) next();
      },
      [this, worker, next](const caf::error& error) { missed(worker, error, next); },
      SiteDirectory{actors_.coordinator, actors_.recorder, epoch_, actors_.worker_sites, actors_.server_sites,
                    member_list(), actors_.site_hosts, actors_.exchange});
}

}  // namespace troupe::actors
