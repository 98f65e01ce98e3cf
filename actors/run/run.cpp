#include "actors/run/run.hpp"

#include <ctime>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/requests/interruptible.hpp"
#include "actors/run/assembly.hpp"
#include "actors/run/missing_summary.hpp"
#include "core/text/plural.hpp"
#include "core/text/shell_word.hpp"
#include "experiment/automatic.hpp"
#include "experiment/directory/directory_lock.hpp"
#include "experiment/directory/resumed_options.hpp"
#include "experiment/evaluation.hpp"
#include "experiment/state/accumulation.hpp"
#include "experiment/state/initial_model.hpp"
#include "experiment/state/resume_notes.hpp"
#include "experiment/state/state_checks.hpp"
#include "nn/checkpoint/tensors.hpp"
#include "nn/hash.hpp"

namespace troupe::actors {

namespace {

RunEnd failed(const core::Error& error) { return {.summary = {}, .failed = true, .error = error}; }

/// Holds the run directory's lock: no other process writes there.
class RunLock {
 public:
  core::Result<void> take(const RunDirectory& directory) {
    auto taken = experiment::DirectoryLock::take(directory.path());
    if (!taken) return tl::unexpected(std::move(taken.error()));
    lock_.emplace(std::move(*taken));
    return {};
  }
  /// A warning for the user if locking is not possible there; else none.
  [[nodiscard]] std::vector<Note> notes() const {
    if (!lock_ || lock_->missing().empty()) return {};
    return {{Note::Level::warning, lock_->missing()}};
  }

