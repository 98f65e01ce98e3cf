// The part of Assembly that spawns the coordinator, the recorder, the evaluator and the rejoin manager.
#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "actors/coordinator/evaluator.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/run/assembly.hpp"
#include "data/order/lease_lookahead.hpp"
#include "experiment/evaluation.hpp"
#include "experiment/ledger/ledger.hpp"
#include "experiment/state/resume_notes.hpp"
#include "nn/hash.hpp"
#include "nn/optimizer.hpp"

namespace troupe::actors {

void Assembly::spawn_supervisors(const Beginning& beginning, const report::ConsoleOptions& console) {
  const auto checks = member_message_checks();
  spawn_evaluator();
  spawn_recorder(beginning, console, checks);
  // A newcomer connects to site 0 only: none can join if another site has a part of the centre.
  const bool whole_center = std::ranges::all_of(launch_.placement.server_sites, [](auto site) { return site == 0; });
  if (launch_.network && whole_center && spec_.needs.takes_newcomers()) rejoin_manager_ = spawn_rejoin_manager();
  coordinator_ = context_.system->spawn(coordinator, coordinator_setup(beginning, checks));
}

void Assembly::spawn_evaluator() {
  const auto& settings = *spec_.settings;
  int threads = 0;
  for (std::uint32_t worker = 0; worker < spec_.workers; ++worker) threads += settings.threads(worker);
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  // Beside training it has the cores that the workers leave, or shares one with them.
  threads = std::clamp(settings.run.evaluation == "beside" ? cores - threads : threads, 1, cores);
  evaluator_ = context_.system->spawn<caf::detached>(
      evaluator,
      EvaluatorSetup{spec_.graph, context_.backend, experiment::evaluation_options(spec_, threads, *context_.memory),
                     spec_.source.test, spec_.source.validation, context_.clock, over_.get_token()});
}

void Assembly::spawn_recorder(const Beginning& beginning, const report::ConsoleOptions& console,
                              const MemberMessageChecks& checks) {
  const auto& settings = *spec_.settings;
  auto notes = beginning.notes;
  notes.insert(notes.end(), launch_.warnings.begin(), launch_.warnings.end());
  if (!launch_.note.empty()) notes.push_back({Note::Level::info, launch_.note});
  if (!exchange_.measured.empty())
    notes.push_back({Note::Level::info, "reductions: " + exchange::describe(exchange_.reductions, exchange_.measured)});
  if (const auto backends = settings.backends(); std::ranges::find(backends, "gpu") != backends.end()) {
    auto memory = sites_[0].here->memory();
    if (!exchange_.in_place() && !exchange_.on_devices) memory.why_not = experiment::device_exchange(settings).why_not;
    notes.push_back({Note::Level::info, experiment::describe(memory)});
    if (exchange_.mapped) notes.push_back({Note::Level::info, "processes of one host map each other's device memory"});
    if (!not_mapped_.empty())
      notes.push_back(
          {Note::Level::info, fmt::format("processes do not map each other's device memory, so it is copied through "
                                          "page-locked memory: {}",
                                          not_mapped_)});
  }
  if (auto pinned = pinning_note(pinning_); !pinned.empty()) notes.push_back({Note::Level::info, std::move(pinned)});
  notes.insert(notes.end(), start_->notes.begin(), start_->notes.end());
  auto shown = console;
  shown.learning_rate = [all = spec_.settings, workers = static_cast<int>(spec_.workers)](double epochs) {
    return nn::learning_rate(all->train, epochs, static_cast<double>(all->run.epochs), workers);
  };
  disk_ = beginning.disk;
  recorder_ = context_.system->spawn<caf::detached>(
      recorder, RecorderSetup{beginning.directory, beginning.disk, beginning.checkpoints, std::move(shown),
                              std::move(notes), settings.journal, beginning.checkpoint_file, settings.run.tensorboard,
                              context_.clock, settings.config, run_plan(), checks});
}

/// Longer than anything else waits for a worker within a step: an exchange, its loader for a decoder, the worker for each of three answers of
/// a program. These know more of the reason.
core::Duration Assembly::step_silence() const {
  const auto& settings = *spec_.settings;
  std::size_t loaders = 0;  // that share decoders
  for (std::uint32_t site = 0; site < launch_.placement.sites(); ++site)
    loaders = std::max(loaders, launch_.placement.workers_at(site).size());
  const bool streamed = spec_.source.train->dataset().streamed();
  const auto decoding = decode_deadline(std::ranges::max(settings.data.batch), static_cast<std::int64_t>(loaders));
  const double program_s = spec_.graph->is_program() ? 3 * settings.model.silence_s : 0;
  const double longest_s = std::max(
      {core::seconds(kStepSilence), settings.exchange.deadline_s, streamed ? core::seconds(decoding) : 0, program_s});
  return std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(longest_s)) + kMargin;
}

