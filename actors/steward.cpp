#include "actors/steward.hpp"

#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "actors/deadlines.hpp"
#include "actors/stand_in.hpp"
#include "actors/vocabulary.hpp"

namespace troupe::actors {

namespace {

constexpr auto kLookEvery = std::chrono::seconds(2);
constexpr core::Duration kConnectDeadline = std::chrono::seconds(2);

}  // namespace

core::Result<StartCargo> read_start(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) return core::fail(core::Errc::io, path + ": cannot be read");
  const auto bytes = std::as_bytes(std::span(text));
  return StartCargo{std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end())};
}

class StewardBody {
 public:
  StewardBody(StewardActor::stateful_pointer<StewardState> self, StewardSetup setup)
      : self_(self), setup_(std::move(setup)) {}

  [[nodiscard]] caf::result<Arrived> vacant(const Vacancy& vacancy) {
    auto& place = places_[vacancy.worker];
    // A site that was open, and did not become a member's after all.
    if (place.site) self_->send(*std::exchange(place.site, std::nullopt), Halt{});
    place.promise = self_->make_response_promise<Arrived>();
    const auto promise = *place.promise;
    if (!std::exchange(looking_, true)) self_->delayed_send(self_, kLookEvery, Tick{});
    return promise;
  }

  void look() {
    looking_ = false;
    for (auto& [worker, place] : places_) {
      if (place.site || place.asking || !place.promise) continue;
      const auto node = setup_.network->connect<NodeActor>(setup_.nodes.at(worker), kConnectDeadline);
      if (!node) continue;  // not yet
      auto order = setup_.orders.at(worker);
      order.resumed = true;
      place.asking = true;
      place.node = self_->spawn(stand_in_node, *node);
      self_->request(place.node, kOpenDeadline, order)
          .then([this, worker = worker](const SiteOpened& opened,
                                        const OpenedSite& there) { this->opened(worker, opened, there.site); },
                [this, worker = worker](const caf::error& error) {
                  places_[worker].asking = false;
                  const bool gone = error == caf::exit_reason::remote_link_unreachable;
                  if (!gone) complain(worker, self_->system().render(error));
                });
    }
    for (const auto& [worker, place] : places_)
      if (!place.site && place.promise) looking_ = true;
    if (looking_) self_->delayed_send(self_, kLookEvery, Tick{});
  }

  [[nodiscard]] caf::result<Admission, SiteMembers, OpenedSite> admit(const AdmissionOrder& order) {
    const auto place = places_.find(order.worker);
    if (place == places_.end() || !place->second.site)
      return {Admission{"there is no site"}, SiteMembers{}, OpenedSite{}};
    auto start = read_start(order.checkpoint);
    if (!start) return {Admission{start.error().message}, SiteMembers{}, OpenedSite{}};
    const auto site = *place->second.site;
    const auto number = setup_.orders.at(order.worker).site;
    self_->send(setup_.exchanger, *start);
    self_->send(setup_.exchanger, SiteMoved{number, place->second.address});
    SiteAddresses addresses{std::vector<std::string>(setup_.sites), static_cast<std::int64_t>(order.first_step),
                            order.versions};
    addresses.texts.front() = setup_.address;
    auto promise = self_->make_response_promise<Admission, SiteMembers, OpenedSite>();
    self_->request(site, kPrepareDeadline, addresses)
        .then(
            [promise, site](const SiteReady& ready, const SiteMembers& members) mutable {
              promise.deliver(Admission{ready.error}, members, OpenedSite{site});
            },
            [this, promise](const caf::error& error) mutable {
              promise.deliver(Admission{self_->system().render(error)}, SiteMembers{}, OpenedSite{});
            });
    return promise;
  }

  void halt() {
    for (const auto& [worker, place] : places_) {
      if (place.node) self_->send_exit(place.node, caf::exit_reason::user_shutdown);  // it may wait for an answer
      if (place.site) self_->send(*place.site, Halt{});
    }
    places_.clear();
  }

 private:
  struct Place {
    std::optional<caf::typed_response_promise<Arrived>> promise;
    NodeActor node{};  // stand-ins: they answer when the process is lost
    std::optional<SiteActor> site;
    std::string address;
    std::string complaint;  // the last
    bool asking = false;
  };

  /// Once for each reason: the next look comes soon.
  void complain(strategies::WorkerId worker, const std::string& why) {
    if (std::exchange(places_[worker].complaint, why) == why) return;
    self_->send(setup_.recorder,
                Note{Note::Level::warning, fmt::format("node {} is there, but does not take the place of worker {}: {}",
                                                       setup_.names.at(worker), worker, why)});
  }

  void opened(strategies::WorkerId worker, const SiteOpened& opened, const SiteActor& site) {
    auto& place = places_[worker];
    place.asking = false;
    if (!opened.error.empty()) return complain(worker, opened.error);
    if (!place.promise) return self_->send(site, Halt{});
    place.complaint.clear();
    place.site = self_->spawn(stand_in_site, site);
    place.address = opened.address;
    place.promise->deliver(Arrived{});
    place.promise.reset();
  }

  StewardActor::stateful_pointer<StewardState> self_;
  StewardSetup setup_;
  std::map<strategies::WorkerId, Place> places_;
  bool looking_ = false;
};

StewardState::StewardState() = default;
StewardState::~StewardState() = default;

StewardActor::behavior_type steward(StewardActor::stateful_pointer<StewardState> self, StewardSetup setup) {
  self->state.body = std::make_unique<StewardBody>(self, std::move(setup));
  return {
      [self](const Vacancy& vacancy) { return self->state.body->vacant(vacancy); },
      [self](const AdmissionOrder& order) { return self->state.body->admit(order); },
      [self](const Tick&) { self->state.body->look(); },
      [self](const Halt&) {
        self->state.body->halt();
        self->quit();
      },
  };
}

}  // namespace troupe::actors
