#include "actors/server/server.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "actors/protocol/journal_batch.hpp"
#include "actors/protocol/membership_inbox.hpp"
#include "actors/protocol/supervision.hpp"
#include "actors/protocol/vocabulary.hpp"
#include "actors/requests/timer.hpp"
#include "experiment/accounts/distance.hpp"
#include "experiment/bad_updates.hpp"
#include "nn/hash.hpp"
#include "strategies/host/server_host.hpp"

namespace troupe::actors {

using strategies::RequestId;

constexpr core::Duration kFlushEvery = std::chrono::milliseconds(100);

/// The port of one ServerHost, with the shard's memory. Used only by the thread that executes the actor.
class ServerBody final : public strategies::ServerPort, public strategies::ServerObserver {
 public:
  ServerBody(ServerActor::stateful_pointer<ServerState> self, ServerSetup setup)
      : self_(self), setup_(std::move(setup)), meter_(*setup_.kernels, setup_.scratch) {}

  void begin(const ActorDirectory& actors) {
    actors_ = actors;
    strategies::Membership membership{actors.membership_epoch, {}};
    for (strategies::WorkerId w = 0; w < actors.workers.size(); ++w) membership.workers.push_back(w);
    members_ = membership.workers;
    host_.emplace(setup_.strategy->server(), *this,
                  strategies::ServerHostOptions{setup_.self, membership, setup_.version}, this);
    if (const auto early = news_.begin(actors.membership_epoch)) hear(*early);
  }

  void membership(const MembershipNews& news) {
    if (news_.take(news)) hear(news);
  }

  void request(const ShardMessage& message, const BorrowedView& slice) {
    if (!std::ranges::binary_search(members_, message.request.worker)) return;
    // The host treats such a version as a bug; a worker in another process may send any value.
    if (message.request.version > host_->version()) return refuse(message);
    auto request = message.request;
    request.id = ++last_request_;
    payloads_.emplace(request.id, slice);
    if (message.measure) measured_.emplace(request.id, Measured{request.kind});
    // Time spent on the worker's own earlier requests is not waiting for other workers.
    auto& served = served_[request.worker];
    const auto since = std::max(core::Duration{message.sent_ns}, served);
    const auto queued = message.sent_ns > 0 ? now() - since : core::Duration{0};
    host_->request(request, std::max(queued, core::Duration{0}));
    served = now();
    if (request.kind != strategies::Transfer::pull) note_bad_push(request.worker);
    // A crash costs at most a moment of records: workers' records cannot be replayed without the server's.
    if (journal_.large() || served - flushed_at_ >= kFlushEvery) flush();
  }

  caf::result<SnapshotTaken> snapshot(const SnapshotOrder& order, const BorrowedView& space) {
    const auto source = setup_.memory->view(order.slot);
    if (source.empty() || source.size() != space.data.size()) return caf::sec::invalid_argument;
    setup_.kernels->download(space.data, source);
    const SnapshotTaken taken{order.id, nn::hash64(std::as_bytes(space.data)),
                              host_ ? host_->version() : setup_.version};
    if (setup_.journal) journal_.add(encode(SnapshotRecord{true, setup_.self, order.slot, taken.hash}));
    flush();
    return taken;
  }

  [[nodiscard]] MemberState state() {
    return {.state = host_->rule().state(), .version = host_->version(), .peer_messages = {}, .peer_message_slots = {}};
  }

  void deadline_reached(strategies::DeadlineId id) {
    if (host_) host_->deadline_passed(id);
  }

  void halt() {
    host_.reset();
    payloads_.clear();
    measured_.clear();
  }

  // strategies::ServerPort
  core::Duration now() const override { return setup_.clock->now(); }
  bool usable(RequestId payload) const override {
    return setup_.kernels->all_within(payloads_.at(payload).data, core::kLargestUsable);
  }
  void run(const strategies::KernelCall& call, RequestId payload) override {
    if (!measured_.empty()) measure(call, payload);
    setup_.memory->run(call, payload == 0 ? core::Span{} : payloads_.at(payload).data);
  }
  void reply(const strategies::ShardReply& reply) override {
    payloads_.erase(reply.request);
    ShardAnswer answer{reply};
    if (const auto measured = measured_.extract(reply.request)) answer.squared_distance = measured.mapped().squared;
    self_->send(actors_.workers.at(reply.worker), std::move(answer));
  }
  void set_deadline(strategies::DeadlineId id, core::Duration after) override {
    timer_.send(after, DeadlineReached{id});
  }

