#include "actors/deployment/rejoin_manager.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "actors/deployment/rejoin_pauses.hpp"
#include "actors/protocol/proxy.hpp"
#include "actors/protocol/refusal.hpp"
#include "actors/protocol/supervision.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/requests/timer.hpp"
#include "core/clock.hpp"
#include "experiment/state/checkpoint.hpp"

namespace troupe::actors {

namespace {

constexpr auto kLookEvery = kShortestPause;
constexpr core::Duration kReconnectDeadline = std::chrono::seconds(2);
constexpr auto kPatience = std::chrono::milliseconds(500);

}  // namespace

core::Result<StartPayload> read_start(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(file ? static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0)) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file || bytes.empty()) return core::fail(core::Errc::io, path + ": cannot be read");
  return StartPayload{std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
}

class RejoinManagerBody {
 public:
  RejoinManagerBody(RejoinManagerActor::stateful_pointer<RejoinManagerState> self, RejoinManagerSetup setup)
      : self_(self), setup_(std::move(setup)) {}

  void vacant(const Vacancy& vacancy) {
    seeker_ = caf::actor_cast<CoordinatorActor>(self_->current_sender());
    auto& replacement = replacements_[vacancy.worker];
    if (replacement.member)
      self_->send(*std::exchange(replacement.member, std::nullopt), Halt{});  // the site that is lost now
    drop(replacement);                                                        // a site not yet admitted
    replacement.vacant = true;
    replacement.pauses.lost(clock_.now());
    look_soon();
  }

  void transfer_seen(const TransferNews& news) { silences_.moved(news.sites); }
  void tick() {
    silences_.check(clock_.now());
    look();
  }

  /// Tries the lost nodes in turn. A host that does not answer blocks this actor for its deadline: the next nodes then wait for the next
  /// look, so that waiting messages are handled first.
  void look() {
    looking_ = false;
    std::map<std::pair<std::string, std::uint16_t>, core::Result<NodeActor>> tried;
    bool slow = admissions_ > 0;  // training waits for admissions
    const auto turns = replacements_.size();
    for (std::size_t k = 0; k < turns && !slow; ++k) {
      auto turn = replacements_.upper_bound(last_);
      if (turn == replacements_.end()) turn = replacements_.begin();
      last_ = turn->first;
      auto& replacement = turn->second;
      if (!is_sought(replacement) || clock_.now() < replacement.pauses.not_before()) continue;
      const auto& at = setup_.nodes.at(last_);
      const auto began = clock_.now();
      auto node = tried.find({at.host, at.port});
      if (node == tried.end())
        node = tried.emplace(std::pair(at.host, at.port), setup_.network->connect<NodeActor>(at, kReconnectDeadline))
                   .first;
      slow = clock_.now() - began > kPatience;
      if (node->second) ask(last_, *node->second);
    }
    const bool any = std::ranges::any_of(replacements_, [](const auto& entry) { return is_sought(entry.second); });
    if (any || admissions_ > 0) look_soon();
  }

