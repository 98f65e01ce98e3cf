/// What an exchanger does, on its actor's thread: endpoint, courier and calls of one site, and who waits for what.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/exchanger/call_rules.hpp"
#include "actors/exchanger/exchanger.hpp"
#include "actors/exchanger/measuring.hpp"
#include "actors/coordinator/member_rules.hpp"
#include "actors/protocol/membership_inbox.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/calls.hpp"
#include "transport/exchange/collectives/collective.hpp"

namespace troupe::actors {

class ExchangerBody {
 public:
  using Self = ExchangerActor::stateful_pointer<ExchangerState>;
  ExchangerBody(Self self, ExchangerSetup setup) : self_(self), setup_(std::move(setup)) {}
  ~ExchangerBody();

  /// Makes the endpoint, and memory over it that members elsewhere can map.
  [[nodiscard]] SiteAddress open();
  [[nodiscard]] SiteMemory memory() const { return {arenas_}; }
  void meet(const SiteAddresses& addresses);
  /// What site 0 begins with, piece by piece.
  [[nodiscard]] caf::result<StartCargo> fetch_start();
  /// What others begin with from now on.
  void offer(const StartCargo& start) { setup_.start = start; }
  /// What stands in the way: it is not there any more.
  [[nodiscard]] SiteAddress moved(const SiteMoved& moved);
  void pack_arenas(const ArenaPacking& arena) { arena_ = arena; }
  void begin(const Company& company);
  /// Calls of other sites, who may have begun before, wait until the members here have.
  void serve_all();
  /// Completions wait.
  void poll();

  // from members of this site to members elsewhere
  void request(const ShardMessage& message, const Lent& slice);
  void answer(const ShardAnswer& answer);
  void letter(const OutgoingLetter& letter, const Lent& vector);
  void credit(const OutgoingCredit& credit);
  [[nodiscard]] caf::result<SnapshotTaken> snapshot(const MemberSnapshot& snapshot, const Lent& space);
  void collective(const CollectiveOrder& order, const Lent& slice);

  /// Before begin(), while nothing else goes on.
  [[nodiscard]] caf::result<Measured> measure(const MeasureOrder& order);

  /// Whoever is no member any more is not spoken to, and not heard.
  void membership(const MembershipNews& news);
  /// Tells what has moved since the last time.
  void tick();
  void halt();

 private:
  static constexpr std::uint8_t kRun = 1;  // an endpoint lives for one run
  using Reply = exchange::Calls::Reply;
  /// A reduction under way.
  struct Running {
    std::unique_ptr<exchange::Collective> collective;
    CollectiveOrder order;
    Lent slice;
    Lent dense;  // what is reduced: the slice, or it without padding
    core::Duration began{0};
    std::optional<std::pair<strategies::WorkerId, core::Duration>> waited{};  // for whom, how long
  };

  /// A start state on its way here.
  struct Fetching {
    caf::typed_response_promise<StartCargo> promise;
    std::shared_ptr<std::vector<std::byte>> file = std::make_shared<std::vector<std::byte>>();
    core::Buffer piece;
  };
  void fetch_piece(const std::shared_ptr<Fetching>& fetching);
  void give_piece(std::uint32_t from, const exchange::Calls::Incoming& incoming);
  [[nodiscard]] core::Result<void> speak_to(std::uint32_t site, const std::string& address);
  /// `vector` without padding, or as it is where nothing is packed. `filled`: with what it holds.
  [[nodiscard]] Lent packed(const Lent& vector, ArenaPosition position, bool filled);
  /// Back into `vector`, from what packed() made of it.
  void unpack(const Lent& dense, ArenaPosition position, const Lent& vector) const;
  void call(std::uint32_t site, std::string header, const Lent& vector, ArenaPosition position, exchange::Lend lend,
            core::Rounding rounding, std::function<void(core::Result<std::string>)> answered);

  // What comes from members elsewhere (exchanger_serve.cpp).
  /// What came in as the member here is to see it; its reply packs it again. Errc::out_of_memory.
  [[nodiscard]] core::Result<Lent> opened(exchange::Calls::Incoming& incoming, ArenaPosition position,
                                          std::size_t floats);
  void serve(exchange::Calls::Incoming incoming);
  void serve(std::uint32_t from, const ShardMessage& message, exchange::Calls::Incoming& incoming);
  void serve(std::uint32_t from, const OutgoingLetter& letter, exchange::Calls::Incoming& incoming);
  void serve(std::uint32_t from, const MemberSnapshot& snapshot, exchange::Calls::Incoming& incoming);
  [[nodiscard]] std::optional<std::uint32_t> site_of(transport::Peer peer) const;
  [[nodiscard]] bool is_member(strategies::WorkerId worker) const;
  /// The caller is told, the log too; who is refused too often is given up.
  void refuse(std::uint32_t from, const Reply& reply, const std::string& why);
  /// A member elsewhere answered nonsense: its site is given up.
  void blame(std::uint32_t site, const std::string& why);
  void note_refusal(std::uint32_t site, const std::string& why);

  void lost(transport::Peer peer, const core::Error& error);
  void hear(const MembershipNews& news);
  void leave(std::uint32_t site, std::string_view why);
  void trouble(const core::Error& error);
  void note_wait(Running& running);
  void ended(std::uint64_t which, const core::Result<void>& result);
  void settle();
  [[nodiscard]] exchange::Group group_of(const CollectiveOrder& order) const;
  void add(exchange::Group& group, std::uint32_t site, const std::vector<std::uint32_t>& hosts) const;

  Self self_;
  ExchangerSetup setup_;
  Company company_;
  std::shared_ptr<transport::CompletionQueue> completions_;
  std::shared_ptr<transport::Endpoint> endpoint_;
  std::shared_ptr<exchange::Arenas> arenas_;  // none: members' memory is nobody else's
  exchange::Scratch scratch_;
  std::optional<exchange::Courier> courier_;
  std::optional<exchange::Calls> calls_;
  std::vector<std::optional<transport::Peer>> peers_;  // by site; none: not spoken to
  std::map<std::uint32_t, std::uint64_t> progress_;    // by site, as tick() saw it
  std::vector<transport::OperationId> establishing_;
  std::map<std::tuple<strategies::WorkerId, strategies::ShardId, strategies::ExchangeId>, Reply> asked_;
  std::map<std::pair<strategies::WorkerId, strategies::WorkerId>, Reply> unread_;  // letters, by sender and reader
  std::map<std::uint64_t, Running> running_;
  std::vector<std::uint64_t> over_;  // of running_
  std::unique_ptr<Measuring> measuring_;
  std::uint64_t next_running_ = 0;
  ArenaPacking arena_;
  CallRules rules_;  // from begin() on
  RefusalCount refusals_;
  std::vector<exchange::Calls::Incoming> held_;  // calls that came before this site had begun
  std::optional<core::Error> early_;             // what went wrong before there was anyone to tell
  std::vector<SiteLost> early_losses_;           // and who was lost
  std::vector<strategies::WorkerId> members_;    // ascending; from begin() on
  MembershipInbox news_;
  bool serving_ = false;
  bool halted_ = false;
};

}  // namespace troupe::actors
