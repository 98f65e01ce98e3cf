#include "actors/deployment/node.hpp"

#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <semaphore>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "actors/control/network.hpp"
#include "actors/deployment/nodes.hpp"
#include "actors/requests/deadlines.hpp"
#include "apps/arguments/network.hpp"
#include "apps/backends.hpp"
#include "apps/command.hpp"
#include "apps/interrupt.hpp"
#include "apps/launch/late_actors.hpp"
#include "core/open_files.hpp"
#include "nn/program/own_process.hpp"
#include "transport/security/tls_context.hpp"

namespace troupe::apps {
namespace {

struct NodeArguments {
  std::string listen;
  bool programs = false;
  security::TlsFiles tls;
};

/// Drops a line that cannot be written: a full disk under the log must not end the node.
void log(const std::string& line) noexcept {
  try {
    static std::mutex one_at_a_time;
    const std::scoped_lock lock(one_at_a_time);
    fmt::print(stderr, "{:%H:%M:%S} {}\n", fmt::localtime(std::time(nullptr)), line);
  } catch (const std::exception&) {
  }
}

/// Another user may have started the run: it starts programs here only where the owner of this node allows it.
core::Result<std::unique_ptr<nn::Backend>> backend_of_run(const experiment::Settings& settings, bool programs) {
  if (!settings.model.command.empty() && !programs)
    return core::fail(core::Errc::config,
                      fmt::format("this node starts no programs (model.command = {}): start it with `troupe node "
                                  "--programs`",
                                  core::to_toml(core::Value{settings.model.command})));
  return make_backend(settings);
}

core::Result<void> run_node(const NodeArguments& arguments) {
  const auto at = actors::parse_host_port(arguments.listen);
  if (!at) return core::fail(core::Errc::config, "--listen: " + at.error().message);
  const auto tls = find_tls(arguments.tls);
  if (!tls) return tl::unexpected(tls.error());
  if (!tls->empty() && (at->host == "0.0.0.0" || at->host == "::"))
    return core::fail(core::Errc::config,
                      fmt::format("--listen {}: say the address that other hosts reach this one by: "
                                  "vectors are received there, too",
                                  arguments.listen));
  actors::NetworkOptions options;
  options.tls = *tls;
  options.on_refused = [](const transport::RefusedConnection& refusal) {
    log(fmt::format("rejected {}: {}", refusal.from, refusal.why));
  };
  core::raise_open_files_limit();
  const Interrupt interrupt;  // before any thread starts
  actors::NetworkConfig config(options);
  caf::actor_system system(config);
  actors::ActorsWait last(system, [] { end_without_late_actors(); });
  auto network = actors::Network::create(system, options);
  if (!network) return tl::unexpected(network.error());
  if (!tls->empty())
    if (auto named = security::check_names(*tls, at->host); !named) return named;
  // Not detached: the broker keeps published actors, and would keep the thread. The node's work is short; sites have their own threads.
  const auto node = system.spawn(
      actors::node, actors::NodeSetup{.version = actors::spoken_version(TROUPE_VERSION),
                                      .data_host = at->host,
                                      .tls = *tls,
                                      .contexts = std::make_shared<actors::RunContextCache>(
                                          [&last, programs = arguments.programs](const experiment::Settings& settings) {
                                            last.allow(actors::kSiteHaltDeadline + nn::patience_at_end(settings.model));
                                            return backend_of_run(settings, programs);
                                          }),
                                      .log = log});
  const auto port = (*network)->publish(node, *at);
  if (port) {
    std::error_code ignored;
    log(fmt::format("listens on {}:{}{}, in {}", transport::bracketed(at->host), *port,
                    tls->empty() ? "" : ", with TLS", std::filesystem::current_path(ignored).string()));
    std::binary_semaphore stopped(0);
    const std::stop_callback on_stop(interrupt.token(), [&] { stopped.release(); });
    stopped.acquire();
    log("stops");
  }
  caf::anon_send_exit(node, caf::exit_reason::user_shutdown);
  if (!port) return tl::unexpected(port.error());
  return {};
}

Action declare_node(CLI::App& app) {
  const auto arguments = std::make_shared<NodeArguments>();
  app.add_option("--listen", arguments->listen,
                 "where others reach this node; off loopback with certificates only; port 0: any that is free")
      ->type_name("HOST:PORT")
      ->required();
  app.add_flag(
      "--programs", arguments->programs,
      "runs may start programs of their own here (`troupe launch`): every user who can reach this node can then "
      "execute anything as this user; without certificates every user of this host can");
  add_tls(app, arguments->tls);
  return [arguments] { return run_node(*arguments); };
}

}  // namespace

Command node() {
  return {
      .name = "node",
      .summary = "wait for runs that other hosts start, and take part in them",
      .examples =
          "  troupe node --listen 127.0.0.1:4242\n"
          "  troupe node --listen 10.0.0.11:4242 --ca certs/ca.pem --cert certs/node1.pem --key certs/node1.key\n"
          "  cd /where/the/data/is && troupe node --listen 127.0.0.1:4242\n"
          "Relative paths in a run's configuration (data.path) begin at the directory in which the node was started. "
          "Its first line says which that is.\n",
      .declare = declare_node,
      .ranks = Ranks::each};
}

}  // namespace troupe::apps
