/// The state of one member towards one peer: operations, matching, windows, and the frames that follow from them. It has no socket,
/// no thread and no clock. A TcpConnection (transport/tcp/connection.hpp) transfers the frames; after a break the next
/// TcpConnection continues. A break does not change the state: operations wait, and callers may post and cancel.
///
/// Bounds. This side announces only as many messages as the peer's window has room for. Further messages stay in the caller's
/// memory, bounded by Credit. These break the protocol, so the peer is given up with Errc::corrupt: exceeding its window (an ended
/// message counts until the peer acknowledges the end), ending a message that was not all sent or not acknowledged, naming an
/// unknown message.
///
/// Thread rule: guarded by its endpoint's mutex. Only the I/O thread calls connected(), begin(), finish(), take(), wrote(), broke()
/// and end(); after that thread has ended, close() calls end(). Lent memory is accessed by the TcpConnection, and by receive(),
/// which copies a message of at most kEagerBytes that came before it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "transport/common/matcher.hpp"
#include "transport/completion_queue.hpp"
#include "transport/endpoint.hpp"
#include "transport/memory_view.hpp"
#include "transport/tag.hpp"
#include "transport/tcp/protocol/frame.hpp"
#include "transport/tcp/protocol/hello.hpp"
#include "transport/tcp/protocol/unacked.hpp"

namespace troupe::transport {

class TcpSession {
 public:
  struct Setup {
    std::string self;    // address text
    std::string remote;  // the peer's
    Peer peer{};         // handle
    Credit credit{};     // what send() accepts
    Window window{};     // what the peer may announce
    std::shared_ptr<CompletionQueue> completions;
  };
  explicit TcpSession(Setup setup);

  [[nodiscard]] const std::string& remote() const noexcept { return setup_.remote; }
  [[nodiscard]] Peer peer() const noexcept { return setup_.peer; }
  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }
  /// Payload bytes moved in or out, plus frames that the peer acknowledged: with a slow peer, written bytes may only be in a
  /// buffer.
  [[nodiscard]] std::uint64_t progress() const noexcept { return progress_; }
  [[nodiscard]] const std::optional<core::Error>& lost() const noexcept { return lost_; }

