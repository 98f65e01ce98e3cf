/// Calls to members of other processes that lend a vector for as long as they last: what a message with a Lent slice is within
/// one process. The caller's floats travel to the callee, who works on a copy, or come back from it, or both; a few bytes of
/// header go along each way. One round trip, whatever the vector's length.
///
///     caller                                    callee
///     envelope, vector ────────────────────▶    handler(header, vector)
///     answered(header)  ◀──────────────────     reply(header): vector, envelope
///
/// Calls of one peer reach the handler in the order in which the peer made them: one that carries nothing waits for the vector of the
/// one before. Answers come in any order.
///
/// What a peer can make the callee hold: the vectors of calls that are not answered, kMostVectors of the longest at most (a call
/// beyond waits its turn, and so do those behind it), and kMostCalls envelopes. One whose change goes back counts twice.
///
/// Vectors may be rounded to 16 bits on the way, as far as core::Rounding lets them. Payload on the wire: 4 or 2 bytes per float and
/// direction, and 256 bytes per envelope. Where the change is no number of the 16-bit format (NaN, infinity, above 65,504
/// in fp16), the vector comes back itself, rounded, in place of what the caller lent.
///
/// Whoever drives the courier drives the calls; handlers and answers come from within its callbacks. Not thread-safe. A call
/// ends exactly once: with the answer, with what the callee says went wrong, or with Errc::peer_lost. No deadline ends it: give up the peer
/// (Endpoint::disconnect) when it takes too long. Malformed envelopes, vectors of another length than announced, answers to nothing
/// and more than kMostCalls calls at once end the connection (Errc::corrupt).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/exchange/courier.hpp"

namespace troupe::exchange {

/// What the callee gets of the caller's vector, and what becomes of it.
enum class Lend : std::uint8_t {
  nothing,  ///< no vector, a header alone
  read,     ///< its floats
  write,    ///< room for as many; they come back with the answer
  both,
};

/// Headers are at most so long: bytes.
inline constexpr std::size_t kMostHeader = 216;
/// Of one peer, not answered yet.
inline constexpr std::size_t kMostVectors = 8;
inline constexpr std::size_t kMostCalls = 4096;

struct Envelope;

struct Call {
  std::string header;
  core::Span vector{};  // the caller's, until answered
  Lend lend = Lend::nothing;
  std::optional<core::HalfKind> half{};  // on the wire, for what `rounding` lets be rounded
  core::Rounding rounding = core::Rounding::both;
};

class Calls {
 public:
  using Answered = std::function<void(core::Result<std::string>)>;
  /// Answers a call; to be called once, from any time on, on the thread of the courier. A result without a header: what went wrong.
  using Reply = std::function<void(core::Result<std::string>)>;
  struct Incoming {
    transport::Peer from{};
    std::string header;
    Lend lend = Lend::nothing;
    core::Span vector{};  // the callee's own until it replies: a copy, or zeros where only room was lent
    Reply reply;
  };
  using Handler = std::function<void(Incoming)>;
  using Lost = std::function<void(transport::Peer, const core::Error&)>;

  /// `lost` is told once of every peer that goes; calls to it end with the same error when nothing of theirs is lent any more. All
  /// arguments outlive the object, which ends after the endpoint was closed and its completions were delivered. Vectors of calls that
  /// come in may have up to `most_floats`: a peer that says more is dropped.
  Calls(transport::Endpoint& endpoint, Courier& courier, const core::Kernels& kernels, core::Allocator& memory,
        std::size_t most_floats, std::uint8_t run, Handler handler, Lost lost);
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// Hears what a connected peer calls. Once per peer.
  void listen(transport::Peer peer);
  void call(transport::Peer peer, Call call, Answered answered);

 private:
  struct Line;
  struct Outgoing;
  struct Serving;

  void hear(Line& line);
  void handle(Line& line, const Envelope& envelope);
  void serve(Line& line, const Envelope& envelope);
  void make_room(Line& line);
  void hand_over(Line& line);
  void free_room(Line& line, const Serving& serving);
  void answer(Line& line, const std::shared_ptr<Serving>& serving, core::Result<std::string> result);
  void answered(Line& line, const Envelope& envelope);
  void give(Line& line, const std::shared_ptr<Outgoing>& outgoing);
  void take(Line& line, const std::shared_ptr<Outgoing>& outgoing);
  void moved(Line& line, Outgoing& outgoing, std::size_t moves);
  void settle(Line& line, std::uint32_t id);
  void send_envelope(Line& line, const Envelope& envelope, std::function<void()> next);
  void drop(Line& line, const core::Error& error);
  [[nodiscard]] transport::Tag tag(transport::TagKind kind, std::uint32_t id) const;
  /// Calls `next` when the operation has ended; a failure drops the line first.
  [[nodiscard]] Courier::Done then(Line& line, std::function<void()> next);

  transport::Endpoint& endpoint_;
  Courier& courier_;
  const core::Kernels& kernels_;
  core::Allocator& memory_;
  const std::size_t most_floats_;
  const std::uint8_t run_;
  const Handler handler_;
  const Lost lost_;
  std::map<transport::Peer, std::unique_ptr<Line>> lines_;
};

}  // namespace troupe::exchange