  [[nodiscard]] caf::result<Admission, SiteMembers, OpenedSite> admit(const AdmissionOrder& order) {
    const auto replacement = replacements_.find(order.worker);
    if (replacement == replacements_.end() || !replacement->second.site)
      return {Admission{"there is no site"}, SiteMembers{}, OpenedSite{}};
    SiteAddresses addresses{std::vector<std::string>(setup_.sites), static_cast<std::int64_t>(order.first_step),
                            order.versions};
    addresses.texts.front() = setup_.address;
    const auto site = *replacement->second.site;
    // Before the promise is made: if memory runs out, this actor ends, and CAF answers only a request without a promise.
    auto start = experiment::encode_for_newcomer(order.checkpoint);
    auto promise = self_->make_response_promise<Admission, SiteMembers, OpenedSite>();
    const auto failed = [this, promise, worker = order.worker](const caf::error& error) {
      const auto why = reason_of(self_->system(), error);
      if (!is_gone(error)) return refuse(worker, promise, why);
      replacements_[worker].site.reset();  // the node is lost again: no backoff
      end_admission(promise, why);
    };
    ++admissions_;
    look_soon();
    if (!start) {
      refuse(order.worker, promise, start.error().message);
      return promise;
    }
    self_->send(setup_.exchanger, StartPayload{std::make_shared<const std::vector<std::byte>>(std::move(*start))});
    self_
        ->request(setup_.exchanger, kEndpointDeadline,
                  SiteMoved{setup_.orders.at(order.worker).site, replacement->second.address})
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

  /// Ends all sites, and then this actor, whose reason is the first failure of a newcomer's program.
  void halt(const Halt& halt) {
    for (auto& [worker, replacement] : replacements_) {
      drop(replacement);
      if (replacement.member) self_->send(*replacement.member, halt);
      // A node ends a site with the proxy that ordered it, which must not come before the end in order.
      if (replacement.member && halt.in_order) {
        self_->monitor(*replacement.member);
        ending_.push_back(replacement.node);
      } else if (replacement.node) {
        self_->send_exit(replacement.node, caf::exit_reason::user_shutdown);  // also ends an open request
      }
    }
    replacements_.clear();
    alive_ = ending_.size();
    if (alive_ == 0) return self_->quit();
    self_->set_down_handler([this](const caf::down_msg& message) { down(message); });
  }

 private:
  struct Replacement {
    bool vacant = false;              // the coordinator waits for a newcomer
    NodeActor node{};                 // proxies, these three: they answer when the process is lost
    std::optional<SiteActor> site;    // open, compiling or compiled; not yet a member
    std::optional<SiteActor> member;  // an admitted newcomer's site
    std::string address;
    std::string reported;  // the last reported reason
    RejoinPauses pauses;
    bool asking = false;
  };

  void down(const caf::down_msg& message) {
    if (failure_.empty()) failure_ = program_failure_of(message.reason).value_or("");
    if (--alive_ > 0) return;
    for (const auto& node : ending_) self_->send_exit(node, caf::exit_reason::user_shutdown);
    self_->quit(failure_.empty() ? caf::error() : program_failure(failure_));
  }

  static bool is_sought(const Replacement& replacement) {
    return replacement.vacant && !replacement.site && !replacement.asking;
  }

  void look_soon() {
    if (!std::exchange(looking_, true)) timer_.send(kLookEvery, Tick{});
  }

  /// Ends a site that is not a member. It may compile for minutes: its proxy exits now, and the answer is lost.
  void drop(Replacement& replacement) {
    if (!replacement.site) return;
    const auto site = *std::exchange(replacement.site, std::nullopt);
    self_->send(site, Halt{});
    self_->send_exit(site, caf::exit_reason::user_shutdown);
  }

  void ask(strategies::WorkerId worker, const NodeActor& node) {
    auto& replacement = replacements_[worker];
    if (replacement.node)
      self_->send_exit(replacement.node, caf::exit_reason::user_shutdown);  // of a node that refused or is lost
    auto order = setup_.orders.at(worker);
    order.resumed = true;
    replacement.asking = true;
    replacement.node = self_->spawn(node_proxy, node);
    self_->request(replacement.node, kOpenDeadline, order)
        .then([this, worker](const SiteOpened& opened,
                             const OpenedSite& there) { this->opened(worker, opened, there.site); },
              [this, worker](const caf::error& error) {
                replacements_[worker].asking = false;
                self_->send_exit(replacements_[worker].node, caf::exit_reason::user_shutdown);
                look_soon();
                if (!is_gone(error)) report_once(worker, self_->system().render(error));
              });
  }

  using Admitting = caf::typed_response_promise<Admission, SiteMembers, OpenedSite>;
  void accept(strategies::WorkerId worker, Admitting promise, const SiteMembers& members, const SiteActor& site) {
    auto& replacement = replacements_[worker];
    replacement.member = std::exchange(replacement.site, std::nullopt);
    replacement.pauses.admitted(clock_.now());
    replacement.reported.clear();  // a later failure is reported again
    end_admission(promise, {}, members, OpenedSite{site});
  }

  void end_admission(Admitting promise, const std::string& why, const SiteMembers& members = {},
                     const OpenedSite& site = {}) {
    --admissions_;
    self_->send(setup_.exchanger, StartPayload{});  // frees the checkpoint's bytes
    promise.deliver(Admission{why}, members, site);
  }

  void refuse(strategies::WorkerId worker, Admitting promise, const std::string& why) {
    turn_down(worker, why);
    end_admission(promise, why);
  }

  /// After expensive failures comes a pause.
  void turn_down(strategies::WorkerId worker, const std::string& why) {
    report_once(worker, why);
    auto& replacement = replacements_[worker];
    drop(replacement);
    replacement.pauses.refused(clock_.now());
  }

  /// Reports a reason once, not again at each look.
  void report_once(strategies::WorkerId worker, const std::string& why) {
    if (std::exchange(replacements_[worker].reported, why) == why) return;
    self_->send(setup_.recorder,
                Note{Note::Level::warning, fmt::format("node {} is there, but does not take the place of worker {}: {}",
                                                       setup_.names.at(worker), worker, one_line(why))});
  }

  void opened(strategies::WorkerId worker, const SiteOpened& opened, const SiteActor& site) {
    auto& replacement = replacements_[worker];
    replacement.asking = false;
    look_soon();
    if (!opened.error.empty()) return report_once(worker, opened.error);
    if (!replacement.vacant) return self_->send(site, Halt{});
    replacement.site = self_->spawn(site_proxy, site);
    replacement.address = opened.address;
    compile(worker, *replacement.site);
  }

  /// Training continues meanwhile; it pauses only for the admission.
  void compile(strategies::WorkerId worker, const SiteActor& site) {
    const auto current = [this, worker, site] {  // false after another vacancy or the end of the run
      const auto found = replacements_.find(worker);
      return found != replacements_.end() && found->second.site == site;
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
              replacements_[worker].vacant = false;
              self_->send(seeker_, Arrived{worker});
            },
            [this, worker, current, failed](const caf::error& error) {
              if (!current()) return;
              if (!is_gone(error)) return failed(self_->system().render(error));
              replacements_[worker].site.reset();  // the node is lost again: no backoff
              look_soon();
            });
  }

