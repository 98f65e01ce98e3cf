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

void CoordinatorBody::begin(const Company& company) {
  company_ = company;
  began_ = setup_.clock->now();
  auto arena =
      core::Buffer::allocate(*setup_.memory, setup_.layout->arena_floats(), "the coordinator's copy of the model");
  if (!arena) return fail(arena.error().code, arena.error().message);
  arena_ = std::make_shared<core::Buffer>(std::move(*arena));
  for (const auto& worker : company_.workers)
    if (worker) self_->monitor(worker);
  for (const auto& server : company_.servers) self_->monitor(server);
  for (const auto& loader : company_.loaders)
    if (loader) self_->monitor(loader);
  self_->monitor(company_.recorder);
  self_->monitor(company_.evaluator);
  if (setup_.steward) self_->monitor(setup_.steward);
  self_->send(company_.recorder, setup_.started);
  if (keeps_journal()) journal_.add(encode(PlanRecord{setup_.plan_hash}));
  self_->delayed_send(self_, std::chrono::seconds(1), Tick{});
  saved_at_epoch_ = setup_.book->epoch() + (setup_.book->epoch_done() ? 1 : 0);
  saved_at_s_ = train_s_;
  saved_at_step_ = granted_ = progress_.steps();
  miss_absent();
  for (const auto& loss : std::exchange(early_losses_, {})) site_lost(loss);
  if (ended_ || rescues()) return;
  if (setup_.resumed) {
    if (setup_.book->epoch_done()) return when_quiet();  // interrupted in the last step of an epoch, or to train longer
    return train();
  }
  // A checkpoint of the very beginning: whatever happens in the first epoch, there is one to go back to.
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
  if (owed_ && !writing_) return when_quiet();  // the one before was on disk when the chain had passed that by
  setup_.book->resume();
  for (std::uint32_t worker = 0; worker < wants_.size(); ++worker) serve(worker, true);
}

void CoordinatorBody::asked(const LeaseRequest& request) {
  if (ended_) return;
  if (!is_member(request.worker)) return;
  wants_.at(request.worker) += request.count;
  if (training_) serve(request.worker, false);
  if (training_ && setup_.book->quiet()) when_quiet();  // a checkpoint is due, and all that was granted is done
}

void CoordinatorBody::serve(std::uint32_t worker, bool after_pause) {
  LeaseGrant grant{.leases = {}, .after_pause = after_pause};
  const auto period = static_cast<std::uint64_t>(setup_.settings->checkpoint.steps);
  while (wants_[worker] > 0) {
    if (period > 0 && !writing_ && granted_ >= saved_at_step_ + period)
      setup_.book->pause();  // workers report too rarely to count by
    const auto lease = setup_.book->grant(worker);
    if (!lease) break;
    --wants_[worker];
    ++granted_;
    rules_.granted(worker, 1);
    grant.leases.push_back(*lease);
    if (keeps_journal()) journal_.add(encode(LeaseGranted{worker, *lease}));
  }
  if (grant.leases.empty()) return;
  flush_journal();  // a step's lease stands in the journal before the step
  self_->send(company_.loaders[worker], std::move(grant));
}

void CoordinatorBody::progressed(const WorkerProgress& progress) {
  if (ended_ || !is_member(progress.worker) || rescues()) return;  // a rescue makes its own account
  steps_.ended(progress.worker, progress.steps + progress.passed);
  auto whole = progress;
  if (const auto before = predecessors_.find(progress.worker); before != predecessors_.end())
    experiment::add(whole, before->second);
  self_->send(company_.recorder, whole);
  progress_.add(whole);
  for (const auto lease : progress.done) setup_.book->done(progress.worker, lease);
  check_limits();
  if (training_ && setup_.book->quiet()) when_quiet();
}

/// Whatever wants training to stand still asks the book to pause; it becomes quiet when the leases under way are done.
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

/// Whoever waits for a member waits for what that one waits for: a transfer between two sites may hold all of them up.
void CoordinatorBody::tell_moves() {
  if (moved_sites_.empty()) return;
  const TransferNews news{{moved_sites_.begin(), moved_sites_.end()}};
  moved_sites_.clear();
  for (const auto w : member_list()) self_->send(company_.workers[w], news);
  if (setup_.steward) self_->send(setup_.steward, news);
}

