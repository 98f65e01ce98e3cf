#include "actors/deployment/site.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/protocol/proxy.hpp"
#include "actors/protocol/supervision.hpp"
#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/requests/interruptible.hpp"
#include "actors/server/server.hpp"
#include "actors/worker/decoder.hpp"
#include "actors/worker/loader.hpp"
#include "experiment/state/accumulation.hpp"
#include "experiment/state/local_rank.hpp"
#include "nn/device_names.hpp"
#include "nn/layout.hpp"
#include "nn/program/own_process.hpp"

namespace troupe::actors {

namespace {

nn::CompileOptions compile_options(const SiteContext& context, std::uint32_t worker) {
  auto options = context.spec->settings->compile_options(worker);
  options.arenas = context.memory;
  return options;
}

/// Whether reductions may run in the arenas of several sites: such arenas must be mappable from the start.
bool sums_in_arenas(const RunSpec& spec, const SiteSetup& site) {
  return !site.workers.empty() && spec.needs.group && !site.exchange.on_devices &&
         experiment::may_sum_in_arenas(spec.settings->exchange);
}

}  // namespace

core::Result<ReplicaFacts> probe(const SiteContext& context, const std::optional<nn::Plan>& plan) {
  if (const auto& graph = *context.spec->graph; graph.is_program())  // known without starting it
    return ReplicaFacts{std::make_shared<const nn::Layout>(nn::plain_layout(graph)), nn::Plan{}};
  auto options = compile_options(context, 0);
  if (plan) options.plan = &*plan;
  const auto replica = experiment::compile_worker(*context.backend, *context.spec->graph, options,
                                                  context.spec->settings->train.accumulate);
  if (!replica) return tl::unexpected(replica.error());
  return ReplicaFacts{(*replica)->layout(), (*replica)->plan()};
}

std::size_t most_floats(const RunSpec& spec, const nn::Layout& layout) {
  return std::max(layout.arena_floats(), nn::statistics_layout(*spec.graph).arena_floats());
}

Site::Site(const SiteContext& context, SiteSetup setup)
    : context_(context),
      setup_(std::move(setup)),
      pinning_(pin_site(*context.spec->settings, setup_.exchange, setup_.site, setup_.workers)),
      memory_(experiment::vector_memory(*context.backend, setup_.exchange, arenas_here(), *context.memory)),
      mappable_(experiment::mappable_memory(*context.backend, *context.spec->settings, setup_.exchange, setup_.site,
                                            memory_)),
      self_(*context.system) {}

Site::~Site() { halt(); }

/// All workers of a site that exchange in device memory have their arenas in one.
core::Allocator& Site::arenas_here() const {
  return context_.backend->arenas(setup_.workers.empty() ? nn::CompileOptions{} : options_of(setup_.workers.front()));
}

/// That of exchange.algorithm = "nccl"; null where nothing is summed so.
core::Result<std::shared_ptr<core::DeviceReduction>> Site::make_reduction() const {
  const auto& algorithm = exchange::info(exchange::algorithm_of(context_.spec->settings->exchange.algorithm));
  if (!algorithm.on_devices || !context_.spec->needs.group || setup_.workers.empty()) return {};
  auto made = context_.backend->reduction_for(*memory_.memory);
  if (!made)
    made.error().message =
        fmt::format("exchange.algorithm = \"{}\": {}; without it use \"auto\"", algorithm.name, made.error().message);
  return made;
}

core::Result<void> Site::open() {
  if (setup_.exchange.in_place()) return {};
  auto reduction = make_reduction();
  if (!reduction) return tl::unexpected(std::move(reduction.error()));
  exchanger_ = context_.system->spawn<caf::detached>(
      actors::exchanger, ExchangerSetup{.site = setup_.site,
                                        .options = setup_.options,
                                        .exchange = setup_.exchange,
                                        .most_floats = setup_.most_floats,
                                        .maps_arenas = sums_in_arenas(*context_.spec, setup_),
                                        .start = std::move(setup_.start),
                                        .kernels = &context_.backend->kernels_for(*memory_.memory),
                                        .memory = memory_.memory,
                                        .copier = memory_.copier,
                                        .checksum = memory_.checksum,
                                        .mappable = mappable_,
                                        .reduction = std::move(*reduction),
                                        .clock = context_.clock,
                                        .moves = moves_});
  core::Result<void> opened;
  self_->request(exchanger_, kEndpointDeadline, Prepare{})
      .receive(
          [&](const SiteAddress& address, const SiteMemory& memory) {
            address_ = address.text;
            arenas_ = memory.arenas;
            if (!address.error.empty()) opened = core::fail(address.code, address.error);
          },
          [&](const caf::error& error) {
            opened = core::fail(core::Errc::timeout, fmt::format("the exchanger of site {}: {}", setup_.site,
                                                                 context_.system->render(error)));
          });
  return opened;
}

void Site::meet(const SiteAddresses& addresses) {
  if (exchanger_) self_->send(exchanger_, addresses);
}

core::Result<StartPayload> Site::fetch_start() {
  core::Result<StartPayload> fetched = core::fail(core::Errc::internal, "no start state");
  auto asked = self_->request(exchanger_, kNoDeadline, StartOrder{});  // ends when nothing moves for kFetchSilence
  receive(
      asked, Movement{*moves_, kFetchSilence}, {}, [&](const StartPayload& payload) { fetched = payload; },
      [&](const caf::error& error) {
        fetched = core::fail(core::Errc::peer_lost, fmt::format("site {}: the start state did not arrive: {}",
                                                                setup_.site, context_.system->render(error)));
      });
  return fetched;
}

core::Result<void> Site::prepare(const std::shared_ptr<const StartState>& start) {
  if (members_.workers.empty())
    if (auto compiled = compile(); !compiled) return compiled;
  if (auto loaded = load(start); !loaded) return loaded;
  if (auto cut = cut_shards(*start); !cut) return cut;
  if (!setup_.workers.empty())
    decoders_ = spawn_decoders(
        *context_.system, {.builder = context_.spec->source.train, .cpus = pinning_.loaders, .clock = context_.clock},
        context_.spec->settings->data.decode_threads);
  for (const auto w : setup_.workers) members_.loaders.push_back(spawn_loader(w));
  return {};
}

/// A loader that decodes on cores of its own has a thread of its own.
LoaderActor Site::spawn_loader(std::uint32_t w) const {
  const auto& settings = *context_.spec->settings;
  LoaderSetup setup{.worker = w,
                    .builder = context_.spec->source.train,
                    .batch = settings.batch(w),
                    .batches_ahead = settings.data.batches_ahead(setup_.workers.size()),
                    .decoders = decoders_,
                    .loaders = setup_.workers.size(),
                    .cpus = decoders_.empty() ? pinning_.loaders : core::Cpus(),
                    .clock = context_.clock,
                    .form = batch_form(context_.backend->capabilities(), *context_.spec->source.train)};
  if (setup.cpus.empty()) return context_.system->spawn(loader, std::move(setup));
  return context_.system->spawn<caf::detached>(loader, std::move(setup));
}

nn::CompileOptions Site::options_of(std::uint32_t w) const {
  auto compile = compile_options(context_, w);
  compile.local_rank = experiment::local_rank(*context_.spec->settings, setup_.exchange, w);
  return compile;
}

WorkerSetup Site::worker_setup(std::size_t index) const {
  const auto w = setup_.workers[index];
  const auto& spec = *context_.spec;
  const auto& settings = *spec.settings;
  auto compile = options_of(w);
  core::Allocator* const loans = arenas_ ? arenas_.get() : memory_.memory;
  auto& arenas = context_.backend->arenas(compile);
  const bool own = arenas.space() == core::MemorySpace::device || context_.backend->capabilities().own_arenas;
  compile.arenas = own && !mappable_.sharing ? &arenas : loans;  // mappable: more memory of the same device
  compile.gradients = !spec.needs.local_steps;
  return {.self = w,
          .workers = spec.workers,
          .seed = compile.seed,
          .graph = spec.graph,
          .backend = context_.backend,
          .compile = compile,
          .loans = loans,
          .arenas = arenas_,
          .plan = setup_.plan,
          .cpus = pinning_.workers.empty() ? core::Cpus() : pinning_.workers[index],
          .strategy = spec.strategy,
          .train = settings.train,
          .total_epochs = static_cast<double>(settings.run.epochs),
          .servers = spec.servers,
          .journal = settings.journal.keep,
          .hash_every = static_cast<strategies::Step>(settings.run.hash_every),
          .slowdown = settings.slowdown(w),
          .synthetic_step = std::chrono::duration_cast<core::Duration>(
              std::chrono::duration<double, std::milli>(settings.cluster.synthetic_step_ms)),
          .clock = context_.clock,
          .exchange_deadline =
              std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(settings.exchange.deadline_s)),
          .bytes = batch_form(context_.backend->capabilities(), *spec.source.train).bytes};
}

