#include "actors/coordinator/coordinator_body.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/protocol/proxy.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "nn/hash.hpp"
#include "nn/optimizer.hpp"
#include "transport/exchange/reduce.hpp"

namespace troupe::actors {

namespace {

constexpr core::Duration kMemberSilence = std::chrono::seconds(60);

std::vector<strategies::Step> first_steps(const CoordinatorSetup& setup) {
  auto steps = setup.first_steps;
  steps.resize(setup.started.workers, 0);
  return steps;
}

}  // namespace

CoordinatorBody::CoordinatorBody(Self self, CoordinatorSetup setup)
    : self_(self),
      setup_(std::move(setup)),
      rules_(setup_.rules),
      wants_(setup_.started.workers, 0),
      alive_(setup_.started.workers, true),
      progress_(setup_.started.workers, setup_.before),
      steps_(first_steps(setup_)),
      train_s_(setup_.before.train_s) {
  const auto& started = setup_.started;
  result_.summary =
      experiment::summary_of(*setup_.settings, *setup_.graph, started.workers, started.servers, started.directory);
  const auto& test = setup_.before.test;
  result_.summary.test_loss = test.loss;
  result_.summary.test_accuracy = test.accuracy;
  result_.summary.test_top5 = test.top5;
}

void CoordinatorBody::begin(const ActorDirectory& actors) {
  actors_ = actors;
  began_ = setup_.clock->now();
  auto arena =
      core::Buffer::allocate(*setup_.memory, setup_.layout->arena_floats(), "the coordinator's copy of the model");
  if (!arena) return fail(arena.error().code, arena.error().message);
  arena_ = std::make_shared<core::Buffer>(std::move(*arena));
  for (const auto& worker : actors_.workers)
    if (worker) self_->monitor(worker);
  for (const auto& server : actors_.servers) self_->monitor(server);
  for (const auto& loader : actors_.loaders)
    if (loader) self_->monitor(loader);
  self_->monitor(actors_.recorder);
  self_->monitor(actors_.evaluator);
  if (setup_.rejoin_manager) self_->monitor(setup_.rejoin_manager);
  self_->send(actors_.recorder, setup_.started);
  if (keeps_journal()) journal_.add(encode(PlanRecord{setup_.plan_hash}));
  self_->delayed_send(self_, std::chrono::seconds(1), Tick{});
  saved_at_epoch_ = setup_.book->epoch() + (setup_.book->epoch_done() ? 1 : 0);
  saved_at_s_ = train_s_;
  saved_at_step_ = granted_ = progress_.steps();
  miss_absent();
  for (const auto& loss : std::exchange(early_losses_, {})) site_lost(loss);
  if (ended_ || in_emergency()) return;
  if (setup_.resumed) {
    if (setup_.book->epoch_done()) return when_quiet();  // interrupted in an epoch's last step, or to train longer
    return train();
  }
  // A checkpoint of the start: a failure in the first epoch can go back to it.
  first_save_ = busy_ = true;
  setup_.book->pause();
  take_model([this] { save([this] { go_on(); }); });
}

// ---- leases

void CoordinatorBody::train() {
  if (gives_way()) return;
  first_save_ = busy_ = fresh_epoch_ = false;
  training_ = true;
  training_since_ = setup_.clock->now();
  if (owed_ && !writing_) return when_quiet();  // the previous one reached the disk after the chain's check
  setup_.book->resume();
  for (std::uint32_t worker = 0; worker < wants_.size(); ++worker) serve(worker, true);
}

void CoordinatorBody::asked(const LeaseRequest& request) {
  if (ended_) return;
  if (!is_member(request.worker)) return;
  wants_.at(request.worker) += request.count;
  if (training_) serve(request.worker, false);
  if (training_ && setup_.book->quiet()) when_quiet();  // a checkpoint is due, and all granted leases are done
}

void CoordinatorBody::serve(std::uint32_t worker, bool after_pause) {
  LeaseGrant grant{.leases = {}, .after_pause = after_pause};
  const auto period = static_cast<std::uint64_t>(setup_.settings->checkpoint.steps);
  while (wants_[worker] > 0) {
    if (period > 0 && !writing_ && granted_ >= saved_at_step_ + period)
      setup_.book->pause();  // workers report too rarely to count steps by their reports
    const auto lease = setup_.book->grant(worker);
    if (!lease) break;
    --wants_[worker];
    ++granted_;
    rules_.granted(worker, 1);
    grant.leases.push_back(*lease);
    if (keeps_journal()) journal_.add(encode(LeaseGranted{worker, *lease}));
  }
  if (grant.leases.empty()) return;
  flush_journal();  // the journal has a step's lease before the step
  self_->send(actors_.loaders[worker], std::move(grant));
}

void CoordinatorBody::progressed(const WorkerProgress& progress) {
  if (ended_ || !is_member(progress.worker) || in_emergency()) return;  // the emergency checkpoint has its own account
  steps_.ended(progress.worker, progress.steps + progress.passed);
  auto whole = progress;
  if (const auto before = predecessors_.find(progress.worker); before != predecessors_.end())
    experiment::add(whole, before->second);
  self_->send(actors_.recorder, whole);
  progress_.add(whole);
  for (const auto lease : progress.done) setup_.book->done(progress.worker, lease);
  check_limits();
  if (training_ && setup_.book->quiet()) when_quiet();
}

/// Every reason to pause training pauses the book; it becomes quiet when the leases in progress are done.
void CoordinatorBody::check_limits() {
  if (!training_) return;
  const double max_s = setup_.settings->run.max_seconds;
  const double now_s = train_s_ + core::seconds(setup_.clock->now() - training_since_);
  if (max_s > 0 && now_s >= max_s) stop_ = true;
  const auto& period = setup_.settings->checkpoint;
  const bool time_due = !writing_ && period.seconds > 0 && now_s >= saved_at_s_ + period.seconds;
  if (stop_ || time_due) setup_.book->pause();
}

void CoordinatorBody::interrupt() {
  if (ended_) return;
  result_.failed = true;
  result_.error = {core::Errc::interrupted, "interrupted"};
  stop_ = true;
  setup_.book->pause();
  if (const auto abandon = std::exchange(abandon_, nullptr)) abandon();
  if (training_ && setup_.book->quiet()) when_quiet();
}

void CoordinatorBody::journal_full() {
  if (ended_) return;
  rotate_ = true;
  setup_.book->pause();
  if (training_ && setup_.book->quiet()) when_quiet();
}

void CoordinatorBody::tick() {
  if (ended_) return;
  self_->delayed_send(self_, std::chrono::seconds(1), Tick{});
  flush_journal();
  tell_moves();
  silences_.check(setup_.clock->now());
  if (ended_) return;
  check_limits();
  if (training_ && setup_.book->quiet()) when_quiet();
}

void CoordinatorBody::moved(const TransferNews& news) {
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

core::Duration CoordinatorBody::member_silence() const {
  const std::chrono::duration<double> patience(setup_.settings->exchange.deadline_s);
  const auto longest = std::chrono::duration_cast<core::Duration>(patience);
  return in_emergency() ? longest : std::min(kMemberSilence, longest);  // in an emergency a step may be in progress
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

// ---- while training is paused

void CoordinatorBody::when_quiet() {
  if (busy_ || ended_) return;
  if (training_) train_s_ += core::seconds(setup_.clock->now() - training_since_);
  training_ = false;
  busy_ = true;
  flush_journal();
  const Next look = [this] {
    take_model([this] {
      const Next decide = [this] {
        const auto target = setup_.settings->run.target_accuracy;
        if (setup_.book->epoch_done() && target > 0 && result_.summary.test_accuracy >= target) stop_ = true;
        if (stop_ && !dismissed_) return go_on();
        owed_ = owed_ || period_over();
        if (checkpoint_due()) return save([this] { go_on(); });
        go_on();
      };
      // An epoch that an earlier session reported is not reported again.
      if (setup_.book->epoch_done()) return evaluate(!progress_.epoch_closed(), decide);
      decide();
    });
  };
  if (last()) return dismiss(look);
  if (rotate_ && !setup_.book->epoch_done() && !checkpoint_due()) return go_on();
  look();
}

/// No step follows: a stop was requested, or the last epoch is done.
bool CoordinatorBody::last() const {
  return stop_ || (setup_.book->epoch_done() && setup_.book->epoch() + 1 >= setup_.started.epochs);
}

/// Workers push what they still hold before the last look at the model.
void CoordinatorBody::dismiss(const Next& next) {
  dismissed_ = true;
  shares_left_ = members();
  const Next finished = [this, next] {
    if (--shares_left_ == 0 && !ended_) next();
  };
  for (std::uint32_t worker = 0; worker < actors_.workers.size(); ++worker) {
    if (!is_member(worker)) continue;
    ask<Dismissed>(
        site_of(worker), member_silence(), actors_.workers[worker], [finished](const Dismissed&) { finished(); },
        [this, worker, finished](const caf::error& error) { missed(worker, error, finished); }, Dismissal{});
  }
}

/// One at a time: a checkpoint that becomes due while another is written is taken afterwards.
bool CoordinatorBody::checkpoint_due() const { return last() || (!writing_ && (owed_ || period_over())); }

bool CoordinatorBody::period_over() const {
  const auto& period = setup_.settings->checkpoint;
  if (setup_.book->epoch_done() && period.epochs > 0) {
    const std::int64_t done = setup_.book->epoch() + std::int64_t{1};
    if (done >= saved_at_epoch_ + period.epochs) return true;
  }
  if (period.steps > 0 && granted_ >= saved_at_step_ + static_cast<std::uint64_t>(period.steps)) return true;
  return period.seconds > 0 && train_s_ >= saved_at_s_ + period.seconds;
}

void CoordinatorBody::go_on() {
  if (ended_) return;
  const bool complete =
      setup_.book->epoch_done() && !first_save_ && setup_.book->epoch() + 1 >= setup_.started.epochs && !save_failed_;
  if (!complete && gives_way()) return;  // a complete run has its last checkpoint on disk
  const Next last_word = [this, complete] {
    if (complete || !gives_way()) end();
  };
  if (setup_.book->epoch_done() && !first_save_) {
    if (setup_.book->epoch() + 1 >= setup_.started.epochs) {
      // Interrupted after the last step: the run is complete.
      if (result_.error.code == core::Errc::interrupted) result_.failed = false;
      return collect_records(last_word);
    }
    if (!stop_) {
      setup_.book->next_epoch();
      fresh_epoch_ = true;
    }
  }
  if (!stop_ && may_admit()) return admit([this] { go_on(); });
  if (!stop_ && rotate_) return rotate();
  if (!stop_) return train();
  if (dismissed_ || first_save_) return collect_records(last_word);
  // The reason to stop came while the model was taken: workers push what they hold, and the model is taken again.
  dismiss([this] {
    take_model([this] {
      const Next keep = [this] { save([this] { go_on(); }); };
      if (setup_.book->epoch_done()) return evaluate(false, keep);
      keep();
    });
  });
}

// ---- the end

void CoordinatorBody::run_error(const RunError& run_error) {
  // A lost site reports that it misses the others. In an emergency the others report that they miss it. Both are ignored.
  if (!is_alive(run_error.site) || in_emergency()) return;
  fail(run_error.code, run_error.text);
}

void CoordinatorBody::down(const caf::down_msg& message) {
  const auto why = reason_of(self_->system(), message.reason);
  for (std::uint32_t w = 0; w < actors_.workers.size(); ++w) {
    const auto is = [&](const auto& member) { return member && member.address() == message.source; };
    if (is(actors_.workers[w]) || is(actors_.loaders[w])) return lose(w, why);
  }
  for (std::uint32_t s = 0; s < actors_.servers.size(); ++s)
    if (actors_.servers[s].address() == message.source)
      return fail(core::Errc::peer_lost, fmt::format("server {}, and its part of the centre, is gone: {}", s, why));
  if (actors_.recorder.address() == message.source) return fail(core::Errc::internal, "the recorder is gone: " + why);
  if (actors_.evaluator.address() == message.source) return fail(core::Errc::internal, "the evaluator is gone: " + why);
  if (setup_.rejoin_manager && setup_.rejoin_manager.address() == message.source && !ended_)
    self_->send(actors_.recorder, Note{Note::Level::warning, "lost workers are no longer replaced: " + why});
  // Else it was a member lost earlier, which has a successor by now.
}

void CoordinatorBody::fail(core::Errc code, const std::string& text) {
  if (ended_) return;
  result_.failed = true;
  result_.error = {code, text};
  if (in_emergency() && !text.starts_with(emergency_))
    result_.error = {core::Errc::peer_lost, fmt::format("{}; {}; {}", emergency_, text, how_to_go_on())};
  end();
}

void CoordinatorBody::end() {
  if (ended_) return;
  ended_ = true;
  if (training_) train_s_ += core::seconds(setup_.clock->now() - training_since_);
  training_ = false;
  auto& summary = result_.summary;
  summary.epochs = setup_.book->epoch() + (setup_.book->epoch_done() ? 1 : 0);
  progress_.fill(summary, train_s_);
  summary.wall_s = setup_.before.wall_s + core::seconds(setup_.clock->now() - began_);
  if (model_) summary.center_hash = nn::center_hash(*model_);
  if (listener_) caf::anon_send(listener_, result_);
}

void CoordinatorBody::await_end() {
  listener_ = caf::actor_cast<caf::actor>(self_->current_sender());
  if (ended_) caf::anon_send(listener_, result_);
}

}  // namespace troupe::actors