core::Duration CoordinatorBody::member_silence() const {
  const std::chrono::duration<double> patience(setup_.settings->exchange.deadline_s);
  const auto longest = std::chrono::duration_cast<core::Duration>(patience);
  return rescues() ? longest : std::min(kMemberSilence, longest);  // in a rescue a step may be under way
}

CoordinatorBody::Source CoordinatorBody::site_of(std::uint32_t worker) const {
  return company_.worker_sites.empty() ? 0 : company_.worker_sites[worker];
}

CoordinatorBody::Source CoordinatorBody::site_of_server(std::uint32_t server) const {
  return company_.server_sites.empty() ? 0 : company_.server_sites[server];
}

void CoordinatorBody::flush_journal() {
  if (!journal_.empty()) self_->send(company_.recorder, journal_.take());
}

// ---- while training stands still

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
      // An epoch that an earlier session has reported is not reported again.
      if (setup_.book->epoch_done()) return evaluate(!progress_.epoch_closed(), decide);
      decide();
    });
  };
  if (last()) return dismiss(look);
  if (rotate_ && !setup_.book->epoch_done() && !checkpoint_due()) return go_on();
  look();
}

/// No step will follow: a stop was asked for, or the last epoch is done.
bool CoordinatorBody::last() const {
  return stop_ || (setup_.book->epoch_done() && setup_.book->epoch() + 1 >= setup_.started.epochs);
}

/// Workers hand in what they still hold before the model is looked at for the last time.
void CoordinatorBody::dismiss(const Next& next) {
  dismissed_ = true;
  shares_left_ = members();
  const Next finished = [this, next] {
    if (--shares_left_ == 0 && !ended_) next();
  };
  for (std::uint32_t worker = 0; worker < company_.workers.size(); ++worker) {
    if (!is_member(worker)) continue;
    ask<Dismissed>(
        site_of(worker), member_silence(), company_.workers[worker], [finished](const Dismissed&) { finished(); },
        [this, worker, finished](const caf::error& error) { missed(worker, error, finished); }, Dismissal{});
  }
}

/// One at a time: what falls due while one is written is taken when that has ended.
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
  if (!complete && gives_way()) return;  // of a run that is, the last checkpoint has been written
  const Next last_word = [this, complete] {
    if (complete || !gives_way()) end();
  };
  if (setup_.book->epoch_done() && !first_save_) {
    if (setup_.book->epoch() + 1 >= setup_.started.epochs) {
      // Interrupted when nothing was left to interrupt: the run is complete.
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
  // The reason to stop came while the model was looked at: workers hand in what they hold, and it is looked at again.
  dismiss([this] {
    take_model([this] {
      const Next keep = [this] { save([this] { go_on(); }); };
      if (setup_.book->epoch_done()) return evaluate(false, keep);
      keep();
    });
  });
}

// ---- the end

void CoordinatorBody::trouble(const Trouble& trouble) {
  // Whoever is lost misses the others as they miss it; and the others miss it.
  if (!is_alive(trouble.site) || rescues()) return;
  fail(trouble.code, trouble.text);
}

void CoordinatorBody::down(const caf::down_msg& message) {
  const auto why = reason_of(self_->system(), message.reason);
  for (std::uint32_t w = 0; w < company_.workers.size(); ++w) {
    const auto is = [&](const auto& member) { return member && member.address() == message.source; };
    if (is(company_.workers[w]) || is(company_.loaders[w])) return lose(w, why);
  }
  for (std::uint32_t s = 0; s < company_.servers.size(); ++s)
    if (company_.servers[s].address() == message.source)
      return fail(core::Errc::peer_lost, fmt::format("server {}, and its part of the centre, is gone: {}", s, why));
  if (company_.recorder.address() == message.source) return fail(core::Errc::internal, "the recorder is gone: " + why);
  if (company_.evaluator.address() == message.source)
    return fail(core::Errc::internal, "the evaluator is gone: " + why);
  if (setup_.steward && setup_.steward.address() == message.source && !ended_)
    self_->send(company_.recorder,
                Note{Note::Level::warning, "nobody looks for workers in place of lost ones any more: " + why});
  // Else it is who was lost before, and has a successor by now.
}

void CoordinatorBody::fail(core::Errc code, const std::string& text) {
  if (ended_) return;
  result_.failed = true;
  result_.error = {code, text};
  if (rescues() && !text.starts_with(rescue_))
    result_.error = {core::Errc::peer_lost, fmt::format("{}; {}; {}", rescue_, text, how_to_go_on())};
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
