#include "actors/control/network.hpp"

#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <fmt/format.h>

#include "actors/control/caf_connection.hpp"
#include "actors/control/listener.hpp"
#include "actors/control/node_identity.hpp"
#include "actors/requests/interruptible.hpp"
#include "transport/net/connector.hpp"
#include "transport/security/tls_context.hpp"

namespace troupe::actors {
namespace {

using namespace std::chrono_literals;

constexpr auto kNameDeadline = 10s;  // for resolving the name to listen at

/// Why CAF's I/O thread ended a connection, for the thread that waits for it.
struct Verdict {
  std::mutex mutex;
  core::Error why{core::Errc::peer_lost, ""};

  [[nodiscard]] core::Error read() {
    const std::lock_guard lock(mutex);
    return why;
  }
};

struct Answer {
  caf::node_id node;
  caf::strong_actor_ptr actor;
  std::set<std::string> interface;
};

/// This node's id in its form on the wire.
std::string wire_form(caf::actor_system& system) {
  std::vector<char> bytes;
  caf::binary_serializer sink(system, bytes);
  if (auto error = sink(system.node())) throw std::logic_error("network: a node that cannot be written");
  return {bytes.begin(), bytes.end()};
}

}  // namespace

bool is_loopback(const HostPort& where) { return where.host == "localhost" || transport::is_loopback(where.host); }

NetworkConfig::NetworkConfig(const NetworkOptions& options) {
  load<caf::io::middleman>();
  load<NodeIdentity>();
  set("middleman.heartbeat-interval", caf::timespan(options.heartbeat));
  set("middleman.connection-timeout", caf::timespan(options.lost_after));
}

void ActorsWait::allow(core::Duration most) noexcept {
  for (auto before = most_.load(); before < most && !most_.compare_exchange_weak(before, most);) {
  }
}

ActorsWait::~ActorsWait() {
  // The system has no event for the end of its actors: poll.
  const auto until = std::chrono::steady_clock::now() + most_.load();
  const auto late = [&] {
    const auto now = counts();
    return now.detached > before_.detached || now.running > before_.running;
  };
  while (late() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (late() && on_late_) on_late_();
}

struct Network::Parts {
  std::shared_ptr<SSL_CTX> tls;
  caf::actor broker;
  caf::io::network::default_multiplexer* multiplexer = nullptr;
  std::shared_ptr<ControlPeers> peers;
  std::unique_ptr<Listener> listener;
};

Network::Network(caf::actor_system& system, std::unique_ptr<Parts> parts) : system_(system), parts_(std::move(parts)) {}

Network::~Network() = default;

core::Result<std::unique_ptr<Network>> Network::create(caf::actor_system& system, const NetworkOptions& options) {
  if (const auto complete = security::check_complete(options.tls); !complete) return tl::unexpected(complete.error());
  auto parts = std::make_unique<Parts>();
  if (!options.tls.empty()) {
    auto tls = security::make_tls_context(options.tls, std::time(nullptr));
    if (!tls) return tl::unexpected(tls.error());
    parts->tls = std::move(*tls);
  }
  parts->multiplexer = dynamic_cast<caf::io::network::default_multiplexer*>(&system.middleman().backend());
  if (parts->multiplexer == nullptr)
    return core::fail(core::Errc::internal, "the control plane needs CAF's default network backend");
  parts->broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  // Any peer may call these by name: the first spawns registered actors, the second changes the configuration.
  system.registry().erase(caf::atom("SpawnServ"));
  system.registry().erase(caf::atom("ConfigServ"));
  parts->peers = std::make_shared<ControlPeers>(wire_form(system));
  parts->listener = std::make_unique<Listener>(
      Listener::Setup{parts->multiplexer, parts->broker, parts->tls, parts->peers, options.on_refused});
  return std::unique_ptr<Network>(new Network(system, std::move(parts)));
}

core::Result<std::uint16_t> Network::publish(caf::strong_actor_ptr actor, Interface interface, const HostPort& where) {
  const auto addresses =
      transport::find_addresses(where, parts_->tls != nullptr, transport::ConnectClock::now() + kNameDeadline);
  if (!addresses) return tl::unexpected(addresses.error());
  return parts_->listener->open(where, *addresses, {std::move(actor), std::move(interface)});
}

core::Result<caf::strong_actor_ptr> Network::connect(const Interface& wanted, const HostPort& where,
                                                     core::Duration deadline, const std::stop_token& stop) {
  const auto until = transport::ConnectClock::now() + deadline;
  for (;;) {
    auto connection = transport::dial(where, parts_->tls.get(), until, stop);
    if (!connection) return tl::unexpected(connection.error());
    const auto verdict = std::make_shared<Verdict>();
    auto scribe = make_caf_connection(*parts_->multiplexer, std::move(*connection), parts_->peers,
                                      [verdict](const core::Error& why) {
                                        const std::lock_guard lock(verdict->mutex);
                                        verdict->why = why;
                                      });
    const auto left =
        std::max(1ms, std::chrono::ceil<std::chrono::milliseconds>(until - transport::ConnectClock::now()));
    std::optional<Answer> answer;
    caf::error error;
    caf::scoped_actor self(system_);
    auto asked = self->request(parts_->broker, left, caf::connect_atom_v, std::move(scribe), where.port);
    receive(
        asked, stop,
        [&](caf::node_id& node, caf::strong_actor_ptr& actor, Interface& interface) {
          answer = Answer{std::move(node), std::move(actor), std::move(interface)};
        },
        [&](caf::error& failed) { error = std::move(failed); });
    if (stop.stop_requested()) return tl::unexpected(core::interrupted_early());
    if (answer) {
      if (answer->node == system_.node())
        return core::fail(core::Errc::config, fmt::format("{}: that is this process itself", to_text(where)));
      if (!answer->actor || !system_.assignable(answer->interface, wanted))
        return core::fail(core::Errc::config,
                          fmt::format("{}: another kind of process listens there, or another version: "
                                      "look at the port, and at `troupe --version` of both",
                                      to_text(where)));
      return std::move(answer->actor);
    }
    // CAF counts the silence of a new connection from time 0, and may end the connection at the next heartbeat: try again.
    if (error == caf::sec::connection_timeout && transport::ConnectClock::now() < until) continue;
    if (error == caf::sec::request_timeout || error == caf::sec::connection_timeout)
      return core::fail(
          core::Errc::timeout,
          fmt::format("{}: it took the connection and says nothing: is it overloaded, or no process of ours?",
                      to_text(where)));
    core::Error why = verdict->read();
    if (why.message.empty()) why.message = system_.render(error);
    return core::fail(why.code, transport::refused(where, parts_->tls != nullptr, why));
  }
}

}  // namespace troupe::actors
