#include "actors/deployment/site_actor.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/deployment/site.hpp"
#include "actors/deployment/site_order_checks.hpp"
#include "actors/protocol/supervision.hpp"
#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/requests/interruptible.hpp"
#include "nn/checkpoint/safetensors.hpp"
#include "transport/net/address.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::actors {

namespace {

/// The payload's bytes are freed before it returns: a start state shares the checkpoint's vectors.
core::Result<StartState> start_of(const RunSpec& spec, StartPayload payload) {
  if (!payload.file) return experiment::start_state(spec, nullptr);
  auto file = nn::parse_safetensors(std::move(payload.file), "the run's checkpoint", nn::Checksums::required);
  if (!file) return tl::unexpected(file.error());
  auto checkpoint = experiment::load(*file, spec.graph);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  return experiment::start_state(spec, &*checkpoint);
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
    if (stage_ != Stage::none) return {.address = {}, .error = "a site that is open", .code = core::Errc::config};
    order_ = order;
    if (auto opened = attempt([this] { return try_open(); }); !opened) {
      auto& error = opened.error();
      setup_->log(fmt::format("{}: {}", describe(order), error.message));
      // Relative paths begin at this node's directory, which a reader elsewhere does not see.
      std::error_code ignored;
      if (error.code == core::Errc::data || error.code == core::Errc::io || error.code == core::Errc::program)
        error.message += fmt::format(" (this node was started in {})", std::filesystem::current_path(ignored).string());
      return {.address = {}, .error = std::move(error.message), .code = error.code};
    }
    return {.address = site_->address(), .error = {}};
  }

  SiteReady compile() {
    return ready(attempt([this] { return try_compile(); }));
  }
  SiteReady prepare(const SiteAddresses& addresses) {
    return ready(attempt([&] { return try_prepare(addresses); }));
  }

  /// Does not block: a run that fails meanwhile ends this site at once.
  [[nodiscard]] caf::result<Measured> measure(const MeasureOrder& order) {
    if (stage_ != Stage::prepared) return Measured{.error = "a site that is not connected", .code = core::Errc::config};
    if (const auto refusal = checks_.check(order)) return Measured{.error = *refusal, .code = core::Errc::config};
    auto promise = self_->make_response_promise<Measured>();
    auto asked = self_->request(site_->exchanger(), kNoDeadline, order);  // ends when nothing moves for kMeasureSilence
    measuring_ = end_when_silent(asked, Movement{site_->moves(), kMeasureSilence});
    asked.then(
        [this, promise](const Measured& told) mutable {
          measuring_ = {};
          promise.deliver(told);
        },
        [this, promise](const caf::error& error) mutable {
          measuring_ = {};
          promise.deliver(Measured{
              .error = fmt::format("site {} could not measure: {}", order_.site, self_->system().render(error)),
              .code = core::Errc::timeout});
        });
    return promise;
  }

  [[nodiscard]] SiteMembers members() const { return site_ ? site_->members() : SiteMembers{}; }

  /// False: the directory does not fit this site, or the site is not prepared.
  [[nodiscard]] bool begin(const SiteDirectory& there) {
    const auto refusal = stage_ == Stage::prepared ? checks_.check(there) : "the site is not prepared yet";
    if (refusal) {
      setup_->log(fmt::format("{}: {}", describe(order_), *refusal));
      return false;
    }
    stage_ = Stage::begun;
    self_->monitor(there.coordinator);
    ActorDirectory actors{.coordinator = there.coordinator,
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
                          .site_hosts = there.site_hosts,
                          .exchange = there.exchange};
    site_->begin(std::move(actors));
    for (const auto& worker : site_->members().workers) self_->monitor(worker);
    setup_->log(fmt::format("{}: begins", describe(order_)));
    if (const auto& memory = site_->memory(); memory.copier || !memory.why_not.empty())
      setup_->log(fmt::format("{}: {}", describe(order_), experiment::describe(memory)));
    if (const auto note = pinning_note({site_->pinning()}); !note.empty()) setup_->log(note);
    return true;
  }

  /// The coordinator or a worker here has ended: it has failed, or the run continues without this site.
  [[nodiscard]] caf::error down(const caf::down_msg& message) {
    const bool worker =
        std::ranges::any_of(members().workers, [&](const auto& member) { return member.address() == message.source; });
    setup_->log(fmt::format("{}: its {} is gone ({})", describe(order_), worker ? "worker" : "coordinator",
                            self_->system().render(message.reason)));
    return halt();
  }

  /// The reason with which the site's actor quits.
  caf::error halt(bool in_order = false) {
    if (!site_) return {};
    measuring_ = {};
    // An actor that does not end in time may still use the context: leak it.
    if (!site_->halt(in_order)) static_cast<void>(new std::shared_ptr(context_));
    const auto failure = site_->program_failure();
    site_.reset();
    setup_->log(fmt::format("{}: ends{}", describe(order_), failure.empty() ? "" : ": " + failure));
    return failure.empty() ? caf::error() : program_failure(failure);
  }

 private:
  /// The last step. Each comes once and in this order, except that prepare() may do the compilation. No step follows a failed one.
  enum class Stage : std::uint8_t { none, open, compiled, prepared, begun, failed };