core::Result<void> Site::compile() {
  const auto& workers = setup_.workers;
  if (workers.empty() || setup_.plan || !compile_options(context_, workers.front()).measure)
    return compile(0, workers.size());
  // The first worker of each model of device measures while nothing else computes. The others take its choices: two measurements may differ,
  // and plan.json has one of each model.
  std::vector<std::string> measured;
  std::size_t next = 0;
  for (std::size_t k = 0; k < workers.size(); ++k) {
    auto model = context_.backend->device_model(worker_setup(k).compile);
    if (std::ranges::find(measured, model) != measured.end()) continue;
    measured.push_back(std::move(model));
    if (auto before = compile(next, k); !before) return before;
    if (auto first = compile(k, k + 1, true); !first) return first;
    next = k + 1;
  }
  return compile(next, workers.size());
}

core::Result<void> Site::compile(std::size_t first, std::size_t end, bool measures) {
  for (std::size_t k = first; k < end; ++k) {
    auto setup = worker_setup(k);
    if (measures) setup.plan.reset();
    members_.workers.push_back(context_.system->spawn<caf::detached>(worker, std::move(setup)));
  }
  std::vector<decltype(self_->request(members_.workers[0], kCompileDeadline, Prepare{}))> asked;
  for (std::size_t k = first; k < end; ++k)
    asked.push_back(self_->request(members_.workers[k], kCompileDeadline, Prepare{}));
  core::Result<void> result;
  for (std::size_t k = first; k < end; ++k) {
    const auto w = setup_.workers[k];
    asked[k - first].receive(
        [&](const Prepared& prepared, const ReplicaFacts& facts) {
          if (!prepared.error.empty()) {
            result = core::fail(prepared.code, prepared.error);
          } else if (setup_.fingerprint.value_or(prepared.fingerprint) != prepared.fingerprint) {
            result =
                core::fail(core::Errc::config,
                           fmt::format("worker {} lays its parameters out otherwise than worker 0 and cannot exchange "
                                       "them in place: use one batch size for all workers, and hosts of one kind",
                                       w));
          } else {
            setup_.fingerprint = prepared.fingerprint;
            layout_ = facts.layout;
            setup_.plan = nn::joined(setup_.plan, facts.plan);
          }
        },
        [&](const caf::error& error) {
          result = core::fail(core::Errc::timeout,
                              fmt::format("worker {} did not get ready: {}", w, context_.system->render(error)));
        });
  }
  return result;
}

