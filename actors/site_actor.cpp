#include "actors/site_actor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/site.hpp"
#include "data/fingerprint.hpp"
#include "nn/safetensors.hpp"

namespace troupe::actors {

namespace {

/// What the members of a run work with; it outlives them.
struct Ground {
  Blueprint plan;
  std::unique_ptr<nn::Backend> backend;
  core::HostAllocator memory;
  core::SteadyClock clock;
};

core::Result<StartState> start_of(const Blueprint& plan, const StartCargo& cargo) {
  if (!cargo.file) return experiment::start_state(plan, nullptr);
  auto file = nn::parse_safetensors(*cargo.file, "the run's checkpoint", nn::Checksums::required);
  if (!file) return tl::unexpected(file.error());
  auto checkpoint = experiment::load(*file, plan.graph);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  return experiment::start_state(plan, &*checkpoint);
}

}  // namespace

std::string describe(const SiteOrder& order) {
  std::vector<std::string> members;
  for (const auto w : order.workers) members.push_back(fmt::format("worker {}", w));
  for (const auto s : order.servers) members.push_back(fmt::format("server {}", s));
  return fmt::format("{} of {}", fmt::join(members, ", "), order.run);
}

class SiteBody {
 public:
  SiteBody(SiteActor::stateful_pointer<SiteState> self, std::shared_ptr<const NodeSetup> setup)
      : self_(self), setup_(std::move(setup)) {}
  ~SiteBody() { halt(); }

  SiteOpened open(const SiteOrder& order) {
    order_ = order;
    if (auto opened = try_open(); !opened) {
      setup_->log(fmt::format("{}: {}", describe(order), opened.error().message));
      return {.address = {}, .error = opened.error().message, .code = opened.error().code};
    }
    return {.address = site_->address(), .error = {}};
  }

  SiteReady prepare(const SiteAddresses& addresses) {
    if (auto prepared = try_prepare(addresses); !prepared) {
      setup_->log(fmt::format("{}: {}", describe(order_), prepared.error().message));
      return {.error = prepared.error().message, .code = prepared.error().code};
    }
    return {};
  }

  [[nodiscard]] SiteMembers members() const { return site_ ? site_->members() : SiteMembers{}; }

  void begin(const SiteCompany& there) {
    self_->monitor(there.coordinator);
    Company company{.coordinator = there.coordinator,
                    .recorder = there.recorder,
                    .evaluator = {},
                    .workers = std::vector<WorkerActor>(there.worker_sites.size()),
                    .loaders = std::vector<LoaderActor>(there.worker_sites.size()),
                    .servers = std::vector<ServerActor>(there.server_sites.size()),
                    .membership_epoch = there.membership_epoch,
                    .worker_sites = there.worker_sites,
                    .server_sites = there.server_sites,
                    .exchanger = {},
                    .members = there.members,
                    .site_hosts = there.site_hosts};
    site_->begin(std::move(company));
    setup_->log(fmt::format("{}: begins", describe(order_)));
  }

  void coordinator_gone(const caf::error& reason) {
    setup_->log(fmt::format("{}: its coordinator is gone ({})", describe(order_), self_->system().render(reason)));
    halt();
  }

  void halt() {
    if (!site_) return;
    // Who does not end in time may still look at the ground.
    if (!site_->halt()) static_cast<void>(ground_.release());
    site_.reset();
    setup_->log(fmt::format("{}: ends", describe(order_)));
  }

 private:
  core::Result<void> try_open() {
    auto config = core::Config::parse(experiment::schema(), order_.config, "configuration of the run", {});
    if (!config) return tl::unexpected(config.error());
    auto settings = experiment::resolve(std::move(*config), experiment::Use::processes);
    if (!settings) return tl::unexpected(settings.error());
    auto plan = experiment::draw(*settings, true);
    if (!plan) return tl::unexpected(plan.error());
    if (auto data = data::fingerprint(plan->source); !data)
      return tl::unexpected(data.error());
    else if (*data != order_.data)
      return core::fail(
          core::Errc::data,
          fmt::format("data set {} in {} is not the one that the coordinator has: give both the same files",
                      settings->data.name, settings->data.path));
    auto backend = setup_->make_backend(settings->cluster.device);
    if (!backend) return tl::unexpected(backend.error());
    ground_ = std::make_unique<Ground>(Ground{std::move(*plan), std::move(*backend), {}, {}});

    auto exchange = experiment::parse_exchange(order_.exchange, "the order for a site");
    if (!exchange) return tl::unexpected(exchange.error());
    SiteSetup site{.site = order_.site,
                   .workers = order_.workers,
                   .servers = order_.servers,
                   .exchange = std::move(*exchange),
                   .options = {},
                   .most_floats = order_.most_floats,
                   .fingerprint = order_.layout};
    site.options.secret = order_.secret;
    if (order_.between_hosts) site.options.ucx_transports = "tcp,self";
    site.options.tcp.listen =
        (setup_->data_host.find(':') == std::string::npos ? setup_->data_host : "[" + setup_->data_host + "]") + ":0";
    site.options.tcp.tls = setup_->tls;
    site.options.tcp.on_refused = [log = setup_->log, who = describe(order_)](const transport::Refusal& refusal) {
      log(fmt::format("{}: turned {} away: {}", who, refusal.from, refusal.why));
    };
    if (!order_.plan.empty()) site.plan = nn::Plan{order_.plan};
    site_ = std::make_unique<Site>(
        SiteGround{&self_->system(), &ground_->plan, ground_->backend.get(), &ground_->memory, &ground_->clock},
        std::move(site));
    return site_->open();
  }

  core::Result<void> try_prepare(const SiteAddresses& addresses) {
    if (!site_) return core::fail(core::Errc::internal, "a site that was not opened");
    site_->meet(addresses);
    StartCargo cargo;
    if (order_.resumed) {
      auto fetched = site_->fetch_start();
      if (!fetched) return tl::unexpected(fetched.error());
      cargo = *fetched;
    }
    auto start = start_of(ground_->plan, cargo);
    if (!start) return tl::unexpected(start.error());
    if (addresses.first_step >= 0)
      for (const auto w : order_.workers)
        start->first_steps.at(w) = static_cast<strategies::Step>(addresses.first_step);
    return site_->prepare(std::make_shared<const StartState>(std::move(*start)));
  }

  SiteActor::stateful_pointer<SiteState> self_;
  std::shared_ptr<const NodeSetup> setup_;
  SiteOrder order_;
  std::unique_ptr<Ground> ground_;
  std::unique_ptr<Site> site_;
};

SiteState::SiteState() = default;
SiteState::~SiteState() = default;

SiteActor::behavior_type site_actor(SiteActor::stateful_pointer<SiteState> self,
                                    std::shared_ptr<const NodeSetup> setup) {
  self->state.body = std::make_unique<SiteBody>(self, std::move(setup));
  self->set_down_handler([self](const caf::down_msg& down) {
    self->state.body->coordinator_gone(down.reason);
    self->quit();
  });
  return {
      [self](const SiteOrder& order) { return self->state.body->open(order); },
      [self](const SiteAddresses& addresses) -> caf::result<SiteReady, SiteMembers> {
        auto ready = self->state.body->prepare(addresses);
        return {std::move(ready), self->state.body->members()};
      },
      [self](const SiteCompany& company) {
        self->state.body->begin(company);
        return SiteBegun{};
      },
      [self](const Halt&) {
        self->state.body->halt();
        self->quit();
      },
  };
}

}  // namespace troupe::actors
