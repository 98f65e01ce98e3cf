#include "apps/commands/train.hpp"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "actors/deployment/nodes.hpp"
#include "actors/run/run.hpp"
#include "apps/arguments/checks.hpp"
#include "apps/arguments/config.hpp"
#include "apps/arguments/directory_file.hpp"
#include "apps/arguments/network.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/commands/dry_run.hpp"
#include "apps/help.hpp"
#include "apps/interrupt.hpp"
#include "apps/job/job.hpp"
#include "apps/job/request.hpp"
#include "apps/launch/evaluator_output.hpp"
#include "apps/launch/late_actors.hpp"
#include "apps/output.hpp"
#include "apps/program.hpp"
#include "apps/progress_line.hpp"
#include "core/open_files.hpp"
#include "core/text/shell_word.hpp"
#include "experiment/directory/run_directory.hpp"
#include "experiment/state/initial_model.hpp"

namespace troupe::apps {
namespace {

/// --init is short for --set run.init=FILE. A run directory's newest checkpoint is named, so that config.toml says which one it was.
/// A resume with another strategy takes that one's defaults.
core::Result<void> begin_with(TrainArguments& arguments) {
  if (!arguments.resume.empty() && arguments.config.empty())
    return experiment::RunDirectory::open(arguments.resume).map([&](const experiment::RunDirectory& run) {
      arguments.overrides = resume_overrides(run, arguments.overrides);
    });
  if (arguments.init.empty()) return {};
  auto file = experiment::checkpoint_file(arguments.init);
  if (!file) return tl::unexpected(std::move(file.error()));
  arguments.overrides.push_back("run.init=" + core::to_toml(core::Value{std::move(*file)}));
  if (arguments.partial) arguments.overrides.emplace_back("run.init_partial=true");
  return {};
}

core::Result<std::string> config_file(const TrainArguments& arguments) {
  if (arguments.config.empty() == arguments.resume.empty())
    return core::fail(core::Errc::usage, "give either a CONFIG or --resume RUN_DIR; see `troupe train --help`");
  std::error_code ignored;
  if (std::filesystem::is_directory(arguments.config, ignored)) {
    const bool is_run = experiment::RunDirectory::open(arguments.config).has_value();
    return core::fail(core::Errc::usage,
                      fmt::format("{} is a directory: {}", arguments.config,
                                  is_run ? fmt::format("`troupe train --resume {}` goes on with its run",
                                                       core::shell_word(arguments.config))
                                         : "give a configuration file (TOML)"));
  }
  if (!arguments.config.empty()) return arguments.config;
  return experiment::RunDirectory::open(arguments.resume).map([](const experiment::RunDirectory& run) {
    return run.config_file();
  });
}

core::Result<experiment::Settings> settings_of(const TrainArguments& arguments) {
  const auto use = arguments.nodes ? experiment::Use::processes : experiment::Use::run;
  return config_file(arguments).and_then(
      [&](const std::string& file) { return load_settings(file, arguments.overrides, use); });
}

report::ConsoleOptions::Mode console_mode(const TrainArguments& arguments) {
  using Mode = report::ConsoleOptions::Mode;
  return arguments.quiet ? Mode::quiet : arguments.plain ? Mode::plain : Mode::automatic;
}

/// What `troupe train --resume RUN_DIR` needs besides, on the same nodes.
std::string resume_options(const TrainArguments& arguments) {
  std::string text;
  if (arguments.nodes) text += " --nodes " + core::shell_word(*arguments.nodes);
  if (arguments.min_nodes > 0) text += fmt::format(" --min-nodes {}", arguments.min_nodes);
  return text + tls_flags(arguments.tls);
}

/// A run that failed later has a summary too; a run that never began has none.
core::Result<void> print_end(const actors::RunEnd& end, const TrainArguments& arguments) {
  core::Result<void> printed;
  if (arguments.json && !end.summary.run.empty()) printed = print(experiment::to_json(end.summary) + "\n");
  if (end.failed) return tl::unexpected(end.error);
  return printed;
}

}  // namespace

core::Result<void> train(const TrainArguments& arguments, actors::RunRequest request, Interrupt& interrupt) {
  EvaluatorOutput evaluator(!arguments.quiet);
  auto backend = make_backend(request.settings, [&evaluator](const std::string& line) { evaluator.line(line); });
  if (!backend) return tl::unexpected(std::move(backend.error()));
  auto* const program = dynamic_cast<guest::GuestBackend*>(backend->get());
  if (program && arguments.resume.empty()) {
    auto described = with_program(request.settings, *program,
                                  request.nodes.empty() ? experiment::Use::run : experiment::Use::processes);
    if (!described) return tl::unexpected(std::move(described.error()));
    request.settings = std::move(*described);
  } else if (program) {
    if (auto fits = check_resumed_program(request.settings); !fits) return fits;
  }
  request.resume = arguments.resume;
  request.replan = arguments.replan;
  request.version = actors::spoken_version(TROUPE_VERSION);
  request.console.mode = console_mode(arguments);
  request.console.stop = interrupt.token();
  request.resume_options = resume_options(arguments);
  request.on_begin = [&interrupt] { interrupt.nothing_to_save(false); };
  request.on_directory = [&interrupt, &arguments](const std::string& directory) {
    write_directory_file(arguments.directory_file, directory);
    interrupt.second_signal_message(fmt::format(
        "interrupted again: exits at once, without another checkpoint; {} still has the one before", directory));
  };
  request.on_save_action = [&interrupt](auto action) { interrupt.on_save_request(std::move(action)); };
  // Only where it vanishes again: in a file the run's first line is to be about the run, or its error.
  const bool shown = !arguments.quiet && !arguments.plain && report::is_live_terminal(stderr);
  ProgressLine preparing("getting ready", shown ? ProgressLine::Mode::live : ProgressLine::Mode::quiet);
  request.on_console = [&] {
    preparing.clear();
    evaluator.hold();
  };
  request.on_console_end = [&] { evaluator.release(); };
  request.on_late_actors = [&](const actors::RunEnd& end) {
    preparing.clear();
    evaluator.release();
    end_without_late_actors(print_end(end, arguments));
  };
  const auto end = actors::run_training(request, **backend, interrupt.token());
  preparing.clear();
  evaluator.release();
  return print_end(end, arguments);
}

core::Result<void> check_nodes(const TrainArguments& arguments) {
  if (arguments.nodes || (arguments.min_nodes == 0 && arguments.tls.empty())) return {};
  return core::fail(core::Errc::usage, "--min-nodes, --ca, --cert and --key need --nodes: give it, or leave these out");
}

core::Result<void> add_nodes(const TrainArguments& arguments, actors::RunRequest& request) {
  if (!arguments.nodes) return {};
  auto nodes = actors::parse_nodes(*arguments.nodes);
  if (!nodes) return tl::unexpected(std::move(nodes.error()));
  request.nodes = std::move(*nodes);
  request.min_nodes = arguments.min_nodes;
  auto tls = find_tls(arguments.tls);
  if (!tls) return tl::unexpected(std::move(tls.error()));
  request.network.tls = std::move(*tls);
  return {};
}

CLI::Option* add_nodes_flags(CLI::App& app, TrainArguments& arguments, const std::string& help) {
  auto* nodes = app.add_option("--nodes", arguments.nodes, help)->type_name("HOST:PORT,…");
  app.add_option("--min-nodes", arguments.min_nodes,
                 "start once N nodes are connected; nodes that connect later join the run (default: all)")
      ->type_name("N")
      ->check(whole_at_least(1));
  add_tls(app, arguments.tls);
  return nodes;
}

void add_output(CLI::App& app, TrainArguments& arguments) {
  app.add_flag("--json", arguments.json,
               "print the run's summary, or the dry run, on standard output, as one line of JSON");
  auto* quiet = app.add_flag("--quiet", arguments.quiet, "no progress on standard error, errors only");
  app.add_flag("--plain", arguments.plain, "progress as plain lines, also on a terminal")->excludes(quiet);
  add_directory_file(app, arguments.directory_file);
}

namespace {

core::Result<void> lead(TrainArguments arguments, Job& job, Interrupt& interrupt) {
  if (auto begun = begin_with(arguments); !begun) return begun;
  auto request =
      config_file(arguments).and_then([&](const auto& file) { return job_request(file, arguments.overrides, job); });
  if (!request) return tl::unexpected(std::move(request.error()));
  if (arguments.quiet)  // without progress, too: the run is another one than the file says
    for (const auto& note : request->notes) tell(fmt::format("warning: {}\n", note.text));
  return train(arguments, std::move(*request), interrupt);
}

core::Result<void> train_in_job(const TrainArguments& arguments, const JobEnvironment& environment,
                                Interrupt& interrupt) {
  if (arguments.nodes || arguments.min_nodes > 0 || !arguments.tls.empty())
    return core::fail(core::Errc::usage,
                      fmt::format("under {} the ranks are the nodes: without --nodes, --min-nodes, --ca, --cert and "
                                  "--key",
                                  environment.launcher));
  if (environment.rank == 0) interrupt.nothing_to_save(true);
  auto job = Job::join(environment);
  if (!job) return tl::unexpected(std::move(job.error()));
  interrupt.before_exit([&job] { (*job)->remove_copies(); });
  auto outcome = (*job)->rank() > 0 ? (*job)->serve() : lead(arguments, **job, interrupt);
  if ((*job)->rank() == 0) (*job)->dismiss(outcome);
  interrupt.before_exit(nullptr);
  return outcome;
}

core::Result<void> run_dry(TrainArguments arguments) {
  if (const auto environment = job_environment())
    return core::fail(core::Errc::usage,
                      fmt::format("--dry-run trains nothing: start it without {}", environment->launcher));
  if (auto begun = begin_with(arguments); !begun) return begun;
  auto settings = settings_of(arguments);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  if (auto own = check_no_program(*settings, "--dry-run"); !own) return own;
  auto backend = make_backend(*settings);
  if (!backend) return tl::unexpected(std::move(backend.error()));
  return dry_run(*settings, **backend, {.profile = arguments.profile, .json = arguments.json});
}

core::Result<void> run_train(TrainArguments arguments) {
  if (arguments.dry_run) return run_dry(arguments);
  core::raise_open_files_limit();
  Interrupt interrupt;  // before MPI or the backend starts threads, and before SIGUSR1 can end the process
  if (const auto environment = job_environment()) return train_in_job(arguments, *environment, interrupt);
  interrupt.nothing_to_save(true);
  if (auto fits = check_nodes(arguments); !fits) return fits;
  if (auto begun = begin_with(arguments); !begun) return begun;
  auto settings = settings_of(arguments);
  if (!settings) return tl::unexpected(std::move(settings.error()));
  actors::RunRequest request;
  request.settings = std::move(*settings);
  if (auto added = add_nodes(arguments, request); !added) return added;
  return train(arguments, std::move(request), interrupt);
}

Action declare_train(CLI::App& app) {
  const auto arguments = std::make_shared<TrainArguments>();
  app.add_option("CONFIG", arguments->config, "configuration file (TOML)");
  add_set(app, arguments->overrides);
  auto* resume =
      app.add_option("--resume", arguments->resume, "go on in this run's directory, from its newest checkpoint")
          ->type_name("RUN_DIR");
  auto* init =
      app.add_option("--init", arguments->init,
                     "begin with the weights of this checkpoint, of the newest one of this run, or of a safetensors "
                     "file with torchvision's names: a new run, short for --set run.init=FILE")
          ->type_name("FILE|RUN_DIR")
          ->excludes(resume);
  app.add_flag("--partial", arguments->partial,
               "with --init: take the tensors that fit the model, and begin the others afresh, as for another "
               "classifier; short for --set run.init_partial=true")
      ->needs(init);
  app.add_flag(
         "--replan", arguments->replan,
         "with --resume: choose anew what the run's plan.json says, as on a machine with another CPU; numbers then "
         "differ in their last bits")
      ->needs(resume);
  auto* nodes = add_nodes_flags(app, *arguments, "train on these nodes (`troupe node`): workers are spread over them");
  auto* dry = app.add_flag("--dry-run", arguments->dry_run,
                           "print layers, memory, steps and a forecast of the time; train nothing, write nothing")
                  ->excludes(resume)
                  ->excludes(nodes);
  app.add_option("--profile", arguments->profile,
                 "with --dry-run: step times of this file (`troupe bench step --profile FILE`), in place of a "
                 "measurement")
      ->type_name("FILE")
      ->needs(dry);
  add_output(app, *arguments);
  return [arguments] { return run_train(*arguments); };
}

core::Result<std::string> train_appendix(std::string_view topic, std::size_t columns) {
  auto text = keys_help(experiment::schema(), topic, columns, "troupe train", "--set");
  if (text && (topic == "model" || topic == "model.layers" || topic == "all")) *text += layers_help(columns);
  return text;
}

}  // namespace

Command train() {
  return {.name = "train",
          .summary = "train a model",
          .examples =
              "  troupe train --help data                                 the keys of a section\n"
              "  troupe train configs/glyphs-easgd.toml                   needs no data: it draws its own\n"
              "  troupe train configs/cifar10-easgd.toml --dry-run        layers, memory, steps, forecast\n"
              "  troupe train configs/mnist-easgd.toml --set strategy.tau=8 --set cluster.workers=4\n"
              "  troupe train configs/mnist-bsp.toml --quiet --json > summary.json\n"
              "  troupe train configs/mnist-easgd.toml --nodes 10.0.0.11:4242,10.0.0.12:4242 "
              "--ca certs/ca.pem --cert certs/me.pem --key certs/me.key\n"
              "  mpirun -n 4 troupe train configs/mnist-bsp.toml          a worker at each rank\n"
              "  troupe train --resume runs/20260102-030405-mnist-bsp --set run.epochs=10\n"
              "  troupe train configs/mnist-bsp.toml --init runs/20260102-030405-mnist-easgd    from its weights\n",
          .declare = declare_train,
          .appendix = train_appendix,
          .ranks = Ranks::together};
}

}  // namespace troupe::apps