  // Operations, as in endpoint.hpp.
  [[nodiscard]] OperationId establish();
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Tag tag, ConstMemoryView memory);
  [[nodiscard]] core::Result<OperationId> receive(Tag tag, MemoryView memory);
  enum class Cancelled : std::uint8_t { unknown, asked, connecting };
  /// connecting: `established` has completed as cancelled; the caller must drop the peer.
  Cancelled cancel(OperationId operation);

  // The connection.
  /// A connection exists: the first or, after broke(), another. `of_peer`: the peer's hello. Errc::corrupt: it claims an impossible
  /// count.
  [[nodiscard]] core::Result<void> connected(const Hello& of_peer);
  /// The connection broke; no frames move until the next one. A receive whose eager message was being read waits for it again.
  void broke();
  /// Number of the peer's numbered frames that are finished.
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
  /// The memory for a frame's payload: frame.length bytes, null when that is 0.
  [[nodiscard]] core::Result<std::byte*> begin(const Frame& frame);
  /// The payload is complete; `intact`: its hash is right. Errc::peer_lost: the peer sent bye.
  [[nodiscard]] core::Result<void> finish(const Frame& frame, bool intact);
  [[nodiscard]] bool has_output() const noexcept { return unacked_.has_more() || !small_.empty() || !turns_.empty(); }
  /// Appends the frames to write next: first those that a broken connection did not transfer; then small frames, and a chunk of one
  /// message. Tags take turns.
  void take(std::vector<Outgoing>& batch);
  /// `frames`, the oldest that take() gave and that were not reported yet, have been written.
  void wrote(std::span<const Outgoing> frames);
  void beat();
  /// Counts `bytes` of progress, without heartbeats. Needs no mutex.
  void moved(std::uint64_t bytes) noexcept { progress_ += bytes; }

  /// "peer X is lost: why". Later operations are refused; the first reason is kept.
  void lose(core::Errc code, std::string_view why);
  /// Completes everything outstanding. Call lose() first, and after no TcpConnection uses the session any more.
  void end(Outcome outcome);

 private:
  struct Sending {
    OperationId operation;
    Tag tag;
    ConstMemoryView memory;
    bool announced = false;  // its offer was queued among the small frames
    bool taken = false;      // take() has handed out its offer
    bool eager = false;
    bool wanted = false;
    bool withdrawing = false;
    std::size_t given = 0;         // payload bytes that take() has handed out
    std::size_t written = 0;       // … and that the connection has written
    std::uint64_t last_frame = 0;  // number of the newest frame with its offer or payload
  };
  struct Posted {
    OperationId operation;
    MemoryView memory;
  };
  struct Arrived {
    OperationId operation;  // holds the peer's number of the message, for Matcher
    std::size_t size;
    bool eager;
    std::vector<std::byte> body;  // when eager
  };
  struct Incoming {
    Posted posted;
    Tag tag;
    std::size_t received = 0;
  };
  /// The eager message whose payload is being read; `body` also takes the text of a bye.
  struct Landing {
    Tag tag{};
    std::optional<Posted> posted;  // empty: no receive is posted, the payload goes to `body`
    std::vector<std::byte> body;   // also for a message that its receive cannot take
  };
  struct OperationKey {
    enum class Kind : std::uint8_t { establish, send, receive } kind;
    std::uint64_t message = 0;  // of a send
    Tag tag{};                  // of a receive
  };

  void open(Window of_peer);
  void announce();
  void give(std::vector<Outgoing>& batch, const Outgoing& frame);
  void give_chunk(std::vector<Outgoing>& batch);
  void reply(FrameType type, std::uint64_t message, std::uint64_t size = 0);
  void match(const Posted& posted, Tag tag, Arrived message);
  void end_incoming(std::size_t size, bool eager);
  void end_sending(std::map<std::uint64_t, Sending>::iterator sending, Completion completion);
  void fail(OperationId operation, core::Error error);
  void done(OperationId operation, std::size_t bytes);
  [[nodiscard]] core::Error wrong_length(Tag tag, bool mine, std::size_t message, std::size_t receive) const;
  [[nodiscard]] core::Error damaged(Tag tag) const;
  [[nodiscard]] core::Result<std::byte*> begin_offer(const Frame& frame);
  void finish_offer(const Frame& frame);
  [[nodiscard]] core::Result<void> finish_chunk(const Frame& frame);
  [[nodiscard]] core::Result<void> finish_answer(const Frame& frame);

  const Setup setup_;
  std::optional<core::Error> lost_;
  std::unordered_map<OperationId, OperationKey> keys_;  // operations that cancel() can find
  Traffic traffic_;
  std::atomic<std::uint64_t> progress_ = 0;

  // Output.
  bool open_ = false;
  Window peer_window_;
  std::uint64_t next_message_ = 1;
  std::map<std::uint64_t, Sending> sends_;
  std::size_t bytes_out_ = 0;        // of sends_: counted by Credit
  std::deque<std::uint64_t> held_;   // messages not announced yet
  std::uint64_t announced_out_ = 0;  // counted by the peer's window
  std::uint64_t eager_out_ = 0;
  std::deque<Outgoing> small_;
  std::map<Tag, std::deque<std::uint64_t>> bulk_;  // messages wanted and not fully handed out, by tag
  std::deque<Tag> turns_;                          // the keys of bulk_
  UnackedFrames unacked_;
  std::uint64_t ends_said_ = 0;  // ends of the peer's messages that were queued

  // Input.
  Matcher<Posted, Arrived> matcher_;
  std::uint64_t received_ = 0;
  std::uint64_t last_message_ = 0;
  std::uint64_t announced_in_ = 0;
  std::uint64_t eager_in_ = 0;
  std::unordered_map<std::uint64_t, Incoming> incoming_;
  Landing landing_;
};

}  // namespace troupe::transport
