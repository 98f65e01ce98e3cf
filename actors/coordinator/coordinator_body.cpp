#include "actors/coordinator/coordinator_body.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/protocol/proxy.hpp"
#include "actors/protocol/supervision.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "core/text/plural.hpp"
#include "nn/hash.hpp"

namespace troupe::actors {

using coordination::Answer;
using coordination::Order;
using coordination::Task;
using coordination::TaskOutcome;
using strategies::WorkerId;

namespace {

constexpr core::Duration kMemberSilence = std::chrono::seconds(60);
constexpr core::Duration kReasonPatience = std::chrono::seconds(2);  // between the end of an endpoint and its reason

/// How every endpoint says that its peer was closed in order.
constexpr std::string_view kClosedEndpoint = "it closed its endpoint";

/// The reason in an endpoint's "peer tcp:… is lost: why", without the endpoint's name of the peer.
std::string without_peer(const std::string& why) {
  constexpr std::string_view kSign = " is lost: ";
  const auto sign = why.find(kSign);
  return sign == std::string::npos ? why : why.substr(sign + kSign.size());
}

}  // namespace

CoordinatorBody::CoordinatorBody(Self self, CoordinatorSetup setup)
    : self_(self),
      setup_(std::move(setup)),
      machine_(*this, options_of(setup_), setup_.leases),
      checks_(setup_.checks),
      progress_(setup_.started.workers, setup_.started.servers, setup_.before),
      ledger_(setup_.started.workers,
              {.before = setup_.ledger_before,
               .computed = setup_.before.samples,
               .wall_s = setup_.before.wall_s,
               .workers = setup_.before.session.workers},
              setup_.leases->accounts()),
      silence_(setup_.started.workers),
      epoch_(setup_.leases->epoch()) {
  const auto& started = setup_.started;
  result_.summary =
      experiment::summary_of(*setup_.settings, *setup_.graph, started.workers, started.servers, started.directory);
  const auto& test = setup_.before.test;
  result_.summary.test_loss = test.loss;
  result_.summary.test_accuracy = test.accuracy;
  result_.summary.test_top5 = test.top5;
  const auto& validation = setup_.before.validation;
  result_.summary.validation = {
      .has = has_validation(), .loss = validation.loss, .accuracy = validation.accuracy, .top5 = validation.top5};
}

/// A proxy ends with its member, which may be one that hangs in a process that lives.
CoordinatorBody::~CoordinatorBody() {
  for (const auto& proxy : proxies_) caf::anon_send_exit(proxy, caf::exit_reason::user_shutdown);
}

void CoordinatorBody::begin(const ActorDirectory& actors) {
  actors_ = actors;
  began_ = setup_.clock->now();
  auto arena =
      core::Buffer::allocate(*setup_.memory, setup_.layout->arena_floats(), "the coordinator's copy of the model");
  if (!arena) return fail(arena.error().code, arena.error().message);
  arena_ = std::make_shared<core::Buffer>(std::move(*arena));
  coordination::Coordinator::InitialMembers initial_members{actors.worker_sites, actors.server_sites, {}};
  for (std::uint32_t w = 0; w < actors_.workers.size(); ++w) {
    running_programs_.insert(w);
    if (actors_.workers[w])
      self_->monitor(actors_.workers[w]);
    else
      initial_members.absent.push_back(w);
  }
  for (const auto& server : actors_.servers) self_->monitor(server);
  for (const auto& loader : actors_.loaders)
    if (loader) self_->monitor(loader);
  self_->monitor(actors_.recorder);
  self_->monitor(actors_.evaluator);
  if (setup_.rejoin_manager) self_->monitor(setup_.rejoin_manager);
  setup_.started.lr_factor = setup_.leases->lr_factor();
  self_->send(actors_.recorder, setup_.started);
  tell_beginning();
  if (keeps_journal()) journal_.add(encode(PlanRecord{setup_.plan_hash}));
  timer_.send(std::chrono::seconds(1), Tick{});
  machine_.begin(std::move(initial_members));
}

// ---- events

void CoordinatorBody::progressed(const WorkerProgress& progress) {
  if (!machine_.counts(progress.worker)) return;
  auto whole = progress;
  if (const auto before = predecessors_.find(progress.worker); before != predecessors_.end())
    experiment::add(whole, before->second);
  self_->send(actors_.recorder, whole);
  progress_.add(whole);
  hear(progress);
  machine_.progressed(progress.worker, progress.steps + progress.passed, progress.done, progress.given_up);
}

void CoordinatorBody::site_lost(const SiteLost& news) {
  const auto why = without_peer(news.why);
  // A site closes its endpoint because of something: the end of its worker, which another connection tells, perhaps later.
  if (why == kClosedEndpoint && news.lost != 0) return closed_endpoints_.push_back({news, setup_.clock->now()});
  machine_.site_lost(news.site, news.lost, why);
}

void CoordinatorBody::give_up_waiting_for_reasons() {
  const auto late = setup_.clock->now() - kReasonPatience;
  std::vector<ClosedEndpoint> due;
  std::erase_if(closed_endpoints_, [&](const ClosedEndpoint& closed) {
    if (closed.at > late) return false;
    due.push_back(closed);
    return true;
  });
  for (const auto& [news, at] : due) machine_.site_lost(news.site, news.lost, without_peer(news.why));
}

void CoordinatorBody::tick() {
  if (machine_.ended()) return;
  timer_.send(std::chrono::seconds(1), Tick{});
  flush_journal();
  tell_moves();
  give_up_waiting_for_reasons();
  silences_.check(setup_.clock->now());
  machine_.ticked();
  if (machine_.ended()) return;
  look_for_silence();
  if (machine_.ended()) return;
  tell_ledger();
}

void CoordinatorBody::transfer_seen(const TransferNews& news) {
  silences_.moved(news.sites);
  moved_sites_.insert(news.sites.begin(), news.sites.end());
  moved_at_ = setup_.clock->now();
}

/// A wait for a member also waits for what that member waits for: a transfer between two sites may hold up all members.
void CoordinatorBody::tell_moves() {
  if (moved_sites_.empty()) return;
  const TransferNews news{{moved_sites_.begin(), moved_sites_.end()}};
  moved_sites_.clear();
  for (const auto w : member_list()) self_->send(actors_.workers[w], news);
  if (setup_.rejoin_manager) self_->send(setup_.rejoin_manager, news);
}

void CoordinatorBody::down(const caf::down_msg& message) {
  const auto why = reason_of(self_->system(), message.reason);
  for (std::uint32_t w = 0; w < actors_.workers.size(); ++w) {
    const auto is = [&](const auto& member) { return member && member.address() == message.source; };
    // A site ends its loader because of its worker, whose end tells the reason and may be heard later.
    const bool follows = is(actors_.loaders[w]) && !message.reason && site_of(w) != 0;
    if (follows && !machine_.members().has(w)) return;  // it was lost before
    if (follows) return closed_endpoints_.push_back({{0, site_of(w), why}, setup_.clock->now()});
    if (is(actors_.workers[w]) || is(actors_.loaders[w])) return machine_.lost(w, why);
  }
  for (std::uint32_t s = 0; s < actors_.servers.size(); ++s)
    if (actors_.servers[s].address() == message.source)
      return fail(core::Errc::peer_lost, fmt::format("server {}, and its part of the centre, is gone: {}", s, why));
  if (actors_.recorder.address() == message.source) return fail(core::Errc::internal, "the recorder is gone: " + why);
  if (actors_.evaluator.address() == message.source) return fail(core::Errc::internal, "the evaluator is gone: " + why);
  if (setup_.rejoin_manager && setup_.rejoin_manager.address() == message.source && !machine_.ended())
    note(Note::Level::warning, "lost workers are no longer replaced: " + why);
  // Else it was a member lost earlier, which has a successor by now.
}

void CoordinatorBody::missed(std::uint32_t worker, const caf::error& error, const Next& next) {
  const bool silent = error == caf::sec::request_timeout;
  if (auto failure = program_failure_of(error))
    machine_.member_failed(site_of(worker), {core::Errc::program, std::move(*failure)});
  else
    machine_.lost(worker, silent ? std::string("it does not answer, and nothing moves to it or from it")
                                 : "no answer: " + reason_of(self_->system(), error));
  if (!machine_.ended()) next();
}

bool CoordinatorBody::accepts(const LeaseRequest& request) {
  return accepted(checks_.check(sender_of(self_), request, machine_.wants(request.worker)));
}

bool CoordinatorBody::accepts(const WorkerProgress& progress) {
  return accepted(checks_.check(sender_of(self_), progress, setup_.clock->now()));
}

bool CoordinatorBody::accepts_from_here() {
  return accepted(sender_of(self_).here ? Refusal{} : "a message that only the coordinator's process may send");
}

bool CoordinatorBody::accepted(const Refusal& refusal) {
  if (!refusal) return true;
  std::vector<std::string> names;
  const auto workers = checks_.workers_of(sender_of(self_));
  names.reserve(workers.size());
  for (const auto w : workers) names.push_back(machine_.name_of(w));
  const auto who = names.empty() ? "a process that has no part in the run" : fmt::format("{}", fmt::join(names, ", "));
  auto line = refusals_.add(who, *refusal);
  if (line && actors_.recorder) note(Note::Level::warning, std::move(*line));
  if (!refusals_.enough(who) || actors_.workers.empty()) return false;
  for (const auto w : workers) machine_.lost(w, "too many of its messages were refused");
  return false;
}

// ---- what the state machine asks for

void CoordinatorBody::grant(WorkerId worker, std::span<const data::Lease> leases, bool after_pause) {
  checks_.granted(worker, leases.size());
  silence_.granted(worker, leases.size(), session_s());
  own_states_.clear();
  for (const auto& lease : leases) enter_epoch(lease.epoch);
  if (keeps_journal())
    for (const auto& lease : leases) journal_.add(encode(LeaseGranted{worker, lease}));
  flush_journal();  // the journal has a step's lease before the step
  self_->send(actors_.loaders[worker], LeaseGrant{{leases.begin(), leases.end()}, after_pause});
}

void CoordinatorBody::perform(const Order& order) {
  flush_journal();
  const auto answer = [this, number = order.number](TaskOutcome outcome) {
    return [this, number, outcome] {
      machine_.answered({.number = number, .outcome = outcome, .newest = {}, .steps = updates_});
    };
  };
  const Continuations next{answer(TaskOutcome::done), answer(TaskOutcome::interrupted)};
  switch (order.task) {
    case Task::dismiss_workers: own_states_.clear(); return dismiss_workers(next.done);
    case Task::settle_workers:
      if (setup_.needs.in_step) own_states_.clear();  // a round may end with an update
      return ask_members<Settled>(SettleOrder{}, next.done, next.interrupted);
    case Task::await_peer_messages: return await_peer_messages(next);
    case Task::take_model: model_worker_ = order.worker; return take_model(next);
    case Task::evaluate: return evaluate(order.number);
    case Task::await_evaluation: return await_evaluation(next.done);
    case Task::take_state: return take_states(order.worker, next.done);
    case Task::prepare_newcomer: return prepare_newcomer(order);
    case Task::begin_newcomer: return begin_newcomer(order.worker, next);
    case Task::take_members:
      segment_ = begin_checkpoint();
      put(*segment_, machine_.members().membership());
      return take_member(0, next);
    case Task::collect_records: return collect_records(next.done);
    case Task::begin_segment: return begin_segment(next.done);
    case Task::find_newest: return find_newest(order.number);
  }
}

void CoordinatorBody::save() {
  save_requested_ = !machine_.ended();
  machine_.checkpoint_requested();
}

void CoordinatorBody::warn(const std::string& text) { note(Note::Level::warning, text); }

void CoordinatorBody::note(Note::Level level, std::string text) {
  self_->send(actors_.recorder, Note{level, std::move(text)});
}

void CoordinatorBody::ended(const std::optional<core::Error>& error) {
  send_report();
  tell_fatal_losses(error);
  result_.failed = error.has_value();
  if (error) result_.error = *error;
  auto& summary = result_.summary;
  if (error && error->code == core::Errc::interrupted) summary.stopped_by = "interrupt";
  summary.epochs = setup_.leases->epoch() + (setup_.leases->epoch_done() ? 1 : 0);
  progress_.fill(summary, machine_.trained_s());
  tell_ledger();
  summary.ledger = told_ledger_;
  summary.wall_s = told_ledger_.wall_s;
  if (model_) summary.center_hash = nn::center_hash(*model_);
  experiment::take(summary, machine_.watch().state());
  if (listener_) caf::anon_send(listener_, result_);
}

void CoordinatorBody::await_end() {
  listener_ = caf::actor_cast<caf::actor>(self_->current_sender());
  if (machine_.ended()) caf::anon_send(listener_, result_);
}

// ---- requests to members

core::Duration CoordinatorBody::member_silence() const {
  const std::chrono::duration<double> patience(setup_.settings->exchange.deadline_s);
  const auto longest = std::chrono::duration_cast<core::Duration>(patience);
  // In an emergency a step may be in progress.
  return machine_.in_emergency() ? longest : std::min(kMemberSilence, longest);
}

CoordinatorBody::Source CoordinatorBody::site_of(std::uint32_t worker) const {
  return actors_.worker_sites.empty() ? 0 : actors_.worker_sites[worker];
}

CoordinatorBody::Source CoordinatorBody::site_of_server(std::uint32_t server) const {
  return actors_.server_sites.empty() ? 0 : actors_.server_sites[server];
}

void CoordinatorBody::flush_journal() {
  if (!journal_.empty()) self_->send(actors_.recorder, journal_.take());
}

template <class Answered, class WorkerOrder>
void CoordinatorBody::ask_members(const WorkerOrder& order, const Next& next, const Next& absent) {
  const auto left = std::make_shared<std::size_t>(machine_.members().count());  // 0: further answers are ignored
  for (const auto worker : member_list()) {
    ask<Answered>(
        site_of(worker), member_silence(), actors_.workers[worker],
        [this, left, next](const Answered&) {
          if (*left > 0 && --*left == 0 && !machine_.ended()) next();
        },
        [this, left, worker, absent](const caf::error& error) {
          if (std::exchange(*left, 0) > 0) missed(worker, error, absent);
        },
        order);
  }
}

void CoordinatorBody::dismiss_workers(const Next& next) {
  const auto left = std::make_shared<std::size_t>(machine_.members().count());
  const Next finished = [this, left, next] {
    if (--*left == 0 && !machine_.ended()) next();
  };
  for (const auto worker : member_list()) {
    ask<Dismissed>(
        site_of(worker), member_silence(), actors_.workers[worker], [finished](const Dismissed&) { finished(); },
        [this, worker, finished](const caf::error& error) { missed(worker, error, finished); }, Dismissal{});
  }
}

/// A remote member's snapshot and its journal record use different connections; the snapshot may arrive first. The member's answer here
/// arrives after the record: a segment closed then has the record.
void CoordinatorBody::collect_records(const Next& next) {
  const auto left = std::make_shared<std::size_t>(1);
  const auto answered = [this, left, next] {
    if (--*left == 0 && !machine_.ended()) next();
  };
  const auto collect = [&](Source site, const auto& member) {
    if (!keeps_journal() || site == 0) return;
    ++*left;
    // Any result counts: a lost member is noticed elsewhere, and a dismissed member has no state to report.
    ask<MemberState>(
        site, member_silence(), member, [answered](const MemberState&) { answered(); },
        [answered](const caf::error&) { answered(); }, StateOrder{});
  };
  for (const auto worker : member_list()) collect(site_of(worker), actors_.workers[worker]);
  for (std::uint32_t server = 0; server < actors_.servers.size(); ++server)
    collect(site_of_server(server), actors_.servers[server]);
  answered();
}

void CoordinatorBody::find_newest(std::uint64_t number) {
  const auto answer = std::make_shared<Answer>(Answer{.number = number, .newest = {}});
  const auto left = std::make_shared<std::uint32_t>(machine_.members().count());
  const Next next = [this, left, answer] {
    if (--*left == 0) machine_.answered(*answer);
  };
  for (const auto worker : member_list()) {
    ask<Updates>(
        site_of(worker), member_silence(), actors_.workers[worker],
        [this, worker, answer, next](const Updates& updates) {
          const bool more = !answer->newest || updates.steps > answer->steps;
          if (is_member(worker) && checks_.may_have(worker, updates.steps) && more) {
            answer->newest = worker;
            answer->steps = updates.steps;
          }
          next();
        },
        [this, worker, next](const caf::error& error) { missed(worker, error, next); }, UpdatesOrder{});
  }
}

}  // namespace troupe::actors
