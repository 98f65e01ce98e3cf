/// All state of a hub and of its members, behind one mutex. Internal to inproc.
///
/// A Link joins two members. It has a Direction each way, which holds the operations that wait for a match. A matched operation
/// leaves every table and counts as `moving` in both members while its bytes are copied without the mutex; then it completes.
/// close() waits for a member's moving operations, which is a memcpy at most. Completions are pushed with the mutex held, so they
/// are in the queue when close() returns.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "transport/common/matcher.hpp"
#include "transport/completion_queue.hpp"
#include "transport/endpoint.hpp"
#include "transport/mapped_memory.hpp"

namespace troupe::transport {

class InprocHub : public std::enable_shared_from_this<InprocHub> {
 public:
  struct Link;

  /// A peer as one member sees it. Without a link the peer is lost and `lost` has the reason.
  struct Remote {
    std::string address;
    std::shared_ptr<Link> link{};
    std::size_t side = 0;                       // this member's side of the link
    std::optional<OperationId> establishing{};  // pending until the peer's connect()
    Traffic traffic{};
    core::Error lost{};
  };

  enum class Kind : std::uint8_t { connect, send, receive };
  /// The place of an operation that has not been matched, for cancel().
  struct Waiting {
    Kind kind;
    Peer peer;
    Tag tag;
  };

  struct Member {
    Address address;
    std::shared_ptr<CompletionQueue> completions;
    Credit credit;
    std::vector<Remote> peers;  // by Peer
    std::unordered_map<OperationId, Waiting> waiting;
    std::size_t moving = 0;
    bool closed = false;
  };

  struct Posted {
    OperationId operation;
    MemoryView memory;
  };
  struct Offered {
    OperationId operation;
    ConstMemoryView memory;
  };
  struct Direction {
    Matcher<Posted, Offered> matcher;
    std::size_t messages = 0;  // accepted and not completed
    std::size_t bytes = 0;
  };
  struct Side {
    std::shared_ptr<Member> member;
    bool joined = false;  // this side has called connect()
    Peer peer{};          // this side's handle of the other, once joined
  };
  struct Link {
    std::array<Side, 2> sides;
    std::array<Direction, 2> from;  // from[s]: messages that side s sends
  };

  explicit InprocHub(std::string name);

  [[nodiscard]] std::shared_ptr<Member> join(const std::string& name, std::shared_ptr<CompletionQueue> completions,
                                             Credit credit);
  [[nodiscard]] core::Result<Connection> connect(const std::shared_ptr<Member>& self, const Address& remote);
  void disconnect(Member& self, Peer peer, std::string_view why);
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Member& self, Peer peer, Tag tag, ConstMemoryView memory);
  [[nodiscard]] core::Result<OperationId> receive(Member& self, Peer peer, Tag tag, MemoryView memory);
  void cancel(Member& self, OperationId operation);
  [[nodiscard]] Traffic traffic(const Member& self, Peer peer) const;
  void close(Member& self);

  [[nodiscard]] core::Allocator& allocator() noexcept { return allocator_; }
  [[nodiscard]] core::Result<Exposure> expose(const std::shared_ptr<Member>& self, std::shared_ptr<core::Buffer> arena);
  [[nodiscard]] core::Result<Mapping> attach(const ArenaKey& key, std::size_t floats);

 private:
  /// The result of one side's outstanding operations when a link ends.
  struct Ending {
    Outcome outcome = Outcome::failed;
    std::string why{};
  };
  struct Offer {
    std::weak_ptr<Member> owner;
    std::shared_ptr<core::Buffer> arena;
  };

  // All with mutex_ held.
  [[nodiscard]] core::Result<Remote*> live(Member& self, Peer peer) const;
  void end_link(std::shared_ptr<Link> link, const std::array<Ending, 2>& endings);
  void move(std::unique_lock<std::mutex>& lock, std::shared_ptr<Link> link, std::size_t from, Tag tag, Offered offered,
            Posted posted);
  static void finish(Member& member, Completion completion);

  core::HostAllocator allocator_;  // first: the tables below may hold arenas made with it
  mutable std::mutex mutex_;
  std::condition_variable moved_;
  const std::string prefix_;  // of addresses and arena keys
  std::uint64_t next_member_ = 0;
  std::uint64_t next_arena_ = 0;
  std::map<std::string, std::shared_ptr<Member>, std::less<>> members_;  // by address
  std::map<std::string, Offer, std::less<>> offers_;                     // by key
};

}  // namespace troupe::transport
