// How the coordinator takes the model while training is paused: snapshots of shards and workers, evaluation, checkpoints.
#include <algorithm>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"
#include "actors/requests/deadlines.hpp"
#include "nn/layout.hpp"
#include "nn/optimizer.hpp"
#include "transport/exchange/reduce.hpp"

namespace troupe::actors {

using experiment::WeightedMean;
using strategies::ModelHome;
using strategies::Slot;
using strategies::WorkerState;

namespace {

constexpr core::Duration kEvaluatorSilence = kCompileDeadline;  // it compiles its replica at the first request
constexpr core::Duration kRecorderSilence = kDiskSilence + core::Duration(kMargin);  // the recorder times out first

}  // namespace

void CoordinatorBody::take_model(const Next& next) {
  const auto checked = [this, next] {
    if (gives_way()) return;
    model_ = std::make_shared<std::vector<float>>(canonical());
    if (core::host_kernels().all_finite(*model_)) return take_statistics(next);
    fail(core::Errc::diverged,
         fmt::format("the model's parameters are not finite any more after {} steps over all workers: training "
                     "diverged; lower train.lr",
                     progress_.steps()));
  };
  if (setup_.needs.model == ModelHome::center) return snapshot_shards(setup_.needs.model_slot, checked);
  if (setup_.needs.model == ModelHome::weighted)
    return await_peer_messages([this, checked] { take_weighted(0, std::make_shared<WeightedMean>(), checked); },
                               [this, next] { take_model(next); });
  snapshot_worker(model_worker(), strategies::kParams, whole_arena(), checked, checked);
}

/// Σ a_i x_i / Σ a_i, in rank order, over workers and their unread peer messages; at the end of a run none is unread.
void CoordinatorBody::take_weighted(std::uint32_t worker, const std::shared_ptr<WeightedMean>& mean, const Next& next) {
  if (worker == actors_.workers.size()) {
    mean->take(arena_->view());
    return next();
  }
  const Next following = [this, worker, mean, next] { take_weighted(worker + 1, mean, next); };
  const Next taken = [this, worker, mean, following] {
    mean->add(arena_->view(), weight_);
    take_unread(worker, 0, mean, following);
  };
  snapshot_worker(worker, strategies::kParams, whole_arena(), taken, following);
}

/// These snapshots are not journalled: a replay does not have unread peer messages.
void CoordinatorBody::take_unread(std::uint32_t worker, std::size_t peer_message,
                                  const std::shared_ptr<WeightedMean>& mean, const Next& next) {
  if (!setup_.needs.peers || !is_member(worker) || peer_message == peer_messages_.of(worker).unread.size())
    return next();
  snapshot_worker(
      worker, peer_messages_.of(worker).slots.at(peer_message), whole_arena(),
      [this, worker, peer_message, mean, next] {
        mean->add(arena_->view(), peer_messages_.of(worker).unread.at(peer_message).weight);
        take_unread(worker, peer_message + 1, mean, next);
      },
      next, false);
}

/// Running statistics for evaluation: the mean over the workers, in rank order.
void CoordinatorBody::take_statistics(const Next& next) {
  if (setup_.graph->statistics().empty()) return next();
  const auto layout = nn::statistics_layout(*setup_.graph);
  auto arenas = std::make_shared<std::vector<core::Buffer>>();
  for (std::size_t worker = 0; worker < actors_.workers.size(); ++worker) {
    auto arena = core::Buffer::allocate(*setup_.memory, layout.arena_floats());
    if (!arena) return fail(arena.error().code, arena.error().message);
    arenas->push_back(std::move(*arena));
  }
  const Next all_here = [this, layout, arenas, next] {
    std::vector<core::Span> views;
    for (std::uint32_t worker = 0; worker < arenas->size(); ++worker)
      if (is_member(worker)) views.push_back((*arenas)[worker].view());
    *statistics_ = experiment::mean_statistics(layout, views);
    next();
  };
  shares_left_ = actors_.workers.size();
  for (std::uint32_t worker = 0; worker < actors_.workers.size(); ++worker) {
    const Next here = [this, all_here] {
      if (--shares_left_ == 0) all_here();
    };
    snapshot_worker(worker, strategies::kStatistics, {(*arenas)[worker].view(), arenas}, here, here);
  }
}

std::vector<float> CoordinatorBody::canonical() const {
  std::vector<float> canonical(setup_.layout->canonical_floats());
  setup_.layout->to_canonical(arena_->view(), canonical);
  return canonical;
}

/// `report`: the evaluation ends an epoch.
void CoordinatorBody::evaluate(bool report, const Next& next) {
  if (gives_way()) return;
  const auto model = model_;
  ask<Evaluated>(
      kEvaluator, kEvaluatorSilence, actors_.evaluator,
      [this, report, next](const Evaluated& evaluated) {
        if (ended_) return;
        if (!evaluated.error.empty()) return fail(evaluated.code, evaluated.error);
        this->evaluated(evaluated, report);
        next();
      },
      [this](const caf::error& error) { fail(core::Errc::timeout, "evaluation: " + self_->system().render(error)); },
      EvaluateOrder{++snapshots_}, BorrowedView{core::Span{*model}, model},
      BorrowedView{core::Span{*statistics_}, statistics_});
}

void CoordinatorBody::evaluated(const Evaluated& evaluated, bool report) {
  const auto samples = static_cast<double>(std::max<std::int64_t>(evaluated.samples, 1));
  auto& summary = result_.summary;
  summary.test_loss = evaluated.loss;
  summary.test_accuracy = static_cast<double>(evaluated.top1) / samples;
  summary.test_top5 = evaluated.top5 < 0 ? -1 : static_cast<double>(evaluated.top5) / samples;
  if (!report) return;
  const auto means = progress_.close_epoch(train_s_);
  EpochReport epoch{.epoch = setup_.book->epoch() + 1,
                    .epochs = setup_.started.epochs,
                    .steps = progress_.steps(),
                    .train_loss = means.loss,
                    .train_accuracy = means.accuracy,
                    .test_loss = summary.test_loss,
                    .test_accuracy = summary.test_accuracy,
                    .test_top5 = summary.test_top5};
  epoch.images_per_s = means.images_per_s;
  epoch.lr = nn::learning_rate(setup_.settings->train, setup_.book->epoch_position(), setup_.started.epochs,
                               static_cast<int>(setup_.started.workers));
  epoch.train_s = train_s_;
  self_->send(actors_.recorder, epoch);
}

std::shared_ptr<Checkpoint> CoordinatorBody::book_keeping() const {
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->step = progress_.steps();
  checkpoint->graph = setup_.graph;
  checkpoint->strategy = setup_.settings->strategy;
  checkpoint->optimizer = setup_.settings->train.optimizer;
  checkpoint->server_optimizer = setup_.needs.server_state_of;
  checkpoint->statistics = *statistics_;
  checkpoint->leases = setup_.book->state();
  checkpoint->totals = progress_.totals(train_s_, setup_.before.wall_s + core::seconds(setup_.clock->now() - began_));
  checkpoint->totals.test = {result_.summary.test_loss, result_.summary.test_accuracy, result_.summary.test_top5};
  checkpoint->totals.center_version = center_version_;
  checkpoint->totals.worker_steps = steps_.all();
  return checkpoint;
}

/// Training goes on while it is written. Exception: a run's first and last checkpoint must be on disk before the run goes on.
void CoordinatorBody::save(const Next& next) {
  const bool needed = first_save_ || last();
  needed ? save_durably(needed, next) : take_checkpoint(needed, next);
}

/// `next` runs when the checkpoint is on disk, or has failed (save_failed_).
void CoordinatorBody::save_durably(bool needed, const Next& next) {
  when_written([this, needed, next] { take_checkpoint(needed, [this, next] { when_written(next); }); });
}

/// REQUIRES a model_, and no checkpoint being written: at most one copy of the state waits for the disk.
void CoordinatorBody::take_checkpoint(bool needed, const Next& next) {
  const auto checkpoint = book_keeping();
  checkpoint->vectors.emplace("", *model_);
  take_state(state_prefixes(), checkpoint, [this, checkpoint, needed, next] {
    if (gives_way()) return;
    write(checkpoint, needed);
    next();
  });
}

void CoordinatorBody::write(const std::shared_ptr<Checkpoint>& checkpoint, bool needed) {
  saved_at_s_ = train_s_;
  saved_at_step_ = granted_;
  saved_at_epoch_ = setup_.book->epoch_done() ? setup_.book->epoch() + 1 : setup_.book->epoch();
  writing_ = true;
  owed_ = false;
  ask<CheckpointWritten>(
      kDisk, kRecorderSilence, actors_.recorder,
      [this, needed](const CheckpointWritten& written) { saved(written, needed); },
      [this](const caf::error& error) { fail(core::Errc::timeout, "checkpoint: " + self_->system().render(error)); },
      CheckpointOrder{checkpoint->step}, CheckpointPayload{checkpoint});
}

void CoordinatorBody::when_written(const Next& next) { writing_ ? waiting_for_disk_.push_back(next) : next(); }

/// A checkpoint that cannot be written is a warning: the old one stays good and training goes on. If it is `needed`, it is an error.
void CoordinatorBody::saved(const CheckpointWritten& written, bool needed) {
  if (ended_) return;
  writing_ = false;
  save_failed_ = !written.error.empty();
  if (!save_failed_) newest_checkpoint_ = written.path;
  if (save_failed_) self_->send(actors_.recorder, Note{Note::Level::warning, "no checkpoint: " + written.error});
  if (save_failed_ && needed) {
    result_.failed = true;
    result_.error = {written.code, "checkpoint: " + written.error};
    stop_ = true;
  }
  for (const auto& next : std::exchange(waiting_for_disk_, {}))
    if (!ended_) next();
  if (!training_ || !checkpoint_due()) return;
  setup_.book->pause();
  if (setup_.book->quiet()) when_quiet();
}

/// Prefixes of the tensors that a checkpoint keeps besides the model.
std::vector<std::string> CoordinatorBody::state_prefixes() const {
  std::vector<std::string> prefixes;
  for (int k = 0; k < core::state_slots(nn::optimizer_kind(setup_.settings->train)); ++k) {
    if (setup_.needs.worker_state == WorkerState::replicated) prefixes.push_back(optimizer_prefix(-1, k));
    if (setup_.needs.worker_state == WorkerState::per_worker) {
      for (int worker = 0; worker < static_cast<int>(setup_.started.workers); ++worker)
        prefixes.push_back(optimizer_prefix(worker, k));
    }
  }
  for (int k = 0; k < setup_.needs.server_states && !setup_.needs.server_state_of.empty(); ++k)
    prefixes.push_back(server_state_prefix(k));
  if (setup_.needs.model == ModelHome::center && setup_.needs.model_slot != strategies::kCenter)
    prefixes.emplace_back(experiment::kCenterPrefix);
  return prefixes;
}

void CoordinatorBody::take_state(std::vector<std::string> prefixes, const std::shared_ptr<Checkpoint>& into,
                                 const Next& next) {
  if (prefixes.empty()) return next();
  const auto prefix = prefixes.back();
  prefixes.pop_back();
  const Next kept = [this, prefix, prefixes, into, next] {
    into->vectors.emplace(prefix, canonical());
    take_state(prefixes, into, next);
  };
  const Next own = [this, prefix, into, kept] {
    into->optimizer_steps[prefix] = optimizer_steps_;
    kept();
  };
  // A lost worker's state is lost: it begins anew when the run is resumed.
  const Next without = [this, prefixes, into, next] { take_state(prefixes, into, next); };
  for (std::uint8_t k = 0; k < 2; ++k) {
    const Slot state{strategies::SlotKind::velocity, k};
    for (std::uint32_t worker = 0; worker < setup_.started.workers; ++worker) {
      if (prefix == optimizer_prefix(static_cast<int>(worker), k))
        return snapshot_worker(worker, state, whole_arena(), own, without);
    }
    if (prefix == optimizer_prefix(-1, k)) return snapshot_worker(model_worker(), state, whole_arena(), own, without);
  }
  if (prefix == experiment::kCenterPrefix) return snapshot_shards(strategies::kCenter, kept);
  for (std::uint8_t k = 0; k < setup_.needs.server_states; ++k) {
    if (prefix == server_state_prefix(k)) return snapshot_shards(strategies::server_state(k), kept);
  }
}

void CoordinatorBody::snapshot_shards(Slot slot, const Next& next) {
  shares_left_ = actors_.servers.size();
  shard_versions_.resize(actors_.servers.size());
  const auto whole = arena_->view();
  for (std::size_t shard = 0; shard < actors_.servers.size(); ++shard) {
    const auto slice = transport::slice_of(whole.size(), shard, actors_.servers.size());
    ask<SnapshotTaken>(
        site_of_server(static_cast<std::uint32_t>(shard)), member_silence(), actors_.servers[shard],
        [this, shard, next](const SnapshotTaken& taken) {
          shard_versions_[shard] = taken.version;
          center_version_ = std::max(center_version_, taken.version);
          if (--shares_left_ == 0 && !ended_) next();
        },
        [this, shard](const caf::error& error) {
          fail(core::Errc::timeout, fmt::format("snapshot of server {}: {}", shard, self_->system().render(error)));
        },
        SnapshotOrder{++snapshots_, slot}, BorrowedView{whole.subspan(slice.offset, slice.count), arena_});
  }
}

/// Calls `absent` if the worker is no member, or is lost before it answers.
void CoordinatorBody::snapshot_worker(std::uint32_t worker, Slot slot, const BorrowedView& space, const Next& next,
                                      const Next& absent, bool journalled) {
  if (!is_member(worker)) return absent();
  ask<SnapshotTaken>(
      site_of(worker), member_silence(), actors_.workers[worker],
      [this, worker, next](const SnapshotTaken& taken) {
        weight_ = taken.weight;
        optimizer_steps_ = taken.optimizer_steps;
        if (newest_ == worker) updates_ = taken.version;
        if (!ended_) next();
      },
      [this, worker, absent](const caf::error& error) { missed(worker, error, absent); },
      SnapshotOrder{++snapshots_, slot, journalled}, space);
}

}  // namespace troupe::actors