  /// An invalid order must end no more than this site.
  template <class Step>
  core::Result<void> attempt(const Step& step) {
    core::Result<void> done;
    try {
      done = step();
    } catch (const std::exception& e) {
      done = core::fail(core::Errc::internal, e.what());
    }
    if (!done) stage_ = Stage::failed;
    return done;
  }

  core::Result<void> try_compile() {
    if (stage_ != Stage::open) return core::fail(core::Errc::config, "a site that was not opened, or is compiled");
    stage_ = Stage::compiled;
    return site_->compile();
  }

  core::Result<void> try_open() {
    auto context = setup_->contexts->of(order_.secret, order_.config);
    if (!context) return tl::unexpected(context.error());
    context_ = std::move(*context);
    const auto& data = context_->spec.settings->data;
    if (context_->data != order_.data) {
      return core::fail(core::Errc::data, fmt::format("data set {} in {} is not the one that the coordinator has: give "
                                                      "both the same files",
                                                      data.name, data.path));
    }
    auto exchange = experiment::parse_exchange(order_.exchange, "the order for a site");
    if (!exchange) return tl::unexpected(exchange.error());
    checks_ = SiteOrderChecks(order_, context_->spec, *exchange);
    if (const auto refusal = checks_.check()) return core::fail(core::Errc::config, *refusal);
    if (const auto* const endpoint = transport::find_endpoint(exchange->endpoint))
      if (auto fits = transport::check_open_files(*endpoint, order_.sites_here, checks_.sites()); !fits) return fits;
    SiteSetup site{.site = order_.site,
                   .workers = order_.workers,
                   .servers = order_.servers,
                   .exchange = std::move(*exchange),
                   .options = {},
                   .most_floats = order_.most_floats,
                   .fingerprint = order_.layout};
    site.options.secret = order_.secret;
    if (order_.between_hosts) site.options.ucx_transports = transport::ucx_transports_between_hosts();
    site.options.tcp.listen = transport::bracketed(setup_->data_host) + ":0";
    site.options.tcp.tls = setup_->tls;
    site.options.tcp.on_refused = [log = setup_->log,
                                   who = describe(order_)](const transport::RefusedConnection& refusal) {
      log(fmt::format("{}: rejected {}: {}", who, refusal.from, refusal.why));
    };
    if (!order_.plan.empty()) site.plan = nn::Plan{order_.plan};
    site_ = std::make_unique<Site>(context_->of(self_->system()), std::move(site));
    stage_ = Stage::open;
    return site_->open();
  }

  [[nodiscard]] SiteReady ready(const core::Result<void>& result) const {
    if (result) return {.error = {}, .pinning = site_->pinning()};
    setup_->log(fmt::format("{}: {}", describe(order_), result.error().message));
    return {.error = result.error().message, .code = result.error().code};
  }

  core::Result<void> try_prepare(const SiteAddresses& addresses) {
    if (stage_ != Stage::open && stage_ != Stage::compiled)
      return core::fail(core::Errc::config, "a site that was not opened, or has its addresses");
    if (const auto refusal = checks_.check(addresses)) return core::fail(core::Errc::config, *refusal);
    stage_ = Stage::prepared;
    site_->meet(addresses);
    StartPayload payload;
    if (order_.resumed) {
      auto fetched = site_->fetch_start();
      if (!fetched) return tl::unexpected(fetched.error());
      payload = *fetched;
    }
    auto start = start_of(context_->spec, std::move(payload));
    if (!start) return tl::unexpected(start.error());
    start->versions = addresses.versions;
    if (addresses.first_step >= 0) {  // a newcomer: its program begins anew
      start->own_states.clear();
      for (const auto w : order_.workers)
        start->first_steps.at(w) = static_cast<strategies::Step>(addresses.first_step);
    }
    return site_->prepare(std::make_shared<const StartState>(std::move(*start)));
  }

  SiteActor::stateful_pointer<SiteState> self_;
  std::shared_ptr<const NodeSetup> setup_;
  SiteOrder order_;
  SiteOrderChecks checks_;
  Stage stage_ = Stage::none;
  std::shared_ptr<RunContext> context_;
  std::unique_ptr<Site> site_;
  std::jthread measuring_;  // while the site measures: it watches the movement of bytes
};

SiteState::SiteState() = default;
SiteState::~SiteState() = default;

SiteActor::behavior_type site_actor(SiteActor::stateful_pointer<SiteState> self,
                                    std::shared_ptr<const NodeSetup> setup) {
  self->state.body = std::make_unique<SiteBody>(self, std::move(setup));
  self->set_default_handler(caf::drop);
  self->set_down_handler([self](const caf::down_msg& down) { self->quit(self->state.body->down(down)); });
  return {
      [self](const SiteOrder& order) { return self->state.body->open(order); },
      [self](const CompileOrder&) { return self->state.body->compile(); },
      [self](const SiteAddresses& addresses) -> caf::result<SiteReady, SiteMembers> {
        auto ready = self->state.body->prepare(addresses);
        return {std::move(ready), self->state.body->members()};
      },
      [self](const SiteDirectory& actors) -> caf::result<SiteBegun> {
        if (self->state.body->begin(actors)) return SiteBegun{};
        return caf::sec::invalid_argument;
      },
      [self](const MeasureOrder& order) { return self->state.body->measure(order); },
      [self](const Halt& halt) { self->quit(self->state.body->halt(halt.in_order)); },
  };
}

}  // namespace troupe::actors
