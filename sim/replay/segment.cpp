#include "sim/replay/segment.hpp"

#include <fmt/format.h>

#include "experiment/batches/batch_memory.hpp"
#include "experiment/state/local_rank.hpp"
#include "experiment/state/vector_memory.hpp"
#include "experiment/state/weighted_mean.hpp"
#include "nn/arenas/host_view.hpp"
#include "nn/hash.hpp"
#include "nn/optimizer.hpp"
#include "sim/replay/server.hpp"
#include "sim/replay/worker.hpp"

namespace troupe::replay {

using strategies::ModelHome;

namespace {

constexpr auto kOtherProgram =
    ": a program has computed other numbers than in the run. Each must compute the same again: random numbers from "
    "fixed seeds, sums in one order (docs/guests.md, \"Replay\"). With run.hash_every = 1 a run has a hash of every "
    "step";

}  // namespace

Segment::Segment(const experiment::RunSpec& spec, Recording recording, const SegmentOptions& options)
    : spec_(spec), options_(options), recording_(std::move(recording)) {}

Segment::~Segment() = default;

core::Allocator& Segment::memory() const {
  return experiment::vector_memory(*options_.backend, *options_.exchange, *options_.memory);
}

core::Result<std::unique_ptr<Segment>> Segment::open(const experiment::RunSpec& spec,
                                                     const experiment::StartState& start, Recording recording,
                                                     const SegmentOptions& options, RunningPrograms running) {
  std::unique_ptr<Segment> segment(new Segment(spec, std::move(recording), options));
  if (auto made = segment->make(start, std::move(running)); !made) return tl::unexpected(made.error());
  return segment;
}

/// A new replica, in the state that the segment begins with.
core::Result<experiment::WorkerMemory> Segment::memory_of(strategies::WorkerId worker,
                                                          const experiment::StartState& start,
                                                          const nn::BytePreparation* bytes) {
  const auto& settings = *spec_.settings;
  auto compile = settings.compile_options(worker);
  const bool own = options_.backend->capabilities().own_arenas;
  compile.arenas = own ? &options_.backend->arenas(compile) : &memory();
  compile.gradients = !spec_.needs.local_steps;
  compile.local_rank = experiment::local_rank(settings, *options_.exchange, worker);
  compile.plan = options_.plan;
  compile.epochs = settings.run.epochs;  // of this segment's session, which another one may have extended
  compile.zeros_for_missing_gradients = options_.arithmetic < experiment::kRoundArithmetic;
  compile.bytes = bytes;
  auto memory = experiment::WorkerMemory::create({.backend = options_.backend,
                                                  .graph = spec_.graph.get(),
                                                  .compile = compile,
                                                  .micro_batches = settings.train.accumulate,
                                                  .extra = spec_.needs.worker_slots,
                                                  .optimizer = nn::optimizer_kind(settings.train),
                                                  .shards = spec_.servers});
  if (!memory) return memory;
  if (auto loaded = memory->load(start, worker); !loaded) return tl::unexpected(loaded.error());
  return memory;
}

core::Result<void> Segment::make(const experiment::StartState& start, RunningPrograms running) {
  membership_ = start.membership;
  for (std::uint32_t w = 0; w < spec_.workers && start.workers.empty(); ++w) membership_.workers.push_back(w);
  workers_.resize(spec_.workers);
  const auto bytes = experiment::byte_preparation(*spec_.source.train);
  for (const auto w : membership_.workers) {
    auto kept = running.extract(w);
    // A vector may be a rounded copy of what the program has: it is written to only where the replay has other numbers.
    if (!kept.empty() && !options_.same_numbers)
      if (auto loaded = kept.mapped().load(start, w); !loaded) return loaded;
    // The run had kept it going from the segment before; so its state is nowhere but in a replay of that.
    const bool ran_on = !start.workers.empty() && spec_.graph->is_program() && !start.workers.at(w).own_state;
    if (kept.empty() && ran_on)
      return core::fail(core::Errc::data,
                        fmt::format("the program of worker {} ran on from the segment before, which is missing or cut "
                                    "off: what its optimizer had is not known",
                                    w));
    auto memory = kept.empty() ? memory_of(w, start, bytes.get())
                               : core::Result<experiment::WorkerMemory>(std::move(kept.mapped()));
    if (!memory) return tl::unexpected(memory.error());
    if (!layout_) {
      layout_ = memory->replica().layout();
      if (options_.exchange->packed) packing_ = experiment::packing_of(*layout_);
    }
    workers_[w] = std::make_unique<ReplayWorker>(*this, w, std::move(recording_.workers[w]),
                                                 std::move(recording_.leases[w]), std::move(*memory), start);
    if (start.workers.empty()) continue;
    if (auto taken = workers_[w]->take_up(start.workers.at(w)); !taken) return taken;
  }
  if (auto connected = connect(); !connected) return connected;
  auto shards = experiment::cut_shards(start, *layout_, spec_.servers, spec_.needs.server_states, kernels(), memory());
  if (!shards) return tl::unexpected(shards.error());
  for (std::uint32_t s = 0; s < spec_.servers; ++s) {
    servers_.push_back(
        std::make_unique<ReplayServer>(*this, s, std::move(recording_.servers[s]), std::move((*shards)[s]),
                                       start.servers.empty() ? start.center_version : start.servers.at(s).version));
    if (start.servers.empty()) continue;
    if (auto taken = servers_.back()->take_up(start.servers.at(s).state); !taken) return taken;
  }
  return {};
}

/// Creates the wire and the collectives between members.
core::Result<void> Segment::connect() {
  const auto& exchange = *options_.exchange;
  wire_.emplace(exchange, packing_, kernels(), memory());
  std::unique_ptr<SiteSums> sums;
  if (!exchange.in_place()) {
    auto made = SiteSums::create(exchange, spec_.workers, kernels());
    if (!made) return tl::unexpected(made.error());
    sums = std::move(*made);
  }
  collectives_.emplace(*wire_, std::move(sums), kernels());
  return {};
}

core::Result<void> Segment::run() {
  if (auto ran = advance_all(); !ran) return ran;
  if (recording_.has_all_ends()) explain_halt();
  return {};
}

core::Result<void> Segment::run_held(const ReplayServer* server) {
  do {
    if (auto ran = advance_all(); !ran) return ran;
  } while (release(server));
  for (const auto& worker : workers_)
    if (worker) worker->settle();
  return advance_all();
}

/// Lets those go on that others wait for. False: nobody waits, or nobody can.
bool Segment::release(const ReplayServer* server) {
  const auto go_on = [&](strategies::WorkerId w) {
    auto* const worker = workers_.at(w).get();
    return worker != nullptr && worker->at_hold() && worker->go_on();
  };
  bool released = false;
  const auto need = server == nullptr ? std::nullopt : server->needs();
  if (need) released = go_on(*need);
  for (const auto& worker : workers_) {
    if (!worker || worker->at_hold()) continue;
    if (const auto needed = worker->needs()) {
      released = go_on(*needed) || released;
      continue;
    }
    // A collective: those join it with the same step.
    for (strategies::WorkerId w = 0; w < workers_.size(); ++w)
      if (workers_[w] && workers_[w]->host().steps() <= worker->host().steps()) released = go_on(w) || released;
  }
  return released;
}

/// As far as all can go.
core::Result<void> Segment::advance_all() {
  constexpr std::size_t kReportEvery = 16;  // steps of members: consumed() asks all members
  const auto stepped = [&] {
    if (options_.progress && ++advanced_ % kReportEvery == 0) options_.progress(consumed());
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (const auto& worker : workers_) {
      // One step of each in turn: the first difference found is then one of the earliest.
      const auto step = worker ? worker->host().steps() : 0;
      while (worker && worker->host().steps() == step && worker->advance()) progress = stepped();
      if (!error_.message.empty()) return tl::unexpected(error_);
    }
    for (const auto& server : servers_) {
      while (server->advance()) progress = stepped();
    }
  }
  return {};
}

/// No member can continue. In a complete recording this is the end, or members wait for events that the replay never produces.
void Segment::explain_halt() const {
  for (std::uint32_t s = 0; s < servers_.size(); ++s) {
    const auto& server = *servers_[s];
    if (!server.at_end())
      throw Diverged(fmt::format("{}: {}, but the replay never sends it", recording_.path, server.waits_for()), true, s,
                     server.consumed());
  }
  for (std::uint32_t w = 0; w < workers_.size(); ++w) {
    const auto* const worker = workers_[w].get();
    if (worker != nullptr && !worker->at_end())
      throw Diverged(
          fmt::format("{}: {}, but it never comes to it in the replay", recording_.path, worker->waits_for()), false, w,
          worker->fed());
  }
}

/// The members at the segment's end, as far as recorded. Never empty.
std::vector<ReplayWorker*> Segment::left() const {
  std::vector<ReplayWorker*> left;
  for (const auto* list : {&recording_.left, &membership_.workers}) {
    for (const auto w : *list)
      if (workers_.at(w)) left.push_back(workers_[w].get());
    if (!left.empty()) break;
  }
  return left;
}

std::size_t Segment::consumed() const {
  std::size_t sum = 0;
  for (const auto& worker : workers_) sum += worker ? worker->consumed() : 0;
  for (const auto& server : servers_) sum += server->consumed();
  return sum;
}

std::map<std::string, std::uint64_t> Segment::consumed_by_member() const {
  std::map<std::string, std::uint64_t> all;
  for (std::uint32_t w = 0; w < workers_.size(); ++w)
    if (workers_[w]) all[member_name(false, w)] = workers_[w]->consumed();
  for (std::uint32_t s = 0; s < servers_.size(); ++s) all[member_name(true, s)] = servers_[s]->consumed();
  return all;
}

SegmentVerification Segment::verification(int number, std::uint64_t bytes, std::size_t events,
                                          const Diverged* diverged) const {
  SegmentVerification found{.segment = number,
                            .bytes = bytes,
                            .hashes = hashes_,
                            .complete = recording_.complete && consumed() == events,
                            .members = consumed_by_member()};
  if (diverged == nullptr) return found;
  std::string message = diverged->what();
  if (message.starts_with(recording_.path + ": ")) message.erase(0, recording_.path.size() + 2);
  found.difference = Difference{diverged->member(), diverged->event(), std::move(message)};
  return found;
}

void Segment::check(const experiment::SnapshotRecord& recorded, core::ConstSpan vector, const std::string& where,
                    std::size_t event) {
  const auto hash = nn::hash64(std::as_bytes(nn::HostView(kernels(), vector).get()));
  if (hash != recorded.hash) {
    throw Diverged(
        fmt::format("{}: {}: {} has hash {:016x}; the recording says {:016x}{}", recording_.path, where,
                    describe(recorded.slot), hash, recorded.hash, spec_.graph->is_program() ? kOtherProgram : ""),
        recorded.server, recorded.member, event);
  }
  ++hashes_;
}

RunningPrograms Segment::take_running() {
  RunningPrograms running;
  for (const auto w : recording_.complete ? recording_.stayed : std::vector<strategies::WorkerId>{}) {
    auto& worker = *workers_.at(w);
    if (worker.at_end() && worker.memory().replica().owns_optimizer()) running.emplace(w, std::move(worker.memory()));
  }
  return running;
}

std::vector<float> Segment::model() {
  std::vector<float> arena(layout_->arena_floats());
  if (spec_.needs.model == ModelHome::center) {
    std::size_t offset = 0;
    for (const auto& server : servers_) {
      const auto shard = server->memory().view(spec_.needs.model_slot);
      kernels().download(std::span(arena).subspan(offset, shard.size()), shard);
      offset += shard.size();
    }
  } else if (spec_.needs.model == ModelHome::weighted) {
    experiment::WeightedMean mean;
    for (auto* worker : left())
      mean.add(nn::HostView(kernels(), worker->memory().view(spec_.needs.model_vector())).get(),
               worker->host().weight());
    mean.take(arena);
  } else {
    const auto params = left().front()->memory().view(spec_.needs.model_vector());
    kernels().download(arena, params);
  }
  std::vector<float> canonical(layout_->canonical_floats());
  layout_->to_canonical(arena, canonical);
  return canonical;
}

std::vector<float> Segment::statistics() {
  const auto layout = nn::statistics_layout(*spec_.graph);
  std::vector<nn::HostView> views;
  for (auto* worker : left()) views.emplace_back(kernels(), worker->memory().view(strategies::kStatistics));
  std::vector<core::ConstSpan> statistics;
  for (const auto& view : views) statistics.push_back(view.get());
  return experiment::mean_statistics(layout, statistics);
}

std::vector<experiment::WorkerProgress> Segment::progress() const {
  std::vector<experiment::WorkerProgress> all;
  for (std::uint32_t w = 0; w < workers_.size(); ++w)
    all.push_back(workers_[w] ? workers_[w]->progress() : experiment::WorkerProgress{.worker = w});
  return all;
}

EpochSums Segment::epochs() const {
  EpochSums all;
  for (const auto& worker : workers_)
    if (worker) add(all, worker->epochs());
  return all;
}

}  // namespace troupe::replay
