#include "actors/deployment/node.hpp"

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/deployment/nodes.hpp"
#include "actors/deployment/site_actor.hpp"
#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"

namespace troupe::actors {

namespace {

/// Far more than the workers of a host. Each site costs a thread at once.
constexpr std::size_t kMostSitesHere = 256;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

class NodeBody {
 public:
  NodeBody(NodeActor::stateful_pointer<NodeState> self, NodeSetup setup)
      : self_(self), setup_(std::make_shared<const NodeSetup>(std::move(setup))) {}
  /// A node that stops ends its sites.
  ~NodeBody() {
    for (const auto& site : sites_) caf::anon_send(site.actor, Halt{});
  }
  NodeBody(const NodeBody&) = delete;
  NodeBody& operator=(const NodeBody&) = delete;

  [[nodiscard]] NodeFacts facts() {
    auto facts = own_facts(setup_->version, setup_->data_host);
    const auto now = clock_.now();
    const auto used = cpu_seconds();
    facts.up_s = core::seconds(now - began_);
    facts.cpu = (used - asked_cpu_) / std::max(core::seconds(now - asked_), 1e-3);
    asked_ = now;
    asked_cpu_ = used;
    for (const auto& site : sites_) facts.members.push_back(site.name);
    return facts;
  }

  /// A GPU that hangs keeps the library's call from returning, so the query has its own thread. Further queries meanwhile get its answer.
  [[nodiscard]] caf::result<GpuReport> gpus() {
    auto promise = self_->make_response_promise<GpuReport>();
    gpu_queries_.push_back(promise);
    if (gpu_queries_.size() > 1) return promise;
    const auto asker = self_->system().spawn<caf::detached>([](caf::event_based_actor* self) -> caf::behavior {
      return {[self](const GpuQuery&) {
        self->quit();
        return own_gpus();
      }};
    });
    const auto told = [this](const GpuReport& report) {
      for (auto& query : std::exchange(gpu_queries_, {})) query.deliver(report);
    };
    self_
        ->request(asker, kNoDeadline, GpuQuery{})  // the requesters have their own deadlines
        .then(told, [told](const caf::error&) { told(GpuReport{}); });
    return promise;
  }

  [[nodiscard]] caf::result<SiteOpened, OpenedSite> open(const SiteOrder& order) {
    if (order.version != setup_->version) {
      const auto why =
          fmt::format("the coordinator runs troupe {}, this node troupe {}: a run needs one version everywhere",
                      order.version, setup_->version);
      setup_->log(fmt::format("{}: {}", describe(order), why));
      return {SiteOpened{.address = {}, .error = why, .code = core::Errc::config}, OpenedSite{}};
    }
    if (sites_.size() + wanted_.size() >= kMostSitesHere) {
      const auto why = fmt::format("this node has {} sites, and takes no more", kMostSitesHere);
      return {SiteOpened{.address = {}, .error = why, .code = core::Errc::config}, OpenedSite{}};
    }
    // A site ends with the actor that ordered it.
    const auto asker = self_->current_sender();
    if (asker && std::ranges::find(askers_, asker->address()) == askers_.end()) {
      self_->monitor(caf::actor_cast<caf::actor>(asker));
      askers_.push_back(asker->address());
    }
    Wanted wanted{order, asker ? asker->address() : caf::actor_addr{},
                  self_->make_response_promise<SiteOpened, OpenedSite>()};
    const auto promise = wanted.promise;
    const auto former = std::ranges::find_if(
        sites_, [&](const auto& site) { return site.secret == order.secret && site.number == order.site; });
    if (former == sites_.end()) {
      make(std::move(wanted));
    } else {
      self_->send(former->actor, Halt{});
      // A new order for a site replaces one that still waits.
      std::erase_if(wanted_, [&](auto& older) {
        const bool same = older.order.secret == order.secret && older.order.site == order.site;
        if (same) older.promise.deliver(caf::make_error(caf::sec::request_timeout));
        return same;
      });
      wanted_.push_back(std::move(wanted));
    }
    return promise;
  }

  void down(const caf::down_msg& message) {
    const auto ended =
        std::ranges::find_if(sites_, [&](const auto& site) { return site.actor.address() == message.source; });
    if (ended != sites_.end()) {
      const auto successor = std::ranges::find_if(wanted_, [&](const auto& wanted) {
        return wanted.order.secret == ended->secret && wanted.order.site == ended->number;
      });
      sites_.erase(ended);
      if (successor != wanted_.end()) {
        auto wanted = std::move(*successor);
        wanted_.erase(successor);
        make(std::move(wanted));
      }
    }
    std::erase_if(wanted_, [&](const auto& wanted) { return wanted.asker == message.source; });
    for (const auto& site : sites_)
      if (site.asker == message.source) self_->send(site.actor, Halt{});
    if (std::erase(askers_, message.source) > 0 && setup_->gone)
      setup_->gone(message.reason == caf::exit_reason::remote_link_unreachable);
  }

 private:
  struct Running {
    std::string name;
    std::string secret;  // of its run
    std::uint32_t number = 0;
    SiteActor actor;
    caf::actor_addr asker;
  };
  /// An order that waits until the former site has ended.
  struct Wanted {
    SiteOrder order;
    caf::actor_addr asker;
    caf::typed_response_promise<SiteOpened, OpenedSite> promise;
  };

  void make(Wanted wanted) {
    const auto& order = wanted.order;
    const auto site = self_->system().spawn<caf::detached>(site_actor, setup_);
    self_->monitor(site);
    sites_.push_back({describe(order), order.secret, order.site, site, wanted.asker});
    self_->request(site, kOpenDeadline, order)
        .then(
            [promise = wanted.promise, site](const SiteOpened& opened) mutable {
              if (!opened.error.empty()) caf::anon_send(site, Halt{});
              promise.deliver(opened, OpenedSite{site});
            },
            [promise = wanted.promise, site](const caf::error& error) mutable {
              caf::anon_send(site, Halt{});
              promise.deliver(error);
            });
  }

  NodeActor::stateful_pointer<NodeState> self_;
  std::shared_ptr<const NodeSetup> setup_;
  std::vector<Running> sites_;
  std::vector<Wanted> wanted_;
  std::vector<caf::actor_addr> askers_;
  std::vector<caf::typed_response_promise<GpuReport>> gpu_queries_;  // open
  core::SteadyClock clock_;
  core::Duration began_ = clock_.now();
  core::Duration asked_ = began_;
  double asked_cpu_ = cpu_seconds();
};

NodeState::NodeState() = default;
NodeState::~NodeState() = default;

NodeActor::behavior_type node(NodeActor::stateful_pointer<NodeState> self, NodeSetup setup) {
  self->state.body = std::make_unique<NodeBody>(self, std::move(setup));
  self->set_default_handler(caf::drop);  // CAF would print unknown messages of other processes on the terminal
  self->set_down_handler([self](const caf::down_msg& message) { self->state.body->down(message); });
  return {
      [self](const NodeQuery&) { return self->state.body->facts(); },
      [self](const GpuQuery&) { return self->state.body->gpus(); },
      [self](const SiteOrder& order) { return self->state.body->open(order); },
  };
}

}  // namespace troupe::actors
