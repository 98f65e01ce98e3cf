/// State and work of an exchanger, on its actor's thread: endpoint, operation queue, calls and reductions of one site.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/exchanger/call_checks.hpp"
#include "actors/exchanger/exchanger.hpp"
#include "actors/exchanger/measuring.hpp"
#include "actors/protocol/membership_inbox.hpp"
#include "actors/protocol/refusal.hpp"
#include "actors/requests/timer.hpp"
#include "transport/device/device_sums.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/collectives/collective.hpp"
#include "transport/exchange/rpc.hpp"

namespace troupe::actors {

class ExchangerBody {
 public:
  using Self = ExchangerActor::stateful_pointer<ExchangerState>;
  ExchangerBody(Self self, ExchangerSetup setup);
  ~ExchangerBody();

  /// Makes the endpoint, and its mappable memory where the endpoint has it.
  [[nodiscard]] SiteAddress open();
  [[nodiscard]] SiteMemory memory() const { return {arenas_}; }
  void meet(const SiteAddresses& addresses);
  /// Fetches the start state from site 0, piece by piece.
  [[nodiscard]] caf::result<StartPayload> fetch_start();
  /// Sets the start state that other sites fetch from now on.
  void offer(const StartPayload& start) { setup_.start = start; }
  /// Replaces a site's address. Its `error` says why not; peer_lost: the run is over.
  [[nodiscard]] SiteAddress address_changed(const SiteMoved& moved);
  void pack_arenas(const ArenaPacking& arena) { arena_ = arena; }
  void begin(const ActorDirectory& actors);
  /// All members here have begun: serves the calls of other sites, held until now.
  void serve_all();
  /// Takes the endpoint's completions.
  void poll();

  // Messages of members here to members of other sites.
  void request(const ShardMessage& message, const BorrowedView& slice);
  void answer(const ShardAnswer& answer);
  void peer_message(const OutgoingPeerMessage& peer_message, const BorrowedView& vector);
  void credit(const OutgoingCredit& credit);
  [[nodiscard]] caf::result<SnapshotTaken> snapshot(const MemberSnapshot& snapshot, const BorrowedView& space);
  void collective(const CollectiveOrder& order, const BorrowedView& slice);

  /// REQUIRES: before begin(), with no other transfer under way. Without lengths: whether the devices of this host's sites map each other's memory,
  /// as far as this site knows; Errc::config: they do not, and why.
  [[nodiscard]] caf::result<Measured> measure(const MeasureOrder& order);

  /// Disconnects the sites of lost members; their calls are refused.
  void membership(const MembershipNews& news);
  /// Reports the sites with which bytes have moved since the last tick.
  void tick();
  /// Begins the end: says farewell to the sites with which device memory is mapped. Sends Halt to the actor as long as it waits for theirs.
  void depart();
  /// After depart(): nothing is waited for any more, by a deadline at the latest. Where no memory is mapped, at once.
  [[nodiscard]] bool departed() const;
  void halt();

 private:
  static constexpr std::uint8_t kRun = 1;  // an endpoint lives for one run
  using Reply = exchange::Rpc::Reply;
  using Answered = exchange::Rpc::Answered;
  /// A reduction under way.
  struct Running {
    std::unique_ptr<exchange::Collective> collective;
    CollectiveOrder order;
    BorrowedView slice;
    BorrowedView dense;  // the vector to reduce: the slice, or its copy without padding
    core::Duration began{0};
    std::optional<std::pair<strategies::WorkerId, core::Duration>> waited{};  // last worker to arrive, time until then
  };

  /// A start state in transit to this site.
  struct Fetching {
    caf::typed_response_promise<StartPayload> promise;
    std::shared_ptr<std::vector<std::byte>> file = std::make_shared<std::vector<std::byte>>();
    core::Buffer piece;
  };
  /// Whether the vectors of members here are in a device's memory: then the host reads and writes copies of them.
  [[nodiscard]] bool on_device() const { return setup_.kernels->space() == core::MemorySpace::device; }
  [[nodiscard]] transport::EndpointOptions endpoint_options() const;
  void fetch_piece(const std::shared_ptr<Fetching>& fetching);
  void give_piece(std::uint32_t from, std::uint64_t offset, const exchange::Rpc::Incoming& incoming);
  [[nodiscard]] core::Result<void> connect_to(std::uint32_t site, const std::string& address);
  void offer_arenas(std::uint32_t site, transport::Peer peer);
  void answer_mapping();
  [[nodiscard]] caf::result<Measured> join(const MeasureOrder& order);
  void joined(const transport::Completion& completion);
  /// A copy of `vector` without padding, or `vector` itself where nothing is packed.
  [[nodiscard]] BorrowedView packed(const BorrowedView& vector, ArenaPosition position);
  /// Copies `dense`, made by packed(), back into `vector`.
  void unpack(const BorrowedView& dense, ArenaPosition position, const BorrowedView& vector) const;
  /// Which floats of a vector at `position` travel; null: all.
  [[nodiscard]] const exchange::Packing* packing_at(ArenaPosition position) const noexcept {
    return position ? arena_.packing.get() : nullptr;
  }
  template <class... Parts>
  [[nodiscard]] std::string_view header(const Parts&... parts);
  void call(std::uint32_t site, std::string_view header, const BorrowedView& vector, ArenaPosition position,
            exchange::Lend lend, core::Rounding rounding, Answered answered);

