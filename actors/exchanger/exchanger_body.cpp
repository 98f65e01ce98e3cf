#include "actors/exchanger/exchanger_body.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "actors/protocol/call_headers.hpp"
#include "actors/protocol/supervision.hpp"
#include "transport/exchange/reduce.hpp"

namespace troupe::actors {

using exchange::Lend;

namespace {

/// A start state travels in pieces: bytes of each.
constexpr std::size_t kMostPiece = std::size_t{4} << 20;

}  // namespace

ExchangerBody::~ExchangerBody() { halt(); }

SiteAddress ExchangerBody::open() {
  const auto refuse = [](const core::Error& error) {
    return SiteAddress{.text = {}, .error = error.message, .code = error.code};
  };
  const caf::weak_actor_ptr self(self_->ctrl());
  auto queue = transport::CompletionQueue::create(*setup_.clock, [self] {
    if (auto actor = self.lock()) caf::anon_send(caf::actor_cast<ExchangerActor>(actor), Completed{});
  });
  if (!queue) return refuse(queue.error());
  completions_ = std::move(*queue);
  setup_.options.completions = completions_;
  setup_.options.name = fmt::format("site {}", setup_.site);
  auto endpoint = transport::make_endpoint(setup_.exchange.endpoint, setup_.options);
  if (!endpoint) return refuse(endpoint.error());
  endpoint_ = std::move(*endpoint);
  if (setup_.maps_arenas && endpoint_->capabilities().maps_peer_memory) arenas_ = exchange::Arenas::create(endpoint_);
  courier_.emplace(*endpoint_);
  calls_.emplace(
      *endpoint_, *courier_, *setup_.kernels, *setup_.memory, setup_.most_floats, kRun,
      [this](exchange::Calls::Incoming incoming) { serve(std::move(incoming)); },
      [this](transport::Peer peer, const core::Error& error) { lost(peer, error); });
  tick();
  return {.text = endpoint_->address().text, .error = {}};
}

void ExchangerBody::meet(const SiteAddresses& addresses) {
  peers_.resize(addresses.texts.size());
  for (std::uint32_t site = 0; site < peers_.size(); ++site)
    if (site != setup_.site && !addresses.texts[site].empty())
      if (auto met = speak_to(site, addresses.texts[site]); !met) trouble(met.error());
  settle();
}

core::Result<void> ExchangerBody::speak_to(std::uint32_t site, const std::string& address) {
  const auto connection = endpoint_->connect({address});
  if (!connection) return tl::unexpected(connection.error());
  peers_[site] = connection->peer;
  establishing_.push_back(connection->established);
  calls_->listen(connection->peer);
  return {};
}

void ExchangerBody::begin(const Company& company) {
  company_ = company;
  rules_ = CallRules({setup_.site, company.worker_sites, company.server_sites}, arena_);
  members_ = company.members;
  for (std::uint32_t w = 0; w < company.worker_sites.size() && company.members.empty(); ++w) members_.push_back(w);
  if (!company.exchange.empty()) {
    if (auto decided = experiment::parse_exchange(company.exchange, "the company"))
      setup_.exchange.reductions = std::move(decided->reductions);
    else
      trouble(decided.error());
  }
  if (const auto early = news_.begin(company.membership_epoch)) hear(*early);
  if (early_) trouble(*early_);
  for (auto& loss : std::exchange(early_losses_, {})) self_->send(company_.coordinator, std::move(loss));
}

void ExchangerBody::serve_all() {
  serving_ = true;
  for (auto& incoming : std::exchange(held_, {})) serve(std::move(incoming));
  settle();
}

void ExchangerBody::poll() {
  std::vector<transport::Completion> completions;
  while (!halted_ && completions_->poll(completions) > 0) {
    for (const auto& completion : completions) {
      if (std::erase(establishing_, completion.operation) > 0) {
        if (completion.outcome == transport::Outcome::failed) lost(completion.peer, completion.error);
        continue;
      }
      courier_->deliver(completion);
    }
    completions.clear();
    settle();
  }
}

/// What ended without having been posted, and what may be forgotten now that nobody is in a call.
void ExchangerBody::settle() {
  courier_->flush();
  for (auto& [which, running] : running_) note_wait(running);
  for (const auto which : std::exchange(over_, {})) running_.erase(which);
  if (!measuring_ || measuring_->go_on()) return;
  measuring_.reset();
  for (const auto& peer : peers_)
    if (arenas_ && peer) arenas_->forget(*peer);  // what they measured with is gone
}

void ExchangerBody::lost(transport::Peer peer, const core::Error& error) {
  if (halted_) return;
  const auto found = std::ranges::find(peers_, std::optional(peer));
  if (found == peers_.end()) return;  // it has been left
  const auto site = static_cast<std::uint32_t>(found - peers_.begin());
  if (measuring_) measuring_->give_up(error);
  SiteLost loss{setup_.site, site, error.message};
  if (company_.coordinator)
    self_->send(company_.coordinator, std::move(loss));
  else
    early_losses_.push_back(std::move(loss));
}

void ExchangerBody::trouble(const core::Error& error) {
  if (halted_) return;
  if (!company_.coordinator) early_ = error;
  if (company_.coordinator) self_->send(company_.coordinator, Trouble{error.code, error.message, setup_.site});
}

// ---- to members elsewhere

Lent ExchangerBody::packed(const Lent& vector, ArenaPosition position, bool filled) {
  if (!arena_.packing || !position) return vector;
  const auto floats = arena_.packing->packed(*position, vector.data.size());
  auto buffer = core::Buffer::allocate(*setup_.memory, floats);
  if (!buffer) throw MemoryRanOut(buffer.error().message);
  const auto dense = std::make_shared<core::Buffer>(std::move(*buffer));
  if (filled) arena_.packing->pack(vector.data, *position, dense->view());
  return {dense->view(), dense};
}

void ExchangerBody::unpack(const Lent& dense, ArenaPosition position, const Lent& vector) const {
  if (arena_.packing && position) arena_.packing->unpack(dense.data, *position, vector.data);
}

void ExchangerBody::call(std::uint32_t site, std::string header, const Lent& vector, ArenaPosition position, Lend lend,
                         core::Rounding rounding, std::function<void(core::Result<std::string>)> answered) {
  const auto peer = peers_.at(site);
  if (!peer) return answered(core::fail(core::Errc::peer_lost, fmt::format("site {} is not there any more", site)));
  const bool read = lend == Lend::read || lend == Lend::both;
  const bool written = lend == Lend::write || lend == Lend::both;
  const auto dense = packed(vector, position, read);
  // The loan is kept until the answer.
  calls_->call(
      *peer,
      {.header = std::move(header),
       .vector = dense.data,
       .lend = lend,
       .half = setup_.exchange.wire,
       .rounding = rounding},
      [this, vector, dense, position, written, answered = std::move(answered)](core::Result<std::string> result) {
        if (result && written) unpack(dense, position, vector);
        answered(std::move(result));
      });
  settle();
}

void ExchangerBody::request(const ShardMessage& message, const Lent& slice) {
  auto there = message;
  there.sent_ns = 0;  // clocks of other hosts are other clocks: what it is there stands in serve()
  const auto site = company_.server_sites.at(message.shard);
  call(site, pack_header(self_->system(), What::shard, there), slice, rules_.position_of_shard(message.shard),
       lend_of(message.request.kind), message.rounding, [this, site, there](core::Result<std::string> result) {
         if (!result && result.error().code == core::Errc::peer_lost) return;  // lost() tells
         if (!result) return trouble(result.error());
         ShardAnswer answer;
         if (!unpack_header(self_->system(), *result, answer)) return blame(site, "an answer that makes no sense");
         if (auto refusal = rules_.check(there, answer)) return blame(site, *refusal);
         self_->send(company_.workers.at(there.request.worker), answer);
       });
}

void ExchangerBody::letter(const OutgoingLetter& letter, const Lent& vector) {
  call(company_.worker_sites.at(letter.to), pack_header(self_->system(), What::letter, letter), vector, 0, Lend::read,
       core::Rounding::none, [this, letter](const core::Result<std::string>& result) {
         if (result) return self_->send(company_.workers.at(letter.letter.from), PeerCredit{letter.to});
         if (result.error().code != core::Errc::peer_lost) trouble(result.error());  // else lost() tells
       });
}

caf::result<SnapshotTaken> ExchangerBody::snapshot(const MemberSnapshot& snapshot, const Lent& space) {
  auto promise = self_->make_response_promise<SnapshotTaken>();
  const auto& sites = snapshot.server ? company_.server_sites : company_.worker_sites;
  // Whole numbers for hashes: a snapshot is never rounded.
  call(sites.at(snapshot.member), pack_header(self_->system(), What::snapshot, snapshot), space,
       rules_.position_of(snapshot), Lend::write, core::Rounding::none,
       [this, promise, snapshot](const core::Result<std::string>& result) mutable {
         SnapshotTaken taken;
         const bool read = result && unpack_header(self_->system(), *result, taken);
         const auto refusal = read ? rules_.check(snapshot, taken) : std::string("an answer that makes no sense");
         if (!refusal) {
           promise.deliver(taken);
           return;
         }
         promise.deliver(caf::make_error(caf::sec::runtime_error, result ? *refusal : result.error().message));
       });
  return promise;
}

// ---- what members elsewhere begin with

caf::result<StartCargo> ExchangerBody::fetch_start() {
  const auto floats = std::min(kMostPiece / sizeof(float), setup_.most_floats);
  auto piece = core::Buffer::allocate(*setup_.memory, floats);
  if (!piece) return caf::make_error(caf::sec::runtime_error, piece.error().message);
  const auto fetching = std::make_shared<Fetching>();
  fetching->promise = self_->make_response_promise<StartCargo>();
  fetching->piece = std::move(*piece);
  fetch_piece(fetching);
  return fetching->promise;
}

void ExchangerBody::fetch_piece(const std::shared_ptr<Fetching>& fetching) {
  const std::uint64_t offset = fetching->file->size();
  const Lent room{fetching->piece.view(), fetching};
  call(0, pack_header(self_->system(), What::start, offset), room, {}, Lend::write,
       core::Rounding::none,  // bytes, not numbers
       [this, fetching, offset](const core::Result<std::string>& result) {
         std::uint64_t whole = 0;
         if (!result || !unpack_header(self_->system(), *result, whole)) {
           const auto why = result ? std::string("an answer that makes no sense") : result.error().message;
           fetching->promise.deliver(caf::make_error(caf::sec::runtime_error, why));
           return;
         }
         const auto bytes = std::as_bytes(fetching->piece.view());
         const auto count = std::min<std::uint64_t>(bytes.size(), whole - std::min(whole, offset));
         fetching->file->insert(fetching->file->end(), bytes.begin(),
                                bytes.begin() + static_cast<std::ptrdiff_t>(count));
         if (fetching->file->size() < whole && count > 0) return fetch_piece(fetching);
         fetching->promise.deliver(StartCargo{fetching->file});
       });
}

void ExchangerBody::halt() {
  if (std::exchange(halted_, true) || !endpoint_) return;
  endpoint_->close();
  std::vector<transport::Completion> completions;
  completions_->poll(completions);
  for (const auto& completion : completions) courier_->deliver(completion);
  settle();
  asked_.clear();
  unread_.clear();
  held_.clear();
}

}  // namespace troupe::actors
