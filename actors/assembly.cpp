#include "actors/assembly.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "actors/evaluator.hpp"
#include "actors/loader.hpp"
#include "actors/server.hpp"
#include "actors/worker.hpp"
#include "nn/hash.hpp"
#include "nn/layout.hpp"

namespace troupe::actors {

namespace {

// Compiling a large model takes a while; ending takes at most the step that is under way.
constexpr auto kPrepareDeadline = std::chrono::minutes(10);
constexpr auto kFinishDeadline = std::chrono::minutes(10);
constexpr auto kHaltDeadline = std::chrono::seconds(30);

// Large enough to be efficient, small enough that a workspace for it is no burden.
constexpr std::int64_t kEvaluationBatch = 100;

}  // namespace

SystemConfig::SystemConfig() {
  add_message_types<caf::id_block::troupe>();
  set("scheduler.policy", caf::atom("sharing"));
  set("scheduler.max-threads", std::max<std::size_t>(2, std::thread::hardware_concurrency() / 2));
}

Assembly::Assembly(caf::actor_system& system, const Blueprint& plan, nn::Backend& backend, core::Allocator& memory,
                   const core::Clock& clock)
    : system_(system), plan_(plan), backend_(backend), clock_(clock), memory_(memory), self_(system) {}

core::Result<CoordinatorActor> Assembly::begin(const Beginning& beginning, const ConsoleOptions& console) {
  const auto* checkpoint = beginning.checkpoint.get();
  const auto start = std::make_shared<const StartState>(experiment::start_state(plan_, checkpoint));
  const auto fail_home = [this](const core::Error& error) -> core::Result<CoordinatorActor> {
    halt();
    return tl::unexpected(error);
  };
  if (auto spawned = spawn_workers(beginning, start); !spawned) return fail_home(spawned.error());
  if (auto written = beginning.directory->write_plan(made_plan_.json); !written) return fail_home(written.error());
  if (auto spawned = spawn_servers(*start); !spawned) return fail_home(spawned.error());
  spawn_loaders();

  const auto& settings = *plan_.settings;
  int threads = 0;
  for (std::uint32_t worker = 0; worker < plan_.workers; ++worker) threads += settings.threads(worker);
  threads = std::clamp(threads, 1, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  company_.evaluator = system_.spawn<caf::detached>(
      evaluator, EvaluatorSetup{plan_.graph,
                                &backend_,
                                {.batch = std::min(kEvaluationBatch, plan_.source.test->size()),
                                 .threads = threads,
                                 .arenas = &memory_,
                                 .training = false},
                                plan_.source.test});
  auto notes = beginning.notes;
  notes.insert(notes.end(), start->notes.begin(), start->notes.end());
  company_.recorder = system_.spawn<caf::detached>(
      recorder, RecorderSetup{beginning.directory, beginning.checkpoints, console, std::move(notes), settings.journal,
                              beginning.checkpoint_file, settings.run.tensorboard, &clock_, settings.config});

  CoordinatorSetup setup{.settings = plan_.settings,
                         .graph = plan_.graph,
                         .layout = layout_,
                         .plan_hash = nn::hash64(std::as_bytes(std::span(made_plan_.json))),
                         .needs = plan_.needs,
                         .state_slots = experiment::state_slots(plan_),
                         .book = plan_.book,
                         .started = {},
                         .before = {},
                         .resumed = checkpoint != nullptr,
                         .memory = &memory_,
                         .clock = &clock_};
  setup.started = {.name = settings.run.name,
                   .directory = beginning.directory->path(),
                   .strategy = settings.strategy,
                   .model = plan_.graph->name(),
                   .dataset = settings.data.name,
                   .workers = plan_.workers,
                   .servers = plan_.servers,
                   .epochs = static_cast<std::uint32_t>(settings.run.epochs),
                   .parameters = static_cast<std::uint64_t>(plan_.graph->parameter_count()),
                   .epoch_samples = static_cast<std::uint64_t>(plan_.source.train->size()),
                   .epoch_position = plan_.book->epoch_position()};
  if (checkpoint) setup.before = checkpoint->totals;
  company_.coordinator = system_.spawn(coordinator, std::move(setup));

  if (auto opened = open_sites(); !opened) return fail_home(opened.error());
  // Whoever may be spoken to first hears of the company first; the coordinator, who sets all going, last.
  for (std::size_t s = 0; s < company_.servers.size(); ++s) self_->send(company_.servers[s], sites_->server_view(s));
  for (std::size_t w = 0; w < company_.workers.size(); ++w) self_->send(company_.workers[w], sites_->worker_view(w));
  for (std::size_t w = 0; w < company_.loaders.size(); ++w) self_->send(company_.loaders[w], sites_->worker_view(w));
  self_->send(company_.coordinator, sites_->coordinator_view());
  return company_.coordinator;
}

core::Result<void> Assembly::spawn_workers(const Beginning& beginning, const std::shared_ptr<const StartState>& start) {
  const auto& settings = *plan_.settings;
  for (std::uint32_t w = 0; w < plan_.workers; ++w) {
    const nn::CompileOptions compile{.batch = settings.batch(w),
                                     .threads = settings.threads(w),
                                     .seed = static_cast<std::uint64_t>(settings.run.seed),
                                     .arenas = &memory_};
    WorkerSetup setup{.self = w,
                      .workers = plan_.workers,
                      .seed = compile.seed,
                      .graph = plan_.graph,
                      .backend = &backend_,
                      .compile = compile,
                      .plan = beginning.plan,
                      .strategy = plan_.strategy,
                      .train = settings.train,
                      .total_epochs = static_cast<double>(settings.run.epochs),
                      .start = start,
                      .servers = plan_.servers,
                      .journal = settings.journal.keep,
                      .slowdown = settings.slowdown(w),
                      .synthetic_step = std::chrono::duration_cast<core::Duration>(
                          std::chrono::duration<double, std::milli>(settings.cluster.synthetic_step_ms)),
                      .clock = &clock_,
                      .exchange_deadline = std::chrono::duration_cast<core::Duration>(
                          std::chrono::duration<double>(settings.exchange.deadline_s))};
    company_.workers.push_back(system_.spawn<caf::detached>(worker, std::move(setup)));
  }
  std::vector<decltype(self_->request(company_.workers[0], kPrepareDeadline, Prepare{}))> asked;
  for (const auto& worker : company_.workers) asked.push_back(self_->request(worker, kPrepareDeadline, Prepare{}));
  core::Result<void> result;
  for (std::size_t w = 0; w < asked.size(); ++w) {
    asked[w].receive(
        [&](const Prepared& prepared, const ReplicaFacts& facts) {
          if (!prepared.error.empty()) {
            result = core::fail(prepared.code, prepared.error);
          } else if (w > 0 && layout_ && facts.layout->fingerprint() != layout_->fingerprint()) {
            result =
                core::fail(core::Errc::config,
                           fmt::format("worker {} lays its parameters out otherwise than worker 0 and cannot exchange "
                                       "them in place: use one batch size for all workers",
                                       w));
          } else {
            layout_ = facts.layout;
            if (w == 0) made_plan_ = facts.plan;
          }
        },
        [&](const caf::error& error) {
          result =
              core::fail(core::Errc::timeout, fmt::format("worker {} did not get ready: {}", w, system_.render(error)));
        });
  }
  return result;
}

core::Result<void> Assembly::spawn_servers(const StartState& start) {
  auto shards =
      experiment::cut_shards(start, *layout_, plan_.servers, plan_.needs.server_states, backend_.kernels(), memory_);
  if (!shards) return tl::unexpected(shards.error());
  for (std::uint32_t s = 0; s < plan_.servers; ++s) {
    company_.servers.push_back(
        system_.spawn(server, ServerSetup{.self = s,
                                          .workers = plan_.workers,
                                          .strategy = plan_.strategy,
                                          .kernels = &backend_.kernels(),
                                          .memory = std::make_shared<ShardMemory>(std::move((*shards)[s])),
                                          .version = start.center_version,
                                          .journal = plan_.settings->journal.keep,
                                          .clock = &clock_}));
  }
  return {};
}

void Assembly::spawn_loaders() {
  const auto& data = plan_.settings->data;
  for (std::uint32_t w = 0; w < plan_.workers; ++w) {
    company_.loaders.push_back(system_.spawn(loader, LoaderSetup{w, plan_.source.train, plan_.settings->batch(w),
                                                                 data.prefetch, data.decode_threads, &clock_}));
  }
}

core::Result<void> Assembly::open_sites() {
  const auto& exchange = plan_.settings->exchange;
  sites_ = std::make_unique<Sites>(system_, company_);
  if (exchange.endpoint == "auto") return {};
  return sites_->open(exchange, std::max(layout_->arena_floats(), nn::statistics_layout(*plan_.graph).arena_floats()),
                      backend_.kernels(), memory_, clock_);
}

core::Result<void> Assembly::finish(const RunEnd& end) {
  core::Result<void> result;
  self_->request(company_.recorder, kFinishDeadline, Finish{}, end)
      .receive(
          [&](const Finished& finished) {
            if (!finished.error.empty()) result = core::fail(core::Errc::io, finished.error);
          },
          [&](const caf::error& error) {
            result = core::fail(core::Errc::timeout, "recorder: " + system_.render(error));
          });
  halt();
  return result;
}

void Assembly::halt() {
  std::size_t alive = 0;
  const auto dismiss = [&](const auto& actor) {
    if (!actor) return;
    self_->monitor(actor);
    self_->send(actor, Halt{});
    ++alive;
  };
  for (const auto& loader : company_.loaders) dismiss(loader);
  for (const auto& worker : company_.workers) dismiss(worker);
  for (const auto& server : company_.servers) dismiss(server);
  dismiss(company_.evaluator);
  if (sites_)
    for (const auto& exchanger : sites_->exchangers()) dismiss(exchanger);
  if (company_.coordinator) self_->send_exit(company_.coordinator, caf::exit_reason::user_shutdown);
  if (company_.recorder) self_->send_exit(company_.recorder, caf::exit_reason::user_shutdown);
  bool late = false;
  while (alive > 0 && !late) {
    self_->receive([&](const caf::down_msg&) { --alive; }, caf::after(kHaltDeadline) >> [&] { late = true; });
  }
  sites_.reset();
  company_ = {};
}

}  // namespace troupe::actors
