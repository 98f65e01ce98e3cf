#include "actors/deployment/steward.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/coordinator/member_rules.hpp"
#include "actors/protocol/proxy.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "core/clock.hpp"

namespace troupe::actors {

namespace {

constexpr std::chrono::seconds kLookEvery{2};
constexpr std::chrono::seconds kLongestPause = std::chrono::minutes(5);
constexpr core::Duration kConnectDeadline = std::chrono::seconds(2);
constexpr auto kPatience = std::chrono::milliseconds(500);

}  // namespace

core::Result<StartCargo> read_start(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(file ? static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0)) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file || bytes.empty()) return core::fail(core::Errc::io, path + ": cannot be read");
  return StartCargo{std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
}

class StewardBody {
 public:
  StewardBody(StewardActor::stateful_pointer<StewardState> self, StewardSetup setup)
      : self_(self), setup_(std::move(setup)) {}

  void vacant(const Vacancy& vacancy) {
    seeker_ = caf::actor_cast<CoordinatorActor>(self_->current_sender());
    auto& place = places_[vacancy.worker];
    if (place.member) self_->send(*std::exchange(place.member, std::nullopt), Halt{});  // the one that was lost now
    drop(place);                                                                        // one that was not let in
    place.vacant = true;
    look_soon();
  }

  void moved(const TransferNews& news) { silences_.moved(news.sites); }
  void tick() {
    silences_.check(clock_.now());
    look();
  }

  /// A host that does not answer costs its deadline: then the others' turn comes after what has arrived here meanwhile.
  void look() {
    looking_ = false;
    std::map<std::pair<std::string, std::uint16_t>, core::Result<NodeActor>> tried;
    bool slow = admissions_ > 0;  // everybody waits for those
    const auto turns = places_.size();
    for (std::size_t k = 0; k < turns && !slow; ++k) {
      auto turn = places_.upper_bound(last_);
      if (turn == places_.end()) turn = places_.begin();
      last_ = turn->first;
      auto& place = turn->second;
      if (!is_sought(place) || clock_.now() < place.not_before) continue;
      const auto& at = setup_.nodes.at(last_);
      const auto began = clock_.now();
      auto node = tried.find({at.host, at.port});
      if (node == tried.end())
        node =
            tried.emplace(std::pair(at.host, at.port), setup_.network->connect<NodeActor>(at, kConnectDeadline)).first;
      slow = clock_.now() - began > kPatience;
      if (node->second) ask(last_, *node->second);
    }
    const bool any = std::ranges::any_of(places_, [](const auto& entry) { return is_sought(entry.second); });
    if (any || admissions_ > 0) look_soon();
  }

  [[nodiscard]] caf::result<Admission, SiteMembers, OpenedSite> admit(const AdmissionOrder& order) {
    const auto place = places_.find(order.worker);
    if (place == places_.end() || !place->second.site)
      return {Admission{"there is no site"}, SiteMembers{}, OpenedSite{}};
    SiteAddresses addresses{std::vector<std::string>(setup_.sites), static_cast<std::int64_t>(order.first_step),
                            order.versions};
    addresses.texts.front() = setup_.address;
    const auto site = *place->second.site;
    auto promise = self_->make_response_promise<Admission, SiteMembers, OpenedSite>();
    const auto failed = [this, promise, worker = order.worker](const caf::error& error) {
      const auto why = reason_of(self_->system(), error);
      if (!is_gone(error)) return refuse(worker, promise, why);
      places_[worker].site.reset();  // nothing that it could be blamed for
      end_admission(promise, why);
    };
    ++admissions_;
    look_soon();
    auto start = read_start(order.checkpoint);
    if (!start) {
      refuse(order.worker, promise, start.error().message);
      return promise;
    }
    self_->send(setup_.exchanger, *start);
    self_
        ->request(setup_.exchanger, kEndpointDeadline,
                  SiteMoved{setup_.orders.at(order.worker).site, place->second.address})
        .then(
            [this, promise, failed, site, addresses, worker = order.worker](const SiteAddress& moved) {
              if (!moved.error.empty()) return refuse(worker, promise, moved.error);
              ask_until_silent<SiteReady, SiteMembers>(
                  self_, silences_, {setup_.orders.at(worker).site}, kPrepareSilence, site,
                  [this, promise, site, worker](const SiteReady& ready, const SiteMembers& members) {
                    if (!ready.error.empty()) return refuse(worker, promise, ready.error);
                    accept(worker, promise, members, site);
                  },
                  failed, addresses);
            },
            failed);
    return promise;
  }

  void halt() {
    for (auto& [worker, place] : places_) {
      if (place.node) self_->send_exit(place.node, caf::exit_reason::user_shutdown);  // it may wait for an answer
      drop(place);
      if (place.member) self_->send(*place.member, Halt{});
    }
    places_.clear();
  }

 private:
  struct Place {
    bool vacant = false;              // the coordinator waits for somebody
    NodeActor node{};                 // stand-ins: they answer when the process is lost
    std::optional<SiteActor> site;    // open, compiling or compiled, and nobody's yet
    std::optional<SiteActor> member;  // of a newcomer
    std::string address;
    std::string complaint;         // the last
    unsigned refusals = 0;         // in a row, after it was open
    core::Duration not_before{0};  // of the next look
    bool asking = false;
  };

  static bool is_sought(const Place& place) { return place.vacant && !place.site && !place.asking; }