CoordinatorSetup Assembly::coordinator_setup(const Beginning& beginning, const MemberMessageChecks& checks) const {
  const auto& settings = *spec_.settings;
  const auto plan = run_plan();
  CoordinatorSetup setup{.settings = spec_.settings,
                         .graph = spec_.graph,
                         .layout = layout_,
                         .plan_hash = nn::hash64(std::as_bytes(std::span(plan))),
                         .needs = spec_.needs,
                         .state_slots = experiment::state_slots(spec_),
                         .leases = spec_.leases,
                         .started = {},
                         .before = {},
                         .data = experiment::data_fingerprint(spec_),
                         .validation = experiment::validation_fingerprint(spec_),
                         .first_steps = start_->first_steps,
                         .resumed = beginning.checkpoint != nullptr,
                         .resume_options = launch_.resume_options,
                         .launcher = launch_.launcher,
                         .memory = context_.memory,
                         .clock = context_.clock,
                         .step_silence = step_silence(),
                         .rejoin_manager = rejoin_manager_,
                         .names = {},
                         .checks = checks};
  for (std::uint32_t w = 0; w < spec_.workers; ++w) {
    setup.names.push_back(name_of(w));
    const auto* node = node_of(w);
    setup.nodes.push_back(node ? node->name : std::string());
  }
  setup.started = {.name = settings.run.name,
                   .directory = beginning.directory->path(),
                   .strategy = settings.strategy,
                   .model = spec_.graph->name(),
                   .dataset = settings.data.name,
                   .workers = spec_.workers,
                   .servers = spec_.servers,
                   .epochs = static_cast<std::uint32_t>(settings.run.epochs),
                   .parameters = static_cast<std::uint64_t>(spec_.graph->parameter_count()),
                   .epoch_samples = static_cast<std::uint64_t>(spec_.source.train->size()),
                   .epoch_position = spec_.leases->epoch_position(),
                   .batch = settings.data.batch,
                   .accumulate = settings.train.accumulate,
                   .slowdown = settings.cluster.slowdown};
  if (beginning.checkpoint) {
    setup.before = beginning.checkpoint->totals;
    experiment::complete(setup.before, beginning.directory->read_summary());
    setup.ledger_before = experiment::last_ledger(beginning.directory->metrics_file());
    setup.started.steps = setup.before.steps;
    setup.started.samples = setup.before.samples;
    setup.started.train_s = setup.before.train_s;
  }
  return setup;
}

/// The process of each site, for checking members' messages. A newcomer's process is added when it joins.
MemberMessageChecks Assembly::member_message_checks() const {
  const auto nodes = std::make_shared<SiteNodes>();
  for (const auto& handle : sites_) {
    if (!handle.there) continue;
    if (!handle.members.loaders.empty()) nodes->set(handle.number, handle.members.loaders.front().node());
    if (!handle.members.servers.empty()) nodes->set(handle.number, handle.members.servers.front().node());
  }
  const auto most_ahead =
      static_cast<std::uint64_t>(spec_.settings->data.batches_ahead(1));  // of a site with one worker
  return MemberMessageChecks(
      {.workers = spec_.workers,
       .servers = spec_.servers,
       .worker_sites = launch_.placement.worker_sites,
       .server_sites = launch_.placement.server_sites,
       .nodes = nodes,
       .most_leases = most_ahead + 1 + data::LeaseLookahead::kMost,
       .most_samples = static_cast<std::uint64_t>(std::ranges::max(spec_.settings->data.batch))});
}

/// Null: the worker is in this process.
const Node* Assembly::node_of(std::uint32_t worker) const {
  const auto& sites = launch_.placement.worker_sites;
  return sites.empty() ? nullptr : sites_[sites[worker]].node;
}

/// "worker 1 (node h2:4242)".
std::string Assembly::name_of(std::uint32_t worker) const {
  const auto* node = node_of(worker);
  return node ? fmt::format("worker {} (node {})", worker, node->name) : fmt::format("worker {}", worker);
}

RejoinManagerActor Assembly::spawn_rejoin_manager() {
  RejoinManagerSetup setup{.network = launch_.network,
                           .nodes = {},
                           .names = {},
                           .orders = {},
                           .sites = sites_.size(),
                           .address = addresses_.texts[0],
                           .exchanger = sites_[0].here->exchanger(),
                           .recorder = recorder_};
  for (const auto site : launch_.placement.worker_sites) {
    const auto* node = sites_[site].node;
    setup.nodes.push_back(node ? node->at : HostPort{});
    setup.names.push_back(node ? node->name : std::string());
    setup.orders.push_back(order_for(sites_[site], true));
  }
  return context_.system->spawn<caf::detached>(rejoin_manager, std::move(setup));
}

}  // namespace troupe::actors
