#include "actors/worker/worker_body.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "actors/protocol/vocabulary.hpp"
#include "core/buffer.hpp"
#include "nn/arenas/host_view.hpp"
#include "nn/hash.hpp"

namespace troupe::actors {

using strategies::KernelName;
using strategies::WorkerId;

WorkerBody::WorkerBody(Self self, WorkerSetup setup)
    : self_(self),
      setup_(std::move(setup)),
      output_(std::make_shared<ProgramOutput>(fmt::format("worker {}", setup_.self), *setup_.clock)),
      helping_(self->system()),
      rendezvous_(setup_.self),
      bad_(setup_.train.max_bad_updates) {}
WorkerBody::~WorkerBody() {
  discard_batches();
  output_->close();
}

// ---- batches and steps

/// The host asks for a step. That means that the update of the last lease is finished.
void WorkerBody::compute(strategies::Step step) {
  if (lease_open_) {
    progress_.done.push_back(lease_.index);
    lease_open_ = false;
  }
  wants_batch_ = true;
  wants_step_ = step;
  hash_due_ = setup_.journal && setup_.hash_every > 0 && (hash_owed_ || step % setup_.hash_every == 0);
  wants_since_ = now();
  take_batch();
  if (wants_batch_) report();
}

/// Orders the wanted step when its batch is here. Batches of skipped steps go back unused.
void WorkerBody::take_batch() {
  while (next_step_ < wants_step_ && !batches_.empty()) {
    const auto passed = std::move(batches_.front());
    batches_.pop_front();
    memory_->replica().discard(passed.view());
    ++next_step_;
    progress_.given_up.push_back(passed.ready.lease.index);
    self_->send(actors_.loaders[setup_.self], BatchReturn{passed.ready.buffer});
  }
  if (batches_.empty()) return;
  wants_batch_ = false;
  order_step();
}

nn::Batch WorkerBody::Ready::view() const noexcept {
  return {.images = batch.images,
          .labels = batch.labels,
          .lease = ready.lease.index,
          .count = ready.lease.count,
          .epoch = ready.lease.epoch,
          .epoch_position = ready.lease.epoch_position,
          .bytes = batch.bytes,
          .cuts = batch.cuts,
          .space = batch.space};
}

/// The loader's memory may go: nothing copies from it any more.
void WorkerBody::discard_batches() noexcept {
  if (memory_)
    for (const Ready& ready : batches_) memory_->replica().discard(ready.view());
  batches_.clear();
}

void WorkerBody::order_step() {
  if (report_is_due()) report();
  self_->send(self_, StepOrder{});
}

void WorkerBody::batch_ready(const BatchReady& ready, const BorrowedBatch& batch) {
  batches_.push_back({ready, batch});
  if (memory_ && !failed_) memory_->replica().prefetch(batches_.back().view());
  if (!wants_batch_) return;
  const auto since =
      std::max(wants_since_, core::Duration{ready.granted_ns});  // before the grant there is nothing to load
  load_time_ += std::max(now() - since, core::Duration{0});
  wants_since_ = now();
  take_batch();
  if (wants_batch_) report();  // all skipped: their leases are done
}

void WorkerBody::compute_now() {
  if (failed_ || batches_.empty()) return;
  hash_due_ = false;
  const auto next = std::move(batches_.front());
  batches_.pop_front();
  ++next_step_;
  lease_ = next.ready.lease;
  progress_.replaced += next.ready.replaced;
  nn::Batch batch = next.view();
  batch.lr = optimizer_step().lr;
  if (!batches_.empty()) {  // it comes while this one is computed
    memory_->replica().prefetch(batch);
    memory_->replica().prefetch(batches_.front().view());
  }
  const auto began = now();
  buckets_late_ = setup_.slowdown > 1 || setup_.synthetic_step.count() > 0;
  const auto step =
      experiment::guarded_step(memory_->replica(), memory_->kernels(), usable_, batch, [this](int bucket) {
        if (!buckets_late_) host_->bucket_ready(bucket);
      });
  const auto computed = now() - began;
  const auto pretended = this->pretended(computed);
  // The last sleep ended late, as sleeps do: this one is shorter by that time.
  const auto sleep = std::max(pretended - computed - woke_late_, core::Duration{0});
  compute_time_ += pretended;
  wakes_at_ = began + computed + sleep;
  self_->send(actors_.loaders[setup_.self], BatchReturn{next.ready.buffer});
  if (!step)
    return step_failed(
        {step.error().code, fmt::format("worker {}, step {}: {}", setup_.self, host_->steps(), step.error().message)});
  const auto* const result = &step->result;
  if (losses_.diverged(host_->steps(), result->loss))
    return run_error(core::Errc::diverged, losses_.text(setup_.self) + against_divergence());
  lease_open_ = true;
  ++progress_.steps;
  progress_.forward_s += result->forward_s;
  progress_.backward_s += result->backward_s;
  progress_.samples += static_cast<std::uint64_t>(result->samples);
  progress_.recent_samples += static_cast<std::uint64_t>(result->samples);
  progress_.loss_sum += result->loss * static_cast<double>(result->samples);
  experiment::add_hits(result->top1, progress_.top1);
  experiment::add_norm(progress_, step->gradient_norm);
  progress_.loss_scale = result->loss_scale;
  if (!look_at(*step)) return;
  if (sleep.count() > 0)
    timer_.send(sleep, StepEnd{});
  else
    self_->send(self_, StepEnd{});
}

/// The time of the step under the configured slowdown and synthetic step time.
core::Duration WorkerBody::pretended(core::Duration computed) const {
  const auto step = std::max(computed, setup_.synthetic_step);
  return std::chrono::duration_cast<core::Duration>(step * setup_.slowdown);
}

void WorkerBody::step_ended() {
  if (failed_) return;
  if (buckets_late_) woke_late_ = now() - wakes_at_;
  for (int bucket = 0; buckets_late_ && bucket < static_cast<int>(memory_->replica().buckets().size()); ++bucket)
    host_->bucket_ready(bucket);
  host_->step_done(lease_.epoch_position, optimizer_step());
  after_event();
}

/// Of the current lease.
core::OptimizerStep WorkerBody::optimizer_step() const {
  return nn::optimizer_step(setup_.train, lease_.epoch_position, setup_.total_epochs, static_cast<int>(setup_.workers),
                            lease_.lr_factor);
}

void WorkerBody::set_deadline(strategies::DeadlineId id, core::Duration after) {
  timer_.send(after, DeadlineReached{id});
}

void WorkerBody::deadline_reached(strategies::DeadlineId id) {
  if (failed_) return;
  host_->deadline_passed(id);
  after_event();
}

// ---- exchanges with shards

void WorkerBody::send(const strategies::ShardRequest& request) {
  const auto slice = core::slice_of(memory_->view(request.slot).size(), request.shard, actors_.servers.size());
  const auto sent = now();
  const auto [entry, first] =
      asked_.try_emplace(request.request.exchange, Asked{{}, request.slot, request.request.kind});
  auto& asked = entry->second;
  if (first) {
    asked.wait = await(actors_.server_sites, request.request.exchange);
    asked.measured_by = begin_measurement(request);
  }
  ++asked.parts_left;
  if (asked.measured_by == MeasuredBy::worker && !memory_->remember(request.slot, slice.offset, slice.count))
    asked.measured_by = MeasuredBy::nobody;
  count_bytes(experiment::purpose_of(request.request.kind), request.shard,
              wire_bytes_->to_shard(request.shard, request.request.kind, request.rounding, slice.offset, slice.count));
  flush_before_exchange();
  helping_.send(
      self_, actors_.servers[request.shard],
      ShardMessage{request.shard, request.request, request.rounding, sent.count(),
                   asked.measured_by == MeasuredBy::servers},
      memory_->lend(request.slot, slice.offset, slice.count, request.request.kind != strategies::Transfer::pull));
}

/// Other sites may use this exchange after this worker is lost: replay then needs the journal records that led to it.
void WorkerBody::flush_before_exchange() {
  if (!actors_.worker_sites.empty() && !journal_.empty()) self_->send(actors_.recorder, journal_.take());
}

void WorkerBody::answered(const ShardAnswer& answer) {
  const auto& reply = answer.reply;
  if (failed_) return;
  const auto asked = asked_.find(reply.exchange);
  if (asked == asked_.end()) return;
  const bool written = asked->second.kind != strategies::Transfer::push && !reply.dropped;
  const auto by = asked->second.measured_by;
  const bool is_measured = by == MeasuredBy::servers && answer.squared_distance >= 0;
  if (written || is_measured) {  // else nothing is looked at: a program of the user's copies what is viewed
    const auto whole = memory_->view(asked->second.slot).size();
    const auto slice = core::slice_of(whole, reply.shard, actors_.servers.size());
    if (written && by == MeasuredBy::worker)
      measured(slice.offset, slice.count, memory_->take_back_measured(asked->second.slot, slice.offset, slice.count));
    else if (written)
      memory_->take_back(asked->second.slot, slice.offset, slice.count);
    if (is_measured) measured(slice.offset, slice.count, answer.squared_distance);
  }
  if (asked->second.slot == strategies::kParams) memory_->replica().parameters_written();
  if (--asked->second.parts_left == 0) {
    silences_.end(asked->second.wait);
    asked_.erase(asked);
  }
  host_->replied(reply);
  after_event();
}

// ---- collectives

void WorkerBody::reduce(strategies::Step step, const strategies::Reduce& reduce) {
  collective({step, reduce.id}, {reduce.group, {}, reduce.op, reduce.slot, reduce.rounding}, reduce.bucket);
}

void WorkerBody::broadcast(strategies::Step step, const strategies::Broadcast& broadcast) {
  collective({step, broadcast.id}, {broadcast.group, broadcast.root, {}, broadcast.slot}, -1);
}

void WorkerBody::collective(Rendezvous::Key key, Rendezvous::Task task, int bucket) {
  if (task.group.empty()) task.group = host_->membership().workers;
  const auto whole = nn::Bucket{0, memory_->view(task.slot).size()};
  const auto part = bucket < 0 ? whole : memory_->replica().buckets()[static_cast<std::size_t>(bucket)];
  const auto slice = memory_->lend(task.slot, part.offset, part.count);
  collective_parts_.insert_or_assign(key.second, core::Slice{part.offset, part.count});
  const auto ranks = task.group.size();
  const auto offset = task.slot == strategies::kStatistics ? std::nullopt : std::optional(part.offset);
  count_bytes(experiment::Purpose::collective, 0,
              wire_bytes_->collective(task.group, task.root, task.rounding, offset, part.count));
  if (over_sites(task.group)) {
    std::vector<std::uint32_t> sites;
    for (const auto member : task.group) sites.push_back(actors_.worker_sites[member]);
    elsewhere_[key] = {await(std::move(sites), {}), task.slot};
    self_->send(actors_.exchanger,
                CollectiveOrder{.worker = setup_.self,
                                .step = key.first,
                                .exchange = key.second,
                                .group = task.group,
                                .root = task.root ? static_cast<std::int64_t>(*task.root) : -1,
                                .mean = task.op == strategies::ReduceOp::mean,
                                .offset = offset ? static_cast<std::int64_t>(*offset) : -1,
                                .rounding = task.rounding},
                slice);
    return;
  }
  const CollectiveOffer offer{setup_.self, key.first, key.second};
  for (const auto worker : task.group) {
    if (worker != setup_.self) self_->send(actors_.workers[worker], offer, slice);
  }
  rendezvous_.begin(key, std::move(task), slice, now());
  if (ranks == 1) advance(key);
}

bool WorkerBody::over_sites(const strategies::Group& group) const {
  const auto& sites = actors_.worker_sites;
  return !sites.empty() && std::ranges::any_of(group, [&](WorkerId w) { return sites[w] != sites[setup_.self]; });
}

void WorkerBody::collective_ended(const CollectiveEnded& ended) {
  const auto node = elsewhere_.extract({ended.step, ended.exchange});
  if (failed_ || node.empty()) return;
  silences_.end(node.mapped().wait);
  finished_.push_back({ended.exchange, node.mapped().slot, core::Duration{ended.waited_ns}, ended.last});
  after_event();
}

void WorkerBody::offered(const CollectiveOffer& offer, const BorrowedView& slice) {
  if (failed_) return;
  rendezvous_.offered({offer.step, offer.exchange}, offer.worker, slice, now());
  advance({offer.step, offer.exchange});
  after_event();
}

void WorkerBody::share_done(const CollectiveDone& done) {
  if (failed_) return;
  rendezvous_.share_done({done.step, done.exchange}, done.worker);
  advance({done.step, done.exchange});
  after_event();
}

void WorkerBody::advance(Rendezvous::Key key) {
  if (rendezvous_.work(key, memory_->loan_kernels())) {
    for (const WorkerId worker : rendezvous_.group(key)) {
      if (worker != setup_.self)
        self_->send(actors_.workers[worker], CollectiveDone{setup_.self, key.first, key.second});
    }
  }
  if (auto finished = rendezvous_.finish(key)) finished_.push_back(*finished);
}

// ---- between calls

void WorkerBody::after_event() {
  report_finished_collectives();
  if (std::exchange(hash_due_, false))
    hash_parameters();  // of these parameters: nothing has been computed since it was due
  help_or_leave();
  answer_settle_orders();
  answer_peer_messages(false);
  answer_dismissal();
}

/// Between two steps. While an exchange is in flight others may write to the parameters: then the hash is taken between later ones.
void WorkerBody::hash_parameters() {
  hash_owed_ = !host_ || host_->in_flight() > 0 || !collective_parts_.empty();
  if (hash_owed_) return;
  const auto parameters = memory_->view(strategies::kParams);
  const auto hash = nn::hash64(std::as_bytes(nn::HostView(memory_->kernels(), parameters).get()));
  journal_.add(encode(SnapshotRecord{false, setup_.self, strategies::kParams, hash}));
}

/// Reports to the host what ended during one of its calls: a port never answers from inside a call.
void WorkerBody::report_finished_collectives() {
  while (!finished_.empty() && !failed_) {
    const auto finished = finished_.front();
    finished_.pop_front();
    const auto part = collective_parts_.extract(finished.exchange);
    if (!part.empty()) memory_->take_back(finished.slot, part.mapped().offset, part.mapped().count);
    if (finished.slot == strategies::kParams) memory_->replica().parameters_written();
    host_->reduced(finished.exchange, finished.waited, finished.last);
  }
}

/// Helps idle servers while the worker itself has nothing to do until an answer arrives.
void WorkerBody::help_or_leave() {
  if (host_ && !host_->computing())
    helping_.help();
  else
    helping_.leave();
}

void WorkerBody::answer_settle_orders() {
  if (!host_ || (!settling_ && !asked_state_)) return;
  host_->settle();
  if (!host_->settled()) return;
  if (settling_) settling_->deliver(Settled{});
  if (asked_state_) asked_state_->deliver(state());
  settling_.reset();
  asked_state_.reset();
}

void WorkerBody::answer_dismissal() {
  if (!dismissal_ || !host_ || host_->in_flight() > 0) return;
  report();
  dismissal_->deliver(Dismissed{});
  dismissal_.reset();
}

caf::result<Dismissed> WorkerBody::dismiss() {
  if (failed_ || !wants_batch_) return Dismissed{};
  wants_batch_ = false;
  host_->stop();
  dismissal_ = self_->make_response_promise<Dismissed>();
  const auto answer = *dismissal_;
  after_event();
  return answer;
}

// ---- journal

void WorkerBody::consumed(const strategies::WorkerEvent& event) {
  if (setup_.journal) journal_.add(setup_.self, event);
}
void WorkerBody::exchanged(const strategies::ExchangeRecord&) {}

}  // namespace troupe::actors