  void look_soon() {
    if (!std::exchange(looking_, true)) self_->delayed_send(self_, kLookEvery, Tick{});
  }

  /// A site that is not let in. It may be compiling, for minutes: nobody waits for its answer.
  void drop(Place& place) {
    if (!place.site) return;
    const auto site = *std::exchange(place.site, std::nullopt);
    self_->send(site, Halt{});
    self_->send_exit(site, caf::exit_reason::user_shutdown);
  }

  void ask(strategies::WorkerId worker, const NodeActor& node) {
    auto& place = places_[worker];
    if (place.node) self_->send_exit(place.node, caf::exit_reason::user_shutdown);  // its node has said no, or has gone
    auto order = setup_.orders.at(worker);
    order.resumed = true;
    place.asking = true;
    place.node = self_->spawn(stand_in_node, node);
    self_->request(place.node, kOpenDeadline, order)
        .then([this, worker](const SiteOpened& opened,
                             const OpenedSite& there) { this->opened(worker, opened, there.site); },
              [this, worker](const caf::error& error) {
                places_[worker].asking = false;
                self_->send_exit(places_[worker].node, caf::exit_reason::user_shutdown);
                look_soon();
                if (!is_gone(error)) complain(worker, self_->system().render(error));
              });
  }

  using Admitting = caf::typed_response_promise<Admission, SiteMembers, OpenedSite>;
  void accept(strategies::WorkerId worker, Admitting promise, const SiteMembers& members, const SiteActor& site) {
    auto& place = places_[worker];
    place.member = std::exchange(place.site, std::nullopt);
    place.refusals = 0;
    place.complaint.clear();  // whatever it was, it is over
    end_admission(promise, {}, members, OpenedSite{site});
  }

  void end_admission(Admitting promise, const std::string& why, const SiteMembers& members = {},
                     const OpenedSite& site = {}) {
    --admissions_;
    self_->send(setup_.exchanger, StartCargo{});  // nobody needs the file any more
    promise.deliver(Admission{why}, members, site);
  }

  void refuse(strategies::WorkerId worker, Admitting promise, const std::string& why) {
    turn_down(worker, why);
    end_admission(promise, why);
  }

  /// What one cannot do now, and has cost it or all of them much, it is not asked again soon.
  void turn_down(strategies::WorkerId worker, const std::string& why) {
    complain(worker, why);
    auto& place = places_[worker];
    drop(place);
    place.not_before = clock_.now() + std::min(kLookEvery * (1U << std::min(++place.refusals, 10U)), kLongestPause);
  }

  /// Once for each reason: the next look comes soon.
  void complain(strategies::WorkerId worker, const std::string& why) {
    if (std::exchange(places_[worker].complaint, why) == why) return;
    self_->send(setup_.recorder,
                Note{Note::Level::warning, fmt::format("node {} is there, but does not take the place of worker {}: {}",
                                                       setup_.names.at(worker), worker, one_line(why))});
  }

  void opened(strategies::WorkerId worker, const SiteOpened& opened, const SiteActor& site) {
    auto& place = places_[worker];
    place.asking = false;
    look_soon();
    if (!opened.error.empty()) return complain(worker, opened.error);
    if (!place.vacant) return self_->send(site, Halt{});
    place.site = self_->spawn(stand_in_site, site);
    place.address = opened.address;
    compile(worker, *place.site);
  }

  /// The others train on meanwhile: they stand still only for what needs them.
  void compile(strategies::WorkerId worker, const SiteActor& site) {
    const auto current = [this, worker, site] {  // not when there is another vacancy, or it is all over
      const auto found = places_.find(worker);
      return found != places_.end() && found->second.site == site;
    };
    const auto failed = [this, worker](const std::string& why) {
      look_soon();
      turn_down(worker, why);
    };
    self_->request(site, kCompileDeadline + kMargin, CompileOrder{})
        .then(
            [this, worker, current, failed](const SiteReady& ready) {
              if (!current()) return;
              if (!ready.error.empty()) return failed(ready.error);
              places_[worker].vacant = false;
              self_->send(seeker_, Arrived{worker});
            },
            [this, worker, current, failed](const caf::error& error) {
              if (!current()) return;
              if (!is_gone(error)) return failed(self_->system().render(error));
              places_[worker].site.reset();  // nothing that it could be blamed for
              look_soon();
            });
  }

  StewardActor::stateful_pointer<StewardState> self_;
  StewardSetup setup_;
  std::map<strategies::WorkerId, Place> places_;
  strategies::WorkerId last_ = 0;  // whose turn it was
  unsigned admissions_ = 0;        // under way
  core::SteadyClock clock_;
  SilenceDeadlines silences_;  // of newcomers that get ready
  CoordinatorActor seeker_;
  bool looking_ = false;
};

StewardState::StewardState() = default;
StewardState::~StewardState() = default;

StewardActor::behavior_type steward(StewardActor::stateful_pointer<StewardState> self, StewardSetup setup) {
  self->state.body = std::make_unique<StewardBody>(self, std::move(setup));
  return {
      [self](const Vacancy& vacancy) { self->state.body->vacant(vacancy); },
      [self](const AdmissionOrder& order) { return self->state.body->admit(order); },
      [self](const TransferNews& news) { self->state.body->moved(news); },
      [self](const Tick&) { self->state.body->tick(); },
      [self](const Halt&) {
        self->state.body->halt();
        self->quit();
      },
  };
}

}  // namespace troupe::actors
