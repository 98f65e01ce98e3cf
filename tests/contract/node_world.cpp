// Actors whose workers are at a node. The node is a second actor system of this process, so the probes share one tally. An actor between
// the run and the node can end a site: its worker is then lost, and the rejoin manager fills the place again.
#include <chrono>
#include <map>
#include <mutex>

#include "actors/control/network.hpp"
#include "actors/deployment/node.hpp"
#include "actors/deployment/nodes.hpp"
#include "actors/run/run.hpp"
#include "cpu/backend.hpp"
#include "tests/actors/small_run.hpp"
#include "tests/contract/promises.hpp"
#include "tests/contract/worlds.hpp"

namespace troupe::contract {
namespace {

using namespace std::chrono_literals;
using actors::NodeActor;

constexpr auto kPatience = 60s;

/// The node's sites, by number. Thread-safe.
class Sites {
 public:
  void add(std::uint32_t number, const actors::SiteActor& site) {
    const std::lock_guard lock(mutex_);
    sites_[number] = site;
  }
  /// Drops the handles: otherwise the sites' threads would not end.
  void forget() {
    const std::lock_guard lock(mutex_);
    sites_.clear();
  }
  void lose(std::uint32_t number, core::Duration after) {
    const std::lock_guard lock(mutex_);
    caf::delayed_anon_send(sites_.at(number), after, actors::Halt{});
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, actors::SiteActor> sites_;
};

NodeActor::behavior_type between(NodeActor::pointer self, const NodeActor& node, Sites* sites) {
  return {
      [self, node](const actors::NodeQuery& query) -> caf::result<actors::NodeFacts> {
        auto promise = self->make_response_promise<actors::NodeFacts>();
        self->request(node, kPatience, query)
            .then([promise](const actors::NodeFacts& facts) mutable { promise.deliver(facts); },
                  [promise](const caf::error& error) mutable { promise.deliver(error); });
        return promise;
      },
      [](const actors::GpuQuery&) { return actors::GpuReport{}; },
      [self, node, sites](const actors::SiteOrder& order) -> caf::result<actors::SiteOpened, actors::OpenedSite> {
        auto promise = self->make_response_promise<actors::SiteOpened, actors::OpenedSite>();
        self->request(node, kPatience, order)
            .then(
                [promise, sites, number = order.site](const actors::SiteOpened& opened,
                                                      const actors::OpenedSite& site) mutable {
                  if (opened.error.empty()) sites->add(number, site.site);
                  promise.deliver(opened, site);
                },
                [promise](const caf::error& error) mutable { promise.deliver(error); });
        return promise;
      },
  };
}

/// A node at a port of its own.
class OneNode {
 public:
  OneNode()
      : config_(options_),
        system_(config_),
        last_(system_),
        network_(actors::Network::create(system_, options_).value()) {
    actors::NodeSetup setup;
    setup.version = version();
    setup.data_host = "127.0.0.1";
    setup.contexts = std::make_shared<actors::RunContextCache>(
        [](const experiment::Settings&) -> core::Result<std::unique_ptr<nn::Backend>> { return cpu::make_backend(); });
    setup.log = [](const std::string&) {};
    node_ = system_.spawn(actors::node, std::move(setup));
    between_ = system_.spawn(between, node_, &sites_);
    port_ = network_->publish(between_, {"127.0.0.1", 0}).value();
  }
  ~OneNode() {
    for (const auto& actor : {between_, node_}) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    sites_.forget();
  }
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;

  [[nodiscard]] static std::string version() { return actors::spoken_version("contract"); }
  [[nodiscard]] std::string name() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] Sites& sites() { return sites_; }

 private:
  Sites sites_;
  actors::NetworkOptions options_;
  actors::NetworkConfig config_;
  caf::actor_system system_;
  actors::ActorsWait last_;
  std::unique_ptr<actors::Network> network_;
  NodeActor node_, between_;
  std::uint16_t port_ = 0;
};

/// A run of so many epochs over a node.
Seen run_over_node(const Scenario& scenario) {
  const tests::SmallRun files(run_options(scenario));
  const auto settings = files.settings();
  if (!settings) return {settings.error().message};
  OneNode node;
  actors::RunRequest request{*settings, {}, false, {.mode = report::ConsoleOptions::Mode::quiet}};
  request.nodes = {node.name()};
  request.version = OneNode::version();
  if (scenario.losses) {
    request.on_begin = [&node] {  // site 0 is the coordinator's
      node.sites().lose(2, 300ms);
      node.sites().lose(4, 700ms);
    };
  }
  tell_time_by([]() -> core::Duration { return std::chrono::steady_clock::now().time_since_epoch(); });
  const auto end = actors::run_training(request, tests::backend(), {});
  tell_time_by({});
  if (end.failed) return {end.error.message};
  return {{}, center_of(files)};
}

Seen run_over_nodes(const Scenario& scenario) {
  if (!scenario.losses) return run_over_node(scenario);
  // Long enough for the rejoin manager to find the node, and for an epoch to end after that. Steps take their time however slow the machine
  // is; finding the node takes longer on a slow one.
  auto lasting = scenario;
  lasting.options.emplace_back("cluster.synthetic_step_ms=15");
  for (const std::uint32_t epochs : {16U, 64U, 256U}) {
    lasting.epochs = epochs;
    auto seen = run_over_node(lasting);
    if (!seen.error.empty() || tally().returned > 0) return seen;
  }
  return {"nobody came back"};
}

}  // namespace

World nodes_world() { return {"actors_over_nodes", run_over_nodes, true}; }

}  // namespace troupe::contract