 private:
  std::optional<experiment::DirectoryLock> lock_;
};

/// Loads the newest valid checkpoint; adds a note for each newer invalid one.
core::Result<void> find_newest(nn::CheckpointStore& store, const RunSpec& spec, Beginning& beginning) {
  auto& notes = beginning.notes;
  auto found = store.load_newest();
  if (!found && found.error().code == core::Errc::config)
    return core::fail(core::Errc::config,
                      fmt::format("{}: the run ended before it saved one; start it again, as with "
                                  "`troupe {} {}`",
                                  found.error().message, spec.graph->is_program() ? "launch --config" : "train",
                                  core::shell_word(beginning.directory->config_file())));
  if (!found) return tl::unexpected(found.error());
  for (const auto& refused : found->refused)
    notes.push_back({Note::Level::warning, refused + "; going back one generation"});
  auto checkpoint = experiment::load(found->checkpoint.file, spec.graph);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  if (checkpoint->strategy != spec.settings->strategy) {
    notes.push_back(
        {Note::Level::warning, fmt::format("the checkpoint was made by strategy {}: {} begins from its model",
                                           checkpoint->strategy, spec.settings->strategy)});
  }
  notes.push_back({Note::Level::info, fmt::format("resuming from {}", found->path)});
  beginning.checkpoint = std::make_shared<const Checkpoint>(std::move(*checkpoint));
  beginning.checkpoint_file = found->path;
  return {};
}

/// Locks the directory of a resumed run, before any file in it is read. A new run's directory is made later.
core::Result<void> lock_run(const RunRequest& request, RunLock& lock) {
  if (request.resume.empty()) return {};
  const auto directory = RunDirectory::open(request.resume);
  if (!directory) return tl::unexpected(directory.error());
  return lock.take(*directory).and_then([&] { return directory->remove_temporaries(); });
}

/// REQUIRES the directory's lock.
core::Result<void> open_store(const RunRequest& request, core::Result<RunDirectory> directory, Beginning& beginning) {
  if (!directory) return tl::unexpected(directory.error());
  beginning.directory = std::make_shared<const RunDirectory>(std::move(*directory));
  beginning.disk = std::make_shared<nn::MeteredFiles>(nn::system_files());
  auto store = nn::CheckpointStore::open(beginning.directory->checkpoints(), request.settings.run.keep_checkpoints,
                                         *beginning.disk);
  if (!store) return tl::unexpected(store.error());
  beginning.checkpoints = std::make_shared<nn::CheckpointStore>(std::move(*store));
  return {};
}

/// What this run's devices can go by of the choices before: after a change of devices perhaps nothing.
std::optional<nn::Plan> usable_part(const RunRequest& request, const nn::Plan& plan, nn::Backend& backend,
                                    Beginning& beginning) {
  const auto& settings = request.settings;
  const auto backends = settings.backends();
  if (backends.size() > 1) return plan;
  auto part = nn::part_for(plan, backends.front());
  // Other processes know the models of their own devices.
  const auto model = request.nodes.empty() ? backend.device_model(settings.compile_options(0)) : std::string();
  if (part && !nn::part_for(plan, backends.front(), model)) part.reset();
  if (!part)
    beginning.notes.push_back(
        {Note::Level::info, fmt::format("{}/plan.json was made for other devices: implementations are chosen for {}; "
                                        "the last bits differ from those before",
                                        request.resume, fmt::join(request.settings.devices(), ", "))});
  return part;
}

/// Reads plan.json, except with `replan`.
core::Result<void> read_plan(const RunRequest& request, nn::Backend& backend, Beginning& beginning) {
  if (request.replan) {
    beginning.notes.push_back(
        {Note::Level::warning, fmt::format("{}/plan.json is ignored (--replan): implementations are chosen again; "
                                           "the last bits may differ",
                                           request.resume)});
    return {};
  }
  auto made = beginning.directory->read_plan();
  if (!made) return tl::unexpected(made.error());
  if (!*made) return {};
  auto chosen = experiment::parse_plan(**made, request.resume + "/plan.json");
  if (!chosen) return core::fail(chosen.error().code, chosen.error().message + ": resume with --replan to choose anew");
  if (request.settings.data.batch.size() == 1)
    beginning.plan = usable_part(request, chosen->backend, backend, beginning);
  beginning.exchange = std::move(chosen->exchange);
  return {};
}

/// Adds advice: a plan from another machine may need features that this machine lacks.
core::Error with_remedy(core::Error error, const RunRequest& request, const Beginning& beginning) {
  if (beginning.plan && error.code == core::Errc::config && error.message.find(nn::kPlanRefused) != std::string::npos)
    error.message += fmt::format(
        ": {}/plan.json was made on another machine; resume with --replan to choose anew: numbers then differ in "
        "their last bits",
        request.resume);
  return error;
}

/// A new run with run.init begins as if it were resumed from a checkpoint of step 0, which open_directory() saves.
core::Result<Beginning> begin_new(const RunSpec& spec) {
  if (auto checked = experiment::check_state(spec); !checked) return tl::unexpected(checked.error());
  auto initial = experiment::initial_model(spec);
  if (!initial) return tl::unexpected(std::move(initial.error()));
  Beginning beginning;
  beginning.checkpoint = std::move(initial->checkpoint);
  if (!initial->note.empty()) beginning.notes.push_back({Note::Level::info, std::move(initial->note)});
  return beginning;
}

/// The state of a resumed run; for a new run that of run.init, or an empty Beginning.
core::Result<Beginning> find_start(const RunRequest& request, const RunSpec& spec, nn::Backend& backend) {
  if (request.resume.empty()) return begin_new(spec);
  Beginning beginning;
  if (const auto where = spec.settings->config.where("run.init"); where == "--set")
    return core::fail(core::Errc::config,
                      fmt::format("{}: run.init is the beginning of a new run, and {} goes on from its own checkpoint: "
                                  "leave it out, or train without --resume",
                                  where, request.resume));
  if (auto opened = open_store(request, RunDirectory::open(request.resume), beginning); !opened)
    return tl::unexpected(opened.error());
  if (auto read = read_plan(request, backend, beginning); !read) return tl::unexpected(read.error());
  if (auto found = find_newest(*beginning.checkpoints, spec, beginning); !found) return tl::unexpected(found.error());
  if (auto restored = spec.leases->restore(beginning.checkpoint->leases); !restored)
    return tl::unexpected(restored.error());
  beginning.complete = spec.leases->finished();
  const auto recorded = beginning.directory->read_config(experiment::schema(), {});
  if (!recorded) return tl::unexpected(recorded.error());
  if (auto note = experiment::other_strategy_note(spec.settings->config, *recorded); !note.empty())
    beginning.notes.push_back({Note::Level::info, std::move(note)});
  for (auto& note : experiment::notes_on_resume(spec, *beginning.checkpoint, *recorded))
    beginning.notes.push_back(std::move(note));
  if (experiment::decides_on_another_split(spec, *beginning.checkpoint, *recorded)) {
    auto changed = *beginning.checkpoint;
    changed.totals.watched = coordination::on_another_split(changed.totals.watched);
    changed.totals.validation = RunTotals().validation;
    beginning.checkpoint = std::make_shared<const Checkpoint>(std::move(changed));
  }
  return beginning;
}

/// Called when all members are ready: a run that fails before that leaves no directory.
core::Result<void> open_directory(const RunRequest& request, const RunSpec& spec, RunLock& lock, Beginning& beginning) {
  if (request.resume.empty()) {
    // No process opens a run directory without config.toml: its lock is free.
    auto made = RunDirectory::create(request.settings.run.dir, request.settings.run.name, std::time(nullptr))
                    .and_then([&](RunDirectory directory) {
                      return lock.take(directory).map([&] { return std::move(directory); });
                    });
    if (auto opened = open_store(request, std::move(made), beginning); !opened) return opened;
    if (beginning.checkpoint) {
      auto saved = experiment::save(*beginning.checkpoints, *beginning.checkpoint);
      if (!saved) return tl::unexpected(std::move(saved.error()));
      beginning.checkpoint_file = std::move(*saved);
    }
  }
  if (auto written = beginning.directory->write_config(request.settings.config); !written) return written;
  beginning.notes.insert(beginning.notes.begin(), request.notes.begin(), request.notes.end());
  for (auto& note : experiment::notes_on_derived(request.settings.config)) beginning.notes.push_back(std::move(note));
  for (auto& note : lock.notes()) beginning.notes.push_back(std::move(note));
  for (auto& note : experiment::notes_on(spec)) beginning.notes.push_back(std::move(note));
  return {};
}

core::Result<void> check_least(std::size_t least, std::size_t nodes, const RunSpec& spec) {
  const auto& settings = *spec.settings;
  if (least > nodes)
    return core::fail(core::Errc::usage,
                      fmt::format("--min-nodes: {} of {} nodes; give as many or fewer", least, nodes));
  if (least < nodes && !spec.needs.takes_newcomers())
    return core::fail(
        core::Errc::config,
        fmt::format(
            "{}: strategy.name = \"{}\" does not accept workers during a run: leave --min-nodes out, or use one "
            "that does, like \"easgd\"",
            settings.config.where("strategy.name"), settings.strategy));
  if (least < nodes && settings.cluster.server_placement == "colocated")
    return core::fail(
        core::Errc::config,
        fmt::format("{}: cluster.server_placement = \"colocated\" needs all nodes: each has a part of the "
                    "centre; leave --min-nodes out, or use \"dedicated\"",
                    settings.config.where("cluster.server_placement")));
  return {};
}

core::Result<Launch> launch_on_nodes(caf::actor_system& system, const RunRequest& request, RunSpec& spec,
                                     const std::stop_token& stop) {
  auto network = Network::create(system, request.network);
  if (!network) return tl::unexpected(network.error());
  const auto least = request.min_nodes > 0 ? request.min_nodes : request.nodes.size();
  if (auto fits = check_least(least, request.nodes.size(), spec); !fits) return tl::unexpected(fits.error());
  auto nodes = connect_nodes(system, **network, request.nodes, least, request.version, stop);
  if (!nodes) return tl::unexpected(nodes.error());
  auto settings = *spec.settings;
  if (request.workers_per_rank > 0)
    if (auto sums = check_library_sum(settings, spec.needs, request.workers_per_rank); !sums)
      return tl::unexpected(sums.error());
  const auto& tls = request.network.tls;
  auto launch =
      request.workers_per_rank > 0
          ? launch_in_job(std::move(*nodes), request.workers_per_rank, settings, spec.servers, tls, request.version)
          : launch_on(std::move(*nodes), settings, spec.servers, tls, request.version);
  if (launch) {
    launch->network = std::move(*network);
    launch->launcher = request.launcher;
    launch->resume_options = request.resume_options;
  }
  spec.settings = std::make_shared<const Settings>(std::move(settings));
  return launch;
}

/// What outlives the actors of a run.
struct Surroundings {
  const RunRequest& request;
  nn::Backend& backend;
  RunLock& lock;  // actors may write until they end
  RunSpec& spec;
  core::SteadyClock clock{};
  core::HostAllocator memory{};
};

RunEnd train_in(caf::actor_system& system, Surroundings& around, std::stop_token stop) {
  auto& [request, backend, lock, spec, clock, memory] = around;
  const bool alone = request.nodes.empty();
  auto beginning = find_start(request, spec, backend);
  if (!beginning) return failed(beginning.error());
  const auto show = [&] {
    if (request.on_console) request.on_console();
  };
  if (beginning->complete) show();
  if (beginning->complete)  // needs no nodes
    return write_missing_summary(spec, *beginning->directory, *beginning->checkpoint, backend, request.console);
  auto launch = alone ? core::Result<Launch>(launch_here(spec)) : launch_on_nodes(system, request, spec, stop);
  if (!launch) return failed(launch.error());
  // A run in one process is ready at once, and always stops with a checkpoint.
  const auto ready = alone ? std::stop_token() : stop;
  if (ready.stop_requested()) return failed(core::interrupted_early());
  Assembly assembly({&system, &spec, &backend, &memory, &clock}, std::move(*launch), ready);
  if (auto made = assembly.make_sites(*beginning); !made) return failed(with_remedy(made.error(), request, *beginning));
  if (ready.stop_requested()) return failed(core::interrupted_early());
  if (request.on_begin) request.on_begin();
  if (auto opened = open_directory(request, spec, lock, *beginning); !opened) return failed(opened.error());
  show();
  auto coordinator = assembly.begin(*beginning, request.console);
  if (!coordinator) return failed(coordinator.error());
  beginning->checkpoint.reset();  // its vectors are as large as the model

  if (request.on_directory) request.on_directory(beginning->directory->path());
  if (request.on_save_action) request.on_save_action([&] { caf::anon_send(*coordinator, SaveRequest{}); });
  RunEnd end;
  {
    const std::stop_callback on_stop(std::move(stop), [&] { caf::anon_send(*coordinator, Interrupt{}); });
    end = await_end(system, *coordinator);
  }
  if (request.on_save_action) request.on_save_action(nullptr);
  const bool in_order = !end.failed || end.error.code == core::Errc::interrupted;
  const auto then = [&](const core::Result<void>& done) {
    if (done || end.failed) return;
    end.failed = true;
    end.error = done.error();
  };
  then(assembly.finish(end));
  if (request.on_console_end) request.on_console_end();
  then(assembly.end_actors(in_order));
  return end;
}

}  // namespace

RunEnd run_training(const RunRequest& request, nn::Backend& backend, std::stop_token stop) {
  RunLock lock;
  if (auto locked = lock_run(request, lock); !locked) return failed(locked.error());
  auto spec = experiment::build_run_spec(request.settings, true);
  if (!spec) return failed(spec.error());

  Surroundings around{request, backend, lock, *spec};
  const auto config =
      request.nodes.empty() ? std::make_unique<SystemConfig>() : std::make_unique<NetworkConfig>(request.network);
  RunEnd end;
  {
    caf::actor_system system(*config);
    const ActorsWait last(system, [&] {
      if (request.on_late_actors) request.on_late_actors(end);
    });
    end = train_in(system, around, std::move(stop));
  }
  return end;
}

core::Result<CheckedRun> check_run(const Settings& settings, nn::Backend& backend, bool open_data) {
  auto spec = experiment::build_run_spec(settings, open_data);
  if (!spec) return tl::unexpected(spec.error());
  if (auto divided = experiment::check_leases(*spec); !divided) return tl::unexpected(divided.error());
  if (auto checked = experiment::check_state(*spec); !checked) return tl::unexpected(checked.error());
  if (auto sums =
          check_library_sum(settings, spec->needs, static_cast<std::uint32_t>(settings.cluster.workers_per_rank));
      !sums)
    return tl::unexpected(sums.error());
  if (auto initial = experiment::initial_model(*spec); !initial) return tl::unexpected(std::move(initial.error()));
  core::HostAllocator memory;
  for (std::uint32_t worker = 0; worker < spec->workers && !spec->graph->is_program(); ++worker) {
    auto options = settings.compile_options(worker);
    options.arenas = &memory;
    options.measure = false;  // the choices do not matter here
    const auto replica = experiment::compile_worker(backend, *spec->graph, options, settings.train.accumulate);
    if (!replica) return tl::unexpected(replica.error());
  }
  auto text =
      fmt::format("{}: {} parameters, input {}, {} outputs\n", spec->graph->name(), spec->graph->parameter_count(),
                  nn::to_string(spec->graph->input()), spec->graph->output().size());
  text += fmt::format("{}: {}, {}\n", settings.strategy, core::counted(spec->workers, "worker"),
                      core::counted(spec->servers, "server"));
  if (spec->leases) {
    text += fmt::format("{}: {} training and {} test samples, {} per epoch over all workers\n", settings.data.name,
                        spec->source.train->size(), spec->source.test->size(),
                        core::counted(spec->leases->leases_per_epoch(spec->workers), "step"));
  }
  for (const auto& note : experiment::notes_on_derived(settings.config)) text += note.text + "\n";
  return CheckedRun{std::move(text), experiment::notes_on(*spec), spec->leases != nullptr};
}

core::Result<Evaluation> evaluate_checkpoint(const Settings& settings, const std::string& checkpoint,
                                             nn::Backend& backend) {
  auto spec = experiment::build_run_spec(settings, true);
  if (!spec) return tl::unexpected(spec.error());
  const auto model = experiment::load_model(checkpoint, *spec->graph);
  if (!model) return tl::unexpected(model.error());
  experiment::ConfusionMatrix confusion;
  const auto score = experiment::evaluate(*spec, backend, model->parameters, model->statistics, &confusion);
  if (!score) return tl::unexpected(score.error());
  return Evaluation{.loss = score->loss,
                    .accuracy = score->accuracy(),
                    .top5 = score->top5_share(),
                    .samples = score->samples,
                    .replaced = score->replaced,
                    .model = spec->graph->name(),
                    .dataset = settings.data.name,
                    .hash = nn::center_hash(model->parameters),
                    .class_names = spec->source.test->dataset().class_names(),
                    .confusion = std::move(confusion)};
}

}  // namespace troupe::actors
