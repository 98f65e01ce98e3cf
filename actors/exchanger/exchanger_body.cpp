#include "actors/exchanger/exchanger_body.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "actors/protocol/call_headers.hpp"
#include "actors/protocol/supervision.hpp"
#include "transport/device/mapped_device_memory.hpp"

namespace troupe::actors {

using exchange::Lend;

namespace {

/// Bytes of one piece of a start state.
constexpr std::size_t kMostPiece = std::size_t{4} << 20;

/// Of vectors in device memory. Longer pieces overlap less, shorter ones cost more messages.
constexpr exchange::PieceOptions kPieces{.bytes = std::size_t{1} << 20, .window = 8};

}  // namespace

ExchangerBody::ExchangerBody(Self self, ExchangerSetup setup)
    : self_(self),
      setup_(std::move(setup)),
      scratch_(on_device() ? exchange::Scratch(*setup_.memory) : exchange::Scratch()) {}

ExchangerBody::~ExchangerBody() { halt(); }

transport::EndpointOptions ExchangerBody::endpoint_options() const {
  auto options = setup_.options;
  options.completions = completions_;
  options.name = fmt::format("site {}", setup_.site);
  options.device = setup_.copier;
  options.checksum = setup_.checksum;
  // What the vectors of the calls of all sites may need at a time: no call waits for memory.
  const auto calls = std::max(exchange::kMostVectors, setup_.exchange.server_sites.size());
  const auto per_site = calls * kPieces.bytes * kPieces.window + options.credit.bytes;
  options.staging_bytes = std::max(options.staging_bytes, per_site * (setup_.exchange.worker_sites.size() + 1));
  return options;
}

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
  auto endpoint = transport::make_endpoint(setup_.exchange.endpoint, endpoint_options());
  if (!endpoint) return refuse(endpoint.error());
  endpoint_ = std::move(*endpoint);
  not_mapped_ = setup_.mappable.why_not;
  if (setup_.mappable.sharing)
    arenas_ = exchange::Arenas::create(transport::map_device_memory(setup_.mappable.sharing));
  else if (setup_.maps_arenas && endpoint_->capabilities().maps_peer_memory)
    arenas_ = exchange::Arenas::create(endpoint_);
  if (setup_.reduction) device_sums_.emplace(std::exchange(setup_.reduction, {}), completions_);
  operations_.emplace(*endpoint_, device_sums_ ? &*device_sums_ : nullptr);
  calls_.emplace(
      *endpoint_, *operations_, *setup_.kernels, *setup_.memory, setup_.most_floats, kRun,
      [this](exchange::Rpc::Incoming incoming) { serve(std::move(incoming)); },
      [this](transport::Peer peer, const core::Error& error) { lost(peer, error); },
      setup_.exchange.on_devices ? kPieces : exchange::PieceOptions{}, on_device() ? arenas_.get() : nullptr);
  tick();
  return {.text = endpoint_->address().text, .error = {}};
}

void ExchangerBody::meet(const SiteAddresses& addresses) {
  peers_.resize(addresses.texts.size());
  for (std::uint32_t site = 0; site < peers_.size(); ++site)
    if (site != setup_.site && !addresses.texts[site].empty())
      if (auto met = connect_to(site, addresses.texts[site]); !met) run_error(met.error());
  after_event();
}

core::Result<void> ExchangerBody::connect_to(std::uint32_t site, const std::string& address) {
  const auto connection = endpoint_->connect({address});
  if (!connection) return tl::unexpected(connection.error());
  peers_[site] = connection->peer;
  establishing_.push_back(connection->established);
  calls_->listen(connection->peer);
  const auto& plan = setup_.exchange;
  if (setup_.mappable.sharing && plan.has_neighbours(site) && plan.on_one_host(setup_.site, site))
    offer_arenas(site, connection->peer);
  return {};
}

void ExchangerBody::begin(const ActorDirectory& actors) {
  actors_ = actors;
  checks_ = CallChecks({setup_.site, actors.worker_sites, actors.server_sites}, arena_);
  members_ = actors.members;
  for (std::uint32_t w = 0; w < actors.worker_sites.size() && actors.members.empty(); ++w) members_.push_back(w);
  if (!actors.exchange.empty()) {
    if (auto decided = experiment::parse_exchange(actors.exchange, "the run"))
      setup_.exchange.reductions = std::move(decided->reductions);
    else
      run_error(decided.error());
  }
  if (const auto early = news_.begin(actors.membership_epoch)) hear(*early);
  if (early_) run_error(*early_);
  for (auto& loss : std::exchange(early_losses_, {})) self_->send(actors_.coordinator, std::move(loss));
}

void ExchangerBody::serve_all() {
  serving_ = true;
  for (auto& incoming : std::exchange(held_, {})) serve(std::move(incoming));
  after_event();
}