  RejoinManagerActor::stateful_pointer<RejoinManagerState> self_;
  Timer timer_{self_};
  RejoinManagerSetup setup_;
  std::map<strategies::WorkerId, Replacement> replacements_;
  strategies::WorkerId last_ = 0;  // the worker whose node was tried last
  unsigned admissions_ = 0;        // under way
  core::SteadyClock clock_;
  SilenceDeadlines silences_;  // of newcomers being prepared
  CoordinatorActor seeker_;
  bool looking_ = false;
  std::vector<NodeActor> ending_;  // the nodes of newcomers whose sites end in order
  std::size_t alive_ = 0;          // such sites that have not ended
  std::string failure_;
};

RejoinManagerState::RejoinManagerState() = default;
RejoinManagerState::~RejoinManagerState() = default;

RejoinManagerActor::behavior_type rejoin_manager(RejoinManagerActor::stateful_pointer<RejoinManagerState> self,
                                                 RejoinManagerSetup setup) {
  self->state.body = std::make_unique<RejoinManagerBody>(self, std::move(setup));
  return {
      [self](const Vacancy& vacancy) { self->state.body->vacant(vacancy); },
      [self](const AdmissionOrder& order) { return self->state.body->admit(order); },
      [self](const TransferNews& news) { self->state.body->transfer_seen(news); },
      [self](const Tick&) { self->state.body->tick(); },
      [self](const Halt& halt) { self->state.body->halt(halt); },
  };
}

}  // namespace troupe::actors
