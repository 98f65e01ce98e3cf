/// What one member and one peer have to do with each other: operations, matching, windows, and the frames that follow
/// from them. No socket, no thread and no clock in it: a pump (transport/tcp/connection.hpp) carries the frames, and when its connection
/// breaks, another over another. A break leaves everything as it is: operations wait, and may be posted and cancelled.
///
/// Bounds. This side announces no more than the peer's window has room for; what waits beyond that stays where the
/// caller has it, bounded by Credit. A peer that exceeds the window it was given (what it was told the end of
/// counts until it acknowledges that), or ends a message that was not all sent or not acknowledged, or speaks of one there
/// is not, breaks the protocol: Errc::corrupt, and it is given up.
///
/// Thread rule: guarded by its member's mutex; begin(), finish(), take(), wrote(), broke(), resume() and end() are for the I/O thread. Lent
/// memory is touched by whoever carries frames and by receive(), which copies a message of at most kEagerBytes that
/// came before it.
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
#include "transport/completion_queue.hpp"
#include "transport/endpoint.hpp"
#include "transport/common/matcher.hpp"
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
  /// Bytes of messages that have come in or gone out, and frames that the peer holds: with a slow peer what has gone out is a buffer's.
  [[nodiscard]] std::uint64_t progress() const noexcept { return progress_; }
  [[nodiscard]] const std::optional<core::Error>& lost() const noexcept { return lost_; }

  // Operations, as endpoint.hpp has them.
  [[nodiscard]] OperationId establish();
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Tag tag, ConstMemoryView memory);
  [[nodiscard]] core::Result<OperationId> receive(Tag tag, MemoryView memory);
  enum class Cancelled : std::uint8_t { unknown, asked, connecting };
  /// connecting: `established` has completed as cancelled, and the rest is the caller's.
  Cancelled cancel(OperationId operation);

  // The connection.
  /// There is one: the first or, after broke(), another. `of_peer`: its greeting. Errc::corrupt: it claims what cannot be.
  [[nodiscard]] core::Result<void> connected(const Hello& of_peer);
  /// It broke, and nobody carries frames until the next. A receive whose message was coming in waits for it again.
  void broke();
  /// Numbered frames of the peer that are finished.
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }
  /// Where the payload of a frame belongs: frame.length bytes, null when that is 0.
  [[nodiscard]] core::Result<std::byte*> begin(const Frame& frame);
  /// The payload is there; `intact`: its hash is right. Errc::peer_lost: the peer took its leave.
  [[nodiscard]] core::Result<void> finish(const Frame& frame, bool intact);
  [[nodiscard]] bool has_output() const noexcept { return unacked_.has_more() || !small_.empty() || !turns_.empty(); }
  /// Appends what is to be written next: what a broken connection has not brought over; else all small frames, and a
  /// chunk of one message, tags taking turns.
  void take(std::vector<Outgoing>& batch);
  /// These, the oldest that take() gave, have left.
  void wrote(std::span<const Outgoing> frames);
  void beat();
  /// So many bytes of frames have moved that say more than that somebody is there. Needs no mutex.
  void moved(std::uint64_t bytes) noexcept { progress_ += bytes; }

  /// "peer X is lost: why". From now on operations are refused; the first reason stays.
  void lose(core::Errc code, std::string_view why);
  /// Completes everything that is outstanding; nobody carries frames any more. lose() comes first.
  void end(Outcome outcome);

 private:
  struct Sending {
    OperationId operation;
    Tag tag;
    ConstMemoryView memory;
    bool announced = false;  // its offer is among the small frames, or was
    bool taken = false;      // its offer is with the pump, or was
    bool eager = false;
    bool wanted = false;
    bool withdrawing = false;
    std::size_t given = 0;         // payload that take() has handed out
    std::size_t written = 0;       // … and that is not read any more
    std::uint64_t last_frame = 0;  // number of the newest with an offer or payload of it
  };
  struct Posted {
    OperationId operation;
    MemoryView memory;
  };
  struct Arrived {
    OperationId operation;  // the peer's number of the message, so that a Matcher finds it
    std::size_t size;
    bool eager;
    std::vector<std::byte> body;  // when eager
  };
  struct Incoming {
    Posted posted;
    Tag tag;
    std::size_t received = 0;
  };
  /// The eager message whose payload is on its way in.
  struct Landing {
    Tag tag{};
    std::optional<Posted> posted;  // empty: nobody has received it, it goes to `body`
    std::vector<std::byte> body;   // also what nobody can take
  };
  struct Place {
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
  std::unordered_map<OperationId, Place> places_;  // what cancel() may ask for
  Traffic traffic_;
  std::atomic<std::uint64_t> progress_ = 0;

  // Out.
  bool open_ = false;
  Window peer_window_;
  std::uint64_t next_message_ = 1;
  std::map<std::uint64_t, Sending> sends_;
  std::size_t bytes_out_ = 0;        // of sends_: what Credit counts
  std::deque<std::uint64_t> held_;   // not announced yet
  std::uint64_t announced_out_ = 0;  // what the peer's window counts
  std::uint64_t eager_out_ = 0;
  std::deque<Outgoing> small_;
  std::map<Tag, std::deque<std::uint64_t>> bulk_;  // wanted and not all given, by tag
  std::deque<Tag> turns_;                          // the keys of bulk_
  UnackedFrames unacked_;
  std::uint64_t ends_said_ = 0;  // of the peer's messages

  // In.
  Matcher<Posted, Arrived> matcher_;
  std::uint64_t received_ = 0;
  std::uint64_t last_message_ = 0;
  std::uint64_t announced_in_ = 0;
  std::uint64_t eager_in_ = 0;
  std::unordered_map<std::uint64_t, Incoming> incoming_;
  Landing landing_;
};

}  // namespace troupe::transport
