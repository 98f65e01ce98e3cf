// A worker before its first step, the membership news that it gets from then on, and its end.
#include <fmt/format.h>

#include "actors/protocol/vocabulary.hpp"
#include "actors/worker/worker_body.hpp"
#include "nn/program/own_process.hpp"

namespace troupe::actors {

using strategies::WorkerId;

core::Result<Prepared> WorkerBody::prepare() {
  // Before the replica exists: its memory is to be near these cpus, and its threads are to inherit them.
  if (!setup_.cpus.empty())
    if (auto bound = core::ThreadBinding::bind_this_thread(setup_.cpus)) binding_.emplace(std::move(*bound));
  setup_.compile.on_output = [output = output_](const std::string& line) { output->line(line); };
  if (setup_.plan) setup_.compile.plan = &*setup_.plan;
  setup_.compile.bytes = setup_.bytes.get();
  auto memory = WorkerMemory::create({.backend = setup_.backend,
                                      .graph = setup_.graph.get(),
                                      .compile = setup_.compile,
                                      .loans = setup_.loans,
                                      .micro_batches = setup_.train.accumulate,
                                      .extra = setup_.strategy->needs().worker_slots,
                                      .optimizer = nn::optimizer_kind(setup_.train),
                                      .shards = setup_.servers});
  if (!memory) return tl::unexpected(memory.error());
  memory_ = std::move(*memory);
  const auto& replica = memory_->replica();
  return Prepared{.fingerprint = replica.layout_fingerprint(),
                  .arena_floats = replica.layout()->arena_floats(),
                  .workspace_bytes = replica.workspace_bytes(),
                  .error = {}};
}

/// Keeps none of the start state's vectors: they are as large as the model.
core::Result<void> WorkerBody::load(const StartState& start) {
  first_versions_ = start.versions;
  first_version_ = start.center_version;
  optimizer_steps_ = start.optimizer_steps.at(setup_.self);
  next_step_ = start.first_steps.at(setup_.self);
  return memory_->load(start, setup_.self);
}

void WorkerBody::begin(const ActorDirectory& actors) {
  actors_ = actors;
  output_->to(actors_.recorder, caf::actor_cast<WorkerActor>(self_->ctrl()));
  auto plan = experiment::parse_exchange(actors.exchange, "the run");
  if (!plan) return run_error(plan.error().code, plan.error().message);
  const auto packing = plan->packed ? experiment::packing_of(*memory_->replica().layout()) : nullptr;
  usable_ = plan->largest_usable();
  wire_bytes_.emplace(setup_.self, std::move(*plan), packing);
  strategies::Membership membership{actors.membership_epoch, actors.members};
  for (WorkerId w = 0; w < actors.workers.size() && actors.members.empty(); ++w) membership.workers.push_back(w);
  mailbox_.emplace(setup_.self, static_cast<std::uint32_t>(actors.workers.size()));
  mailbox_->members(membership.workers);
  first_versions_.resize(actors.servers.size(), first_version_);
  host_.emplace(setup_.strategy->worker(), strategies::worker_ports(*this, setup_.strategy->needs()),
                strategies::WorkerHostOptions{setup_.self, setup_.seed, membership,
                                              static_cast<int>(memory_->replica().buckets().size()), first_versions_,
                                              optimizer_steps_},
                this);
  if (!setup_.cpus.empty() && !binding_)
    self_->send(actors_.recorder,
                Note{Note::Level::warning, fmt::format("worker {} could not be pinned to {}: it may not use them",
                                                       setup_.self, core::to_text(setup_.cpus))});
  reported_at_ = now();
  timer_.send(std::chrono::seconds(1), Tick{});
  host_->start(next_step_);
  if (const auto early = news_.begin(actors.membership_epoch)) hear(*early);
  after_event();
}

void WorkerBody::membership(const MembershipNews& news) {
  if (news_.take(news)) hear(news);
}

/// The exchanger of a site other than 0 gets membership news from the workers there.
void WorkerBody::hear(const MembershipNews& news) {
  if (actors_.exchanger) self_->send(actors_.exchanger, news);
  if (failed_ || !host_) return;
  mailbox_->members(news.workers);
  host_->membership_changed({news.epoch, news.workers});
  after_event();
}

/// Destroys the replica on the thread that made it, unless a borrowed view outlives the worker.
core::Result<void> WorkerBody::halt(bool in_order) {
  failed_ = true;
  host_.reset();
  if (mailbox_) mailbox_->clear();
  discard_batches();
  output_->close();
  core::Result<void> ended;
  if (auto* const process = memory_ ? nn::own_process_of(memory_->replica()) : nullptr; process)
    ended = process->end(in_order).map_error([this](core::Error error) {
      return core::Error{error.code, fmt::format("worker {}: {}", setup_.self, error.message)};
    });
  memory_.reset();
  return ended;
}

}  // namespace troupe::actors