/// All replicas load at the same time, and have loaded before measuring starts.
core::Result<void> Site::load(const std::shared_ptr<const StartState>& start) {
  std::vector<decltype(self_->request(members_.workers[0], kCompileDeadline, ReplicaStart{}))> asked;
  for (const auto& worker : members_.workers)
    asked.push_back(self_->request(worker, kCompileDeadline, ReplicaStart{start}));
  core::Result<void> result;
  for (std::size_t k = 0; k < asked.size(); ++k) {
    asked[k].receive([](const ReplicaLoaded&) {},
                     [&](const caf::error& error) {
                       const bool told = error == caf::sec::runtime_error;
                       const auto refused = context_.spec->graph->is_program() ? core::Errc::program : core::Errc::io;
                       result = core::fail(told ? refused : core::Errc::internal,
                                           fmt::format("worker {}: the start state was not loaded: {}",
                                                       setup_.workers[k], reason_of(*context_.system, error)));
                     });
  }
  return result;
}

core::Result<void> Site::cut_shards(const StartState& start) {
  if (!layout_) {
    auto facts = probe(context_, setup_.plan);
    if (!facts) return tl::unexpected(facts.error());
    layout_ = facts->layout;
  }
  if (setup_.servers.empty()) return {};
  const auto& spec = *context_.spec;
  auto& kernels = context_.backend->kernels_for(*memory_.memory);
  auto shards =
      experiment::cut_shards(start, *layout_, spec.servers, spec.needs.server_states, kernels, *memory_.memory);
  if (!shards) return tl::unexpected(shards.error());
  for (const auto s : setup_.servers) {
    members_.servers.push_back(
        context_.system->spawn(server, ServerSetup{.self = s,
                                                   .workers = spec.workers,
                                                   .strategy = spec.strategy,
                                                   .kernels = &kernels,
                                                   .scratch = memory_.memory,
                                                   .memory = std::make_shared<ShardMemory>(std::move((*shards)[s])),
                                                   .version = start.center_version,
                                                   .journal = spec.settings->journal.keep,
                                                   .max_bad_updates = spec.settings->train.max_bad_updates,
                                                   .clock = context_.clock}));
  }
  return {};
}