  // Calls from other sites (exchanger_serve.cpp).
  /// The received vector with padding, for the member here; the reply packs it again. Errc::out_of_memory.
  [[nodiscard]] core::Result<BorrowedView> opened(const exchange::Rpc::Incoming& incoming, ArenaPosition position,
                                                  std::size_t floats) const;
  void serve(exchange::Rpc::Incoming incoming);
  void serve(std::uint32_t from, const ShardMessage& message, exchange::Rpc::Incoming& incoming);
  void serve(std::uint32_t from, const OutgoingPeerMessage& peer_message, exchange::Rpc::Incoming& incoming);
  void serve(std::uint32_t from, const MemberSnapshot& snapshot, exchange::Rpc::Incoming& incoming);
  [[nodiscard]] std::optional<std::uint32_t> site_of(transport::Peer peer) const;
  [[nodiscard]] bool is_member(strategies::WorkerId worker) const;
  /// Reports the refusal to the caller and the log. Gives up a site after too many refusals.
  void refuse(std::uint32_t from, const Reply& reply, const std::string& why);
  /// A site sent an invalid answer: gives the site up.
  void reject_answer(std::uint32_t site, const std::string& why);
  void note_refusal(std::uint32_t site, const std::string& why);

  void lost(transport::Peer peer, const core::Error& error);
  void hear(const MembershipNews& news);
  void leave(std::uint32_t site, std::string_view why);
  /// No event is of interest any more.
  [[nodiscard]] bool ends() const { return halted_ || departs_by_.has_value(); }
  void keep_memory_in_use();
  void run_error(const core::Error& error);
  void note_wait(Running& running);
  void ended(std::uint64_t which, const core::Result<void>& result);
  void after_event();
  [[nodiscard]] exchange::Group group_of(const CollectiveOrder& order) const;
  void add(exchange::Group& group, std::uint32_t site, const std::vector<std::uint32_t>& hosts) const;

  Self self_;
  Timer timer_{self_};
  ExchangerSetup setup_;
  ActorDirectory actors_;
  std::shared_ptr<transport::CompletionQueue> completions_;
  std::shared_ptr<transport::Endpoint> endpoint_;
  std::shared_ptr<exchange::Arenas> arenas_;  // none: other sites cannot map members' memory
  exchange::Scratch scratch_;
  std::optional<transport::DeviceSums> device_sums_;  // none: NCCL does not sum here
  std::optional<exchange::OperationQueue> operations_;
  std::optional<exchange::Rpc> calls_;
  std::vector<char> header_;                           // of the newest call or answer
  std::vector<std::optional<transport::Peer>> peers_;  // by site; none: not connected
  std::map<std::uint32_t, std::uint64_t> progress_;    // by site, at the last tick()
  std::vector<transport::OperationId> establishing_;
  std::map<std::tuple<strategies::WorkerId, strategies::ShardId, strategies::ExchangeId>, Reply> asked_;
  std::map<std::pair<strategies::WorkerId, strategies::WorkerId>, Reply>
      unread_;  // peer messages, by sender and reader
  std::map<std::uint64_t, Running> running_;
  std::vector<std::uint64_t> over_;  // ended entries of running_
  std::unique_ptr<Measuring> measuring_;
  std::size_t offers_ = 0;  // of arenas, not answered yet
  std::string not_mapped_;  // why device memory of sites of this host is not mapped
  std::optional<caf::typed_response_promise<Measured>> mapping_asked_;
  std::optional<std::pair<transport::OperationId, caf::typed_response_promise<Measured>>> joining_;
  std::uint64_t next_running_ = 0;
  ArenaPacking arena_;
  CallChecks checks_;  // from begin() on
  RefusalCount refusals_;
  std::vector<exchange::Rpc::Incoming> held_;  // calls that arrived before this site had begun
  std::optional<core::Error> early_;           // an error before begin(), reported there
  std::vector<SiteLost> early_losses_;         // losses before begin(), reported there
  std::vector<strategies::WorkerId> members_;  // ascending; from begin() on
  MembershipInbox news_;
  bool serving_ = false;
  std::optional<core::Duration> departs_by_;  // from depart() on
  bool halted_ = false;
};

}  // namespace troupe::actors