void ExchangerBody::poll() {
  std::vector<transport::Completion> completions;
  while (!halted_ && completions_->poll(completions) > 0) {
    for (const auto& completion : completions) {
      if (std::erase(establishing_, completion.operation) > 0) {
        if (completion.outcome == transport::Outcome::failed) lost(completion.peer, completion.error);
        continue;
      }
      if (joining_ && joining_->first == completion.operation) {
        joined(completion);
        continue;
      }
      operations_->deliver(completion);
    }
    completions.clear();
    after_event();
  }
}

/// Flushes the operation queue, frees ended reductions (their own callback cannot), and continues a measurement.
void ExchangerBody::after_event() {
  operations_->flush();
  for (auto& [which, running] : running_) note_wait(running);
  for (const auto which : std::exchange(over_, {})) running_.erase(which);
  answer_mapping();
  if (!measuring_ || measuring_->go_on()) return;
  measuring_.reset();
  for (const auto& peer : peers_)
    if (arenas_ && peer) arenas_->forget(*peer);  // the peers have freed the arenas of the measurement
}

void ExchangerBody::lost(transport::Peer peer, const core::Error& error) {
  if (ends()) return;
  const auto found = std::ranges::find(peers_, std::optional(peer));
  if (found == peers_.end()) return;  // this site has left the peer
  const auto site = static_cast<std::uint32_t>(found - peers_.begin());
  if (measuring_) measuring_->give_up(error);
  if (device_sums_) device_sums_->abort({core::Errc::peer_lost, error.message});
  if (setup_.copier && (error.code == core::Errc::io || error.code == core::Errc::out_of_memory))
    return run_error(error);  // a copy failed: the device here, not the peer
  SiteLost loss{setup_.site, site, error.message};
  if (actors_.coordinator)
    self_->send(actors_.coordinator, std::move(loss));
  else
    early_losses_.push_back(std::move(loss));
}

void ExchangerBody::run_error(const core::Error& error) {
  if (ends()) return;
  if (!actors_.coordinator) early_ = error;
  if (actors_.coordinator) self_->send(actors_.coordinator, RunError{error.code, error.message, setup_.site});
}

// ---- to members of other sites

BorrowedView ExchangerBody::packed(const BorrowedView& vector, ArenaPosition position) {
  const auto* const packing = packing_at(position);
  if (!packing) return vector;
  auto room = calls_->vectors().take(packing->packed(*position, vector.data.size()));
  if (!room) throw MemoryRanOut(room.error().message);
  const auto dense = std::make_shared<exchange::VectorPool::Loan>(std::move(*room));
  packing->pack(vector.data, *position, dense->view());
  return {dense->view(), dense};
}

void ExchangerBody::unpack(const BorrowedView& dense, ArenaPosition position, const BorrowedView& vector) const {
  if (const auto* const packing = packing_at(position)) packing->unpack(dense.data, *position, vector.data);
}

template <class... Parts>
std::string_view ExchangerBody::header(const Parts&... parts) {
  return write_header(self_->system(), header_, parts...);
}

void ExchangerBody::call(std::uint32_t site, std::string_view header, const BorrowedView& vector,
                         ArenaPosition position, Lend lend, core::Rounding rounding, Answered answered) {
  const auto peer = ends() ? std::nullopt : peers_.at(site);
  if (!peer) return answered(core::fail(core::Errc::peer_lost, fmt::format("site {} is gone", site)));
  calls_->call(*peer,
               {.header = header,
                .vector = vector.data,
                .lend = lend,
                .half = setup_.exchange.wire,
                .rounding = rounding,
                .packing = packing_at(position),
                .offset = position.value_or(0),
                .owner = vector.owner},
               std::move(answered));
  after_event();
}

void ExchangerBody::request(const ShardMessage& message, const BorrowedView& slice) {
  auto there = message;
  there.sent_ns = 0;  // clocks of hosts differ: serve() sets it there
  const auto site = actors_.server_sites.at(message.shard);
  call(site, header(CallKind::shard, there), slice, checks_.position_of_shard(message.shard),
       lend_of(message.request.kind), message.rounding, [this, site, there](core::Result<std::string_view> result) {
         if (!result && result.error().code == core::Errc::peer_lost) return;  // lost() reports it
         if (!result) return run_error(result.error());
         ShardAnswer answer;
         if (!unpack_header(self_->system(), *result, answer)) return reject_answer(site, "an invalid answer");
         if (auto refusal = checks_.check(there, answer)) return reject_answer(site, *refusal);
         self_->send(actors_.workers.at(there.request.worker), answer);
       });
}

