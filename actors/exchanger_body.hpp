/// What an exchanger does, on its actor's thread: endpoint, courier and calls of one site, and who waits for what.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/exchanger.hpp"
#include "actors/measuring.hpp"
#include "actors/membership_inbox.hpp"
#include "exchange/arenas.hpp"
#include "exchange/calls.hpp"
#include "exchange/collective.hpp"

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
  void pack_arenas(std::shared_ptr<const exchange::Packing> packing) { packing_ = std::move(packing); }
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
  void give_piece(const exchange::Calls::Incoming& incoming);
  [[nodiscard]] core::Result<void> speak_to(std::uint32_t site, const std::string& address);
  /// Where a vector lies in an arena; none: it is of another kind.
  using Position = std::optional<std::size_t>;
  [[nodiscard]] Position position_of(const MemberSnapshot& snapshot) const;
  [[nodiscard]] Position position_of_shard(strategies::ShardId shard) const;
  /// `vector` without padding, or as it is where nothing is packed. `filled`: with what it holds.
  [[nodiscard]] Lent packed(const Lent& vector, Position position, bool filled);
  /// Back into `vector`, from what packed() made of it.
  void unpack(const Lent& dense, Position position, const Lent& vector) const;
  /// What came in as the member here is to see it; its reply packs it again.
  [[nodiscard]] std::optional<Lent> opened(exchange::Calls::Incoming& incoming, Position position, std::size_t floats);
  void call(std::uint32_t site, std::string header, const Lent& vector, Position position, exchange::Lend lend,
            core::Rounding rounding, std::function<void(core::Result<std::string>)> answered);
  void serve(exchange::Calls::Incoming incoming);
  void lost(transport::Peer peer, const core::Error& error);
  void hear(const MembershipNews& news);
  void leave(std::uint32_t site, std::string_view why);
  void trouble(const core::Error& error);
  void note_wait(Running& running);
  void ended(std::uint64_t which, const core::Result<void>& result);
  void settle();
  [[nodiscard]] exchange::Group group_of(const CollectiveOrder& order) const;
  void add(exchange::Group& group, std::uint32_t site, const std::vector<std::uint32_t>& hosts) const;

  /// Messages as the headers of calls.
  template <class... Ts>
  [[nodiscard]] std::string pack(const Ts&... parts);
  template <class... Ts>
  [[nodiscard]] bool unpack(const std::string& header, Ts&... parts);

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
  std::shared_ptr<const exchange::Packing> packing_;  // none: vectors travel as they are
  std::vector<exchange::Calls::Incoming> held_;       // calls that came before this site had begun
  std::optional<core::Error> early_;                  // what went wrong before there was anyone to tell
  std::vector<SiteLost> early_losses_;                // and who was lost
  std::vector<strategies::WorkerId> members_;         // ascending; from begin() on
  MembershipInbox news_;
  bool serving_ = false;
  bool halted_ = false;
};

}  // namespace troupe::actors
