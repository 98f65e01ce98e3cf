#include "sim/replay/worker.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "experiment/bad_updates.hpp"
#include "experiment/progress_aggregator.hpp"
#include "nn/arenas/host_view.hpp"
#include "nn/optimizer.hpp"
#include "sim/replay/describe.hpp"
#include "sim/replay/server.hpp"

namespace troupe::replay {

using namespace strategies;

namespace {

std::string describe_item(const WorkerItem& item) {
  return std::visit([](const auto& i) { return describe(i); }, item);
}

}  // namespace

ReplayWorker::ReplayWorker(Segment& segment, WorkerId self, std::vector<WorkerItem> items,
                           std::vector<data::Lease> leases, experiment::WorkerMemory memory,
                           const experiment::StartState& start)
    : segment_(segment),
      self_(self),
      items_(std::move(items)),
      leases_(std::move(leases)),
      next_step_(start.first_steps.at(self)),
      memory_(std::move(memory)),
      batch_(memory_.replica(), *segment.spec().source.train),
      wire_bytes_(self, *segment.options().exchange, segment.packing()),
      host_(segment.spec().strategy->worker(), strategies::worker_ports(*this, segment.spec().needs),
            WorkerHostOptions{.self = self,
                              .seed = static_cast<std::uint64_t>(segment.spec().settings->run.seed),
                              .membership = segment.membership(),
                              .buckets = static_cast<int>(memory_.replica().buckets().size()),
                              .versions = std::vector<Version>(segment.spec().servers, start.center_version),
                              .optimizer_steps = start.optimizer_steps.at(self)},
            this) {
  progress_.worker = self;
}

core::Result<void> ReplayWorker::take_up(const experiment::WorkerStart& start) {
  for (const auto& peer_message : start.peer_messages) {
    auto arena = core::Buffer::allocate(segment_.memory(), memory_.replica().parameters().size());
    if (!arena) return tl::unexpected(arena.error());
    nn::write_canonical(segment_.kernels(), *memory_.replica().layout(), *peer_message.vector, arena->view());
    const auto owner = std::make_shared<core::Buffer>(std::move(*arena));
    peer_messages_[peer_message.from].push_back({peer_message.weight, {owner->view(), owner}});
  }
  if (auto restored = host_.restore(start.state); !restored) return restored;
  next_step_ = host_.steps();
  return {};
}

bool ReplayWorker::advance() {
  try {
    return take_item();
  } catch (const std::logic_error& impossible) {
    diverge(fed_, impossible.what());
  }
}

bool ReplayWorker::take_item() {
  if (at_hold()) return false;
  const auto& item = items_[fed_];
  if (const auto* snapshot = std::get_if<experiment::SnapshotRecord>(&item)) {
    if (consumed_ != fed_) return false;
    if (segment_.options().same_numbers) segment_.check(*snapshot, memory_.view(snapshot->slot), where(fed_), fed_);
    ++consumed_;
    ++fed_;
    return true;
  }
  const bool settling = settles();
  const bool fed = std::visit([this](const auto& event) { return feed(event); }, std::get<WorkerEvent>(item));
  if (fed && settling && host_.computing() && !computed_ && consumed_ == fed_) host_.settle();
  fed_ = std::max(fed_ + (fed ? 1 : 0), consumed_);
  return fed;
}

bool ReplayWorker::go_on() {
  if (limit_ >= items_.size()) return false;
  const auto now = computed_step(items_[limit_]);
  const auto computes_next = [&](const WorkerItem& item) {
    const auto step = computed_step(item);
    return step && (!now || *step > *now);
  };
  limit_ = static_cast<std::size_t>(
      std::find_if(items_.begin() + static_cast<std::ptrdiff_t>(limit_), items_.end(), computes_next) - items_.begin());
  return true;
}

void ReplayWorker::settle() {
  if (host_.computing() && !computed_ && consumed_ < fed_) host_.settle();
}

std::optional<WorkerId> ReplayWorker::needs() const {
  const auto* const event = std::get_if<WorkerEvent>(&items_[fed_]);
  if (event == nullptr) return std::nullopt;
  if (const auto* message = std::get_if<PeerMessageArrived>(event)) return message->from;
  const auto* const replied = std::get_if<Replied>(event);
  return replied == nullptr ? std::nullopt : segment_.server(replied->shard).needs();
}

std::string ReplayWorker::waits_for() const {
  return fmt::format("worker {}, event {} of {}: {}", self_, fed_, items_.size(), describe_item(items_[fed_]));
}

/// True if the recorded worker settled here: only then an arrival before the step's first bucket is passed to the rule at once. At the
/// end of a segment that another one continues, the worker has settled too.
bool ReplayWorker::settles() const {
  if (!host_.computing() || computed_) return false;
  for (auto i = fed_; i < items_.size(); ++i) {
    const auto* event = std::get_if<WorkerEvent>(&items_[i]);
    if (!event) return true;  // a snapshot includes earlier arrivals
    if (std::holds_alternative<BucketReady>(*event)) return true;
    if (std::holds_alternative<StepDone>(*event) || std::holds_alternative<Stopped>(*event)) return false;
  }
  return true;
}

// ---- consumed events, in order

bool ReplayWorker::feed(const Started& event) {
  host_.start(event.step);
  return true;
}

bool ReplayWorker::feed(const BucketReady& event) {
  require_computing("a bucket became ready");
  if (event.bucket != 0) diverge(fed_, "a step has fewer buckets than in the recording");
  return compute_step(true);
}

bool ReplayWorker::feed(const StepDone& event) {
  require_computing("a step ended");
  if (!computed_ && !compute_step(false)) return false;
  computed_ = false;
  host_.step_done(lease_.epoch_position, optimizer_step(),
                  counts_steps() ? std::optional(event.optimizer.t) : std::nullopt);
  return true;
}

/// Of the current lease.
core::OptimizerStep ReplayWorker::optimizer_step() const {
  const auto& spec = segment_.spec();
  return nn::optimizer_step(spec.settings->train, lease_.epoch_position, static_cast<double>(spec.settings->run.epochs),
                            static_cast<int>(spec.workers), lease_.lr_factor);
}

/// In version 1 the optimizer's step number was the worker's step, even for a newcomer, whose optimizer starts at 0.
bool ReplayWorker::counts_steps() const { return segment_.recording().version == 1; }

bool ReplayWorker::feed(const Stopped&) {
  require_computing("the worker stopped");
  host_.stop();
  return true;
}

bool ReplayWorker::feed(const Replied& event) {
  const auto reply = replies_.extract({event.exchange, event.shard});
  if (reply.empty()) return false;
  const auto asked = asked_.find(event.exchange);
  if (asked->second.slot == kParams) memory_.replica().parameters_written();
  if (--asked->second.parts_left == 0) asked_.erase(asked);
  host_.replied(reply.mapped());
  return true;
}

/// After an exchange with shards it follows the last answer; after a collective the port reports it.
bool ReplayWorker::feed(const ExchangeDone& event) {
  const auto joined = joined_.find(event.exchange);
  if (joined == joined_.end()) return true;
  if (!segment_.collectives().take_done(self_, event.exchange)) return false;
  if (joined->second == kParams) memory_.replica().parameters_written();
  joined_.erase(joined);
  host_.reduced(event.exchange, core::Duration{0});
  return true;
}

bool ReplayWorker::feed(const PeerMessageArrived& event) {
  auto& peer_messages = peer_messages_[event.from];
  if (peer_messages.empty()) return false;
  auto peer_message = std::move(peer_messages.front());
  peer_messages.pop_front();
  memory_.mount(event.slot, std::move(peer_message.vector));
  host_.peer_message_arrived({.from = event.from, .weight = peer_message.weight, .slot = event.slot});
  return true;
}

/// The host reports it itself: send() has looked ahead.
bool ReplayWorker::feed(const SendSkipped&) { return true; }

bool ReplayWorker::feed(const MembershipChanged& event) {
  host_.membership_changed(event.membership);
  return true;
}

bool ReplayWorker::feed(const DeadlinePassed& event) {
  host_.deadline_passed(event.id);
  return true;
}

void ReplayWorker::consumed(const WorkerEvent& event) {
  if (consumed_ >= items_.size()) {
    if (segment_.recording().has_all_ends())
      diverge(consumed_, describe(event) + " follows, but the recording ends here");
    return;  // a cut-off recording has lost it
  }
  const auto* recorded = std::get_if<WorkerEvent>(&items_[consumed_]);
  auto expected = recorded ? *recorded : WorkerEvent{};
  if (recorded && !segment_.options().same_numbers) {
    const auto* now = std::get_if<StepDone>(&event);
    auto* then = std::get_if<StepDone>(&expected);
    if (now && then) then->optimizer = now->optimizer;
  }
  if (!recorded || !(expected == event)) {
    diverge(consumed_, fmt::format("the replay says {}; the recording says {}", describe(event),
                                   describe_item(items_[consumed_])));
  }
  ++consumed_;
}

// ---- steps

/// What the recorded worker told its program: before kRoundArithmetic, where its own batch was.
double ReplayWorker::told_position() const {
  if (segment_.options().arithmetic >= experiment::kRoundArithmetic) return lease_.epoch_position;
  const auto samples = static_cast<double>(segment_.spec().source.train->size());
  return lease_.epoch + static_cast<double>(lease_.first) / samples;
}

/// Takes the step's batch and computes its gradients. False: the recording does not have the batch.
bool ReplayWorker::compute_step(bool tell_buckets) {
  while (next_step_ < wants_step_ && next_lease_ < leases_.size()) {
    ++next_step_;
    ++next_lease_;
  }
  if (next_lease_ == leases_.size()) return false;
  lease_ = leases_[next_lease_++];
  ++next_step_;
  const auto batch = batch_.build(lease_);
  if (!batch) {
    segment_.fail(batch.error());
    return false;
  }
  nn::Batch told = *batch;
  told.epoch = lease_.epoch;
  told.epoch_position = told_position();
  told.lr = optimizer_step().lr;
  const auto step = experiment::guarded_step(memory_.replica(), segment_.kernels(),
                                             segment_.options().exchange->largest_usable(), told, [&](int bucket) {
                                               if (tell_buckets) host_.bucket_ready(bucket);
                                             });
  if (!step) {
    segment_.fail(step.error());
    return false;
  }
  bad_gradients_ += step->refused ? 1 : 0;
  const auto* const result = &step->result;
  // A recording goes on with finite losses of any size: older versions did, and the numbers alone decide.
  if (experiment::LossWatch losses; !std::isfinite(result->loss) && losses.diverged(host_.steps(), result->loss)) {
    segment_.fail({core::Errc::diverged, fmt::format("{}: {}", segment_.recording().path, losses.text(self_))});
    return false;
  }
  computed_ = true;
  ++progress_.steps;
  progress_.samples += static_cast<std::uint64_t>(result->samples);
  auto& epoch = epochs_[lease_.epoch];
  epoch.samples += static_cast<std::uint64_t>(result->samples);
  epoch.loss += result->loss * static_cast<double>(result->samples);
  experiment::add_norm(progress_, step->gradient_norm);
  return true;
}

// ---- exchanges

void ReplayWorker::send(const ShardRequest& request) {
  auto& asked = asked_.try_emplace(request.request.exchange, Asked{request.slot}).first->second;
  ++asked.parts_left;
  const auto slice = memory_.lend(request.slot, request.shard);
  const auto position = core::slice_of(segment_.arena_floats(), request.shard, segment_.servers()).offset;
  count_bytes(experiment::purpose_of(request.request.kind), request.shard,
              wire_bytes_.to_shard(request.shard, request.request.kind, request.rounding, position, slice.data.size()));
  segment_.server(request.shard).sent(request, slice);
}

void ReplayWorker::answered(const ShardReply& reply) {
  replies_.insert_or_assign({reply.exchange, reply.shard}, reply);
}

void ReplayWorker::reduce(Step step, const Reduce& reduce) {
  collective(step, reduce.id, {.group = reduce.group, .op = reduce.op, .rounding = reduce.rounding}, reduce.slot,
             reduce.bucket);
}

void ReplayWorker::broadcast(Step step, const Broadcast& broadcast) {
  collective(step, broadcast.id, {.group = broadcast.group, .broadcast = true, .root = broadcast.root}, broadcast.slot,
             -1);
}

void ReplayWorker::collective(Step step, ExchangeId id, Collectives::Task task, Slot slot, int bucket) {
  if (task.group.empty()) task.group = host_.membership().workers;
  auto part = memory_.view(slot);
  if (slot != kStatistics) task.position = 0;
  if (bucket >= 0) {
    const auto& range = memory_.replica().buckets()[static_cast<std::size_t>(bucket)];
    part = part.subspan(range.offset, range.count);
    task.position = range.offset;
  }
  const auto root = task.broadcast ? std::optional(task.root) : std::nullopt;
  count_bytes(experiment::Purpose::collective, 0,
              wire_bytes_.collective(task.group, root, task.rounding, task.position, part.size()));
  joined_.emplace(id, slot);
  segment_.collectives().join(self_, step, id, std::move(task), part);
}

/// The recording shows whether there was credit: a skipped send is an event before the end of the next step.
bool ReplayWorker::send(const SendPeer& message) {
  for (auto i = consumed_; i < items_.size(); ++i) {
    const auto* event = std::get_if<WorkerEvent>(&items_[i]);
    if (!event) continue;
    if (std::holds_alternative<StepDone>(*event) || std::holds_alternative<Stopped>(*event)) break;
    const auto* skipped = std::get_if<SendSkipped>(event);
    const bool this_one = skipped && skipped->to == message.to && skipped->weight == message.weight;
    if (this_one && skips_told_.insert(i).second) return false;
  }
  const auto from = memory_.view(message.slot);
  count_bytes(experiment::Purpose::peer, message.to, wire_bytes_.peer_message(message.to, from.size()));
  if (auto* reader = segment_.worker(message.to))
    reader->peer_message(self_, message.weight, segment_.wire().peer_message(self_, message.to, from));
  return true;
}

void ReplayWorker::peer_message(WorkerId from, double weight, experiment::BorrowedView vector) {
  peer_messages_[from].push_back({weight, std::move(vector)});
}

// ---- accounts

void ReplayWorker::count_bytes(experiment::Purpose purpose, std::uint32_t member, std::uint64_t bytes) {
  progress_.bytes += bytes;
  experiment::count(progress_.traffic, {purpose, member, bytes});
}

experiment::WorkerProgress ReplayWorker::progress() const {
  auto progress = progress_;
  experiment::take(progress, host_.totals());
  progress.refused += bad_gradients_;
  return progress;
}

std::string ReplayWorker::where(std::size_t item) const {
  return fmt::format("worker {}, after step {}, event {}", self_, host_.steps(), item);
}

void ReplayWorker::diverge(std::size_t item, const std::string& what) const {
  throw Diverged(fmt::format("{}: {}: {}", segment_.recording().path, where(item), what), false, self_, item);
}

void ReplayWorker::require_computing(const char* what) const {
  if (!host_.computing())
    diverge(fed_, fmt::format("in the recording {} here; in the replay the worker was not told to compute", what));
}

}  // namespace troupe::replay