void ExchangerBody::peer_message(const OutgoingPeerMessage& peer_message, const BorrowedView& vector) {
  call(actors_.worker_sites.at(peer_message.to), header(CallKind::peer_message, peer_message), vector, 0, Lend::read,
       core::Rounding::none, [this, peer_message](const core::Result<std::string_view>& result) {
         if (result)
           return self_->send(actors_.workers.at(peer_message.peer_message.from), PeerCredit{peer_message.to});
         if (result.error().code != core::Errc::peer_lost) run_error(result.error());  // else lost() reports it
       });
}

caf::result<SnapshotTaken> ExchangerBody::snapshot(const MemberSnapshot& snapshot, const BorrowedView& space) {
  auto promise = self_->make_response_promise<SnapshotTaken>();
  const auto& sites = snapshot.server ? actors_.server_sites : actors_.worker_sites;
  auto vector = space;  // which the host reads
  if (on_device()) {
    auto room = calls_->vectors().take(space.data.size());
    if (!room) throw MemoryRanOut(room.error().message);
    const auto here = std::make_shared<exchange::VectorPool::Loan>(std::move(*room));
    vector = {here->view(), here};
  }
  // A snapshot is hashed: it is never rounded.
  call(sites.at(snapshot.member), header(CallKind::snapshot, snapshot), vector, checks_.position_of(snapshot),
       Lend::write, core::Rounding::none,
       [this, promise, snapshot, space, vector](const core::Result<std::string_view>& result) mutable {
         if (result && on_device()) setup_.kernels->download(space.data, vector.data);
         SnapshotTaken taken;
         const bool read = result && unpack_header(self_->system(), *result, taken);
         const auto refusal = read ? checks_.check(snapshot, taken) : std::string("an invalid answer");
         if (!refusal) {
           promise.deliver(taken);
           return;
         }
         // Not the worker's fault: without memory here the run ends.
         if (!result && result.error().code == core::Errc::out_of_memory) run_error(result.error());
         if (!result && result.error().code == core::Errc::program)
           promise.deliver(program_failure(result.error().message));
         else
           promise.deliver(caf::make_error(caf::sec::runtime_error, result ? *refusal : result.error().message));
       });
  return promise;
}

// ---- the start state

caf::result<StartPayload> ExchangerBody::fetch_start() {
  const auto floats = std::min(kMostPiece / sizeof(float), setup_.most_floats);
  auto piece = core::Buffer::allocate(*setup_.memory, floats);
  if (!piece) return caf::make_error(caf::sec::runtime_error, piece.error().message);
  const auto fetching = std::make_shared<Fetching>();
  fetching->promise = self_->make_response_promise<StartPayload>();
  fetching->piece = std::move(*piece);
  fetch_piece(fetching);
  return fetching->promise;
}

void ExchangerBody::fetch_piece(const std::shared_ptr<Fetching>& fetching) {
  const std::uint64_t offset = fetching->file->size();
  const BorrowedView room{fetching->piece.view(), fetching};
  call(0, header(CallKind::start, offset), room, {}, Lend::write,
       core::Rounding::none,  // bytes, not numbers
       [this, fetching, offset](const core::Result<std::string_view>& result) {
         std::uint64_t whole = 0;
         if (!result || !unpack_header(self_->system(), *result, whole)) {
           const auto why = result ? std::string("an invalid answer") : result.error().message;
           fetching->promise.deliver(caf::make_error(caf::sec::runtime_error, why));
           return;
         }
         std::vector<float> floats(fetching->piece.size());
         setup_.kernels->download(floats, fetching->piece.view());
         const auto bytes = std::as_bytes(std::span(floats));
         const auto count = std::min<std::uint64_t>(bytes.size(), whole - std::min(whole, offset));
         try {  // at once: growing it would take twice its size
           fetching->file->reserve(whole);
         } catch (const std::exception&) {
           fetching->promise.deliver(caf::make_error(
               caf::sec::runtime_error, fmt::format("there is no memory for the {} bytes of the start state", whole)));
           return;
         }
         fetching->file->insert(fetching->file->end(), bytes.begin(),
                                bytes.begin() + static_cast<std::ptrdiff_t>(count));
         if (fetching->file->size() < whole && count > 0) return fetch_piece(fetching);
         fetching->promise.deliver(StartPayload{fetching->file});
       });
}

void ExchangerBody::halt() {
  if (std::exchange(halted_, true) || !endpoint_) return;
  keep_memory_in_use();
  endpoint_->close();
  if (device_sums_) device_sums_->close();
  std::vector<transport::Completion> completions;
  completions_->poll(completions);
  // What ends may compute, and a device that has failed fails again: its error has been reported.
  const auto quietly = [](const auto& end) {
    try {
      end();
    } catch (const core::KernelsFailed&) {
    }
  };
  for (const auto& completion : completions) quietly([&] { operations_->deliver(completion); });
  quietly([this] { after_event(); });
  asked_.clear();
  unread_.clear();
  held_.clear();
}

}  // namespace troupe::actors