ActorDirectory Site::begin(ActorDirectory actors) {
  const auto here = [](const std::vector<std::uint32_t>& list, std::uint32_t member) {
    const auto found = std::ranges::find(list, member);
    return found == list.end() ? list.size() : static_cast<std::size_t>(found - list.begin());
  };
  actors.exchanger = exchanger_;
  actors.site = setup_.site;
  auto watched = actors;  // for supervisors: its proxies end with the members
  for (std::uint32_t w = 0; w < actors.workers.size(); ++w) {
    if (const auto k = here(setup_.workers, w); k < setup_.workers.size()) {
      actors.workers[w] = watched.workers[w] = members_.workers[k];
      actors.loaders[w] = watched.loaders[w] = members_.loaders[k];
    } else {
      actors.workers[w] = proxy(w, {});
      if (watched.workers[w]) watched.workers[w] = proxy(w, watched.workers[w]);
    }
  }
  for (std::uint32_t s = 0; s < actors.servers.size(); ++s) {
    if (const auto k = here(setup_.servers, s); k < setup_.servers.size()) {
      actors.servers[s] = watched.servers[s] = members_.servers[k];
    } else {
      actors.servers[s] = context_.system->spawn(server_proxy, s, actors.servers[s], exchanger_);
      watched.servers[s] = actors.servers[s];
      servers_elsewhere_.push_back(actors.servers[s]);
    }
  }
  if (exchanger_ && layout_)
    self_->send(exchanger_,
                ArenaPacking{.packing = setup_.exchange.packed ? experiment::packing_of(*layout_) : nullptr,
                             .arena_floats = layout_->arena_floats(),
                             .statistics_floats = nn::statistics_layout(*context_.spec->graph).arena_floats(),
                             .epochs = static_cast<double>(context_.spec->settings->run.epochs),
                             .peer_messages = context_.spec->needs.peers});
  // A member must have the directory before it gets messages: servers first, and calls of other sites last (SiteBegun).
  for (const auto& server : members_.servers) self_->send(server, actors);
  if (exchanger_) self_->send(exchanger_, actors);
  for (const auto& worker : members_.workers) self_->send(worker, actors);
  for (const auto& loader : members_.loaders) self_->send(loader, actors);
  if (exchanger_) self_->send(exchanger_, SiteBegun{});
  return watched;
}

WorkerActor Site::proxy(std::uint32_t worker, const WorkerActor& member) {
  workers_elsewhere_.push_back(context_.system->spawn(worker_proxy, worker, member, exchanger_));
  return workers_elsewhere_.back();
}

void Site::dismiss(bool in_order) {
  const auto dismiss = [&](const auto& actor) {
    if (!actor) return;
    self_->monitor(actor);
    self_->send(actor, Halt{in_order});
    ++ending_;
  };
  for (const auto& loader : members_.loaders) dismiss(loader);
  for (const auto& decoder : decoders_) {
    self_->monitor(decoder);
    self_->send_exit(decoder, caf::exit_reason::user_shutdown);
    ++ending_;
  }
  for (const auto& worker : members_.workers) dismiss(worker);
  for (const auto& server : members_.servers) dismiss(server);
  dismiss(exchanger_);
  for (const auto& actor : workers_elsewhere_) self_->send_exit(actor, caf::exit_reason::user_shutdown);
  for (const auto& actor : servers_elsewhere_) self_->send_exit(actor, caf::exit_reason::user_shutdown);
  members_ = {};
  decoders_.clear();
  exchanger_ = ExchangerActor{};
  workers_elsewhere_.clear();
  servers_elsewhere_.clear();
  longest_end_ = kHaltDeadline + nn::patience_at_end(context_.spec->settings->model, in_order);
}

bool Site::halt(bool in_order) {
  dismiss(in_order);
  return await_ends(self_, std::exchange(ending_, 0), longest_end_, [this](const caf::down_msg& message) {
    if (program_failure_.empty()) program_failure_ = program_failure_of(message.reason).value_or("");
  });
}

}  // namespace troupe::actors