  // strategies::ServerObserver
  void consumed(const strategies::ServerEvent& event) override {
    if (setup_.journal) journal_.add(setup_.self, event);
  }
  void dropped(const strategies::Request&, const std::string&) override {}
  void refused(const strategies::Request&) override { refused_ = true; }

 private:
  /// A request whose distance from the centre its worker wants to know.
  struct Measured {
    strategies::Transfer kind{};
    double squared = -1;  // below 0: not yet
  };
  void measure(const strategies::KernelCall& call, RequestId payload) {
    const auto found = measured_.find(payload);
    if (found == measured_.end() || found->second.squared >= 0) return;
    if (!experiment::ends_at_server(call, found->second.kind)) return;
    const auto center = setup_.memory->view(strategies::kCenter);
    found->second.squared = meter_.squared(payloads_.at(payload).data, center).value_or(-1);
  }
  void refuse(const ShardMessage& message) {
    const auto& request = message.request;
    ShardAnswer answer{{.worker = request.worker, .shard = message.shard, .exchange = request.exchange}};
    answer.refused = fmt::format("it has seen version {} of shard {}, which has come to {}", request.version,
                                 setup_.self, host_->version());
    self_->send(actors_.workers.at(request.worker), std::move(answer));
  }

  /// Counts the last push of `worker` if it was refused: reports it, and ends the run after too many in a row.
  void note_bad_push(strategies::WorkerId worker) {
    auto& bad = bad_.try_emplace(worker, setup_.max_bad_updates).first->second;
    if (!std::exchange(refused_, false)) return bad.good();
    bad.bad();
    const auto text = experiment::bad_push(worker, setup_.self, bad);
    if (bad.too_many())
      self_->send(actors_.coordinator,
                  RunError{core::Errc::diverged, text + ": diverged; try a smaller train.lr", actors_.site});
    else if (bad.worth_a_warning())
      self_->send(actors_.recorder, Note{Note::Level::warning, text});
  }

  /// Requests of former members are ignored from now on.
  void hear(const MembershipNews& news) {
    members_ = news.workers;
    if (host_) host_->membership_changed({news.epoch, news.workers});
    flush();
  }

  void flush() {
    flushed_at_ = now();
    if (!journal_.empty()) self_->send(actors_.recorder, journal_.take());
  }

  ServerActor::stateful_pointer<ServerState> self_;
  Timer timer_{self_};
  ServerSetup setup_;
  ActorDirectory actors_;
  std::optional<strategies::ServerHost> host_;
  std::vector<strategies::WorkerId> members_;  // ascending
  MembershipInbox news_;
  std::map<RequestId, BorrowedView> payloads_;
  std::map<RequestId, Measured> measured_;
  experiment::DistanceMeter meter_;
  JournalBatch journal_;
  std::map<strategies::WorkerId, core::Duration> served_;  // when its latest request had been handled
  RequestId last_request_ = 0;
  std::map<strategies::WorkerId, experiment::BadUpdates> bad_;
  bool refused_ = false;  // whether the current push was refused
  core::Duration flushed_at_{0};
};

ServerState::ServerState() = default;
ServerState::~ServerState() = default;

ServerActor::behavior_type server(ServerActor::stateful_pointer<ServerState> self, ServerSetup setup) {
  const auto name = "server " + std::to_string(setup.self);
  self->state.body = std::make_unique<ServerBody>(self, std::move(setup));
  self->set_default_handler(caf::drop);
  return {
      [self, name](const ActorDirectory& actors) {
        report_exceptions(self, name, actors);
        self->state.body->begin(actors);
      },
      [self](const ShardMessage& message, const BorrowedView& slice) { self->state.body->request(message, slice); },
      [self](const SnapshotOrder& order, const BorrowedView& space) {
        return self->state.body->snapshot(order, space);
      },
      [self](const MembershipNews& news) { self->state.body->membership(news); },
      [self](const StateOrder&) { return self->state.body->state(); },
      [self](const DeadlineReached& reached) { self->state.body->deadline_reached(reached.id); },
      [self](const Halt&) {
        self->state.body->halt();
        self->quit();
      },
  };
}

}  // namespace troupe::actors
