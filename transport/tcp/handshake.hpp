/// How two tcp members connect. Both call connect(), in any order; the result is one connection.
///
///     caller                                  called
///     hello{attempt, connection, token, peer's token, received, window, from, to}
///                                       ──►   not that member: refuse(pending connection); session ended: refuse(over)
///                                             no connect() to the caller yet: waits for it; for long or many: refuse(later)
///                                       ◄──   welcome{the same}
///     ready                             ──►   both have a connection
///
/// Each member calls the other unless a call from the other is waiting. If both call at once, the call of the member with the
/// smaller address is taken and the other call is dropped; if the first one fails, the waiting call is taken. A call that breaks
/// before welcome is repeated for a while. If the peer does not answer at all, the attempt ends.
///
/// A broken connection is followed by another one of the same session, made in the same way: both members call. `connection` counts
/// them. While a member has a connection, a call for a later number replaces it and a call for an earlier number is ignored. Each
/// member shows the token that the other gave in the first handshake and reports how many numbered frames it has received; both
/// continue after those (transport/tcp/protocol/unacked.hpp). The call goes to the address that the session began with, and TLS
/// checks the certificate as before. A caller that does not know the token is refused and reported; nothing else changes. A peer
/// that has been connected is lost after kRefusals refused connections in a row; in a first attempt one refusal is enough.
/// Otherwise the caller of reconnect() decides how long to try.
///
/// Refused connections: a peer that does not speak this protocol, TLS or version; that shows no certificate of our authority, or
/// one that does not name the host that the peer claims; that sends no hello within `lost_after`; the oldest of more than
/// `max_pending`. Each one is reported. It costs a socket and, with TLS, about 80 KiB (at most 220 KiB: an extension of 60 KiB in
/// its ClientHello).
///
/// Thread rule: the I/O thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "transport/completion_queue.hpp"
#include "transport/net/address.hpp"
#include "transport/net/refusal_reporter.hpp"
#include "transport/net/tcp_options.hpp"
#include "transport/tcp/asio.hpp"
#include "transport/tcp/handshake_steps.hpp"
#include "transport/tcp/protocol/hello.hpp"
#include "transport/tcp/stream.hpp"

namespace troupe::transport {

class TcpHandshake {
 public:
  struct Setup {
    TcpAddress self;
    Window window;                 // limit of what a peer may announce to this member
    std::shared_ptr<SSL_CTX> tls;  // null: plain
    TcpOptions options;
    std::function<std::uint64_t(Peer)> received;  // numbered frames received from the peer so far
    std::function<void(Peer, TcpStream, const Hello& of_peer)> connected;
    std::function<void(Peer)> superseded;  // another connection replaces the current one and will lead to connected()
    std::function<void(Peer, const core::Error& why)> failed;
  };
  TcpHandshake(asio::io_context& io, Setup setup);

  /// Begins a new session. Leads to connected() or failed(), unless forget() comes first.
  void connect(Peer peer, const TcpAddress& remote);
  /// The connection broke. As connect(), but continues the session.
  void reconnect(Peer peer, const std::string& remote);
  /// The session has ended; a peer that still wants to continue it receives `why`.
  void forget(Peer peer, const std::string& remote, std::string_view why);
  /// Handles a connection that the listening socket has accepted.
  void accept(tcp::socket socket);
  /// Closes everything and reports nothing any more.
  void close();

 private:
  struct PendingConnection;
  struct Wanted;
  using PendingPtr = std::shared_ptr<PendingConnection>;
  using WantedPtr = std::shared_ptr<Wanted>;
  struct Answer;
  struct Ended {
    SessionToken token;
    std::string why;
  };
  /// The reason to refuse a hello. A pending connection does not receive this member's address: only introduced peers may know its
  /// incarnation.
  struct Objection {
    std::string to_pending;
    std::string for_log;
  };

  [[nodiscard]] asio::awaitable<void> dial(WantedPtr wanted, std::shared_ptr<TcpCall> call);
  [[nodiscard]] asio::awaitable<Answer> ask(WantedPtr wanted, std::shared_ptr<TcpCall> call);
  [[nodiscard]] asio::awaitable<core::Result<HandshakeFrame>> say_hello(WantedPtr wanted, std::shared_ptr<TcpCall> call,
                                                                        Hello hello);
  [[nodiscard]] Answer no_answer(const Wanted& wanted, const TcpCall& call, const core::Error& why) const;
  [[nodiscard]] static Answer not_welcome(Wanted& wanted, const HandshakeFrame& reply);
  [[nodiscard]] asio::awaitable<core::Result<void>> reach(WantedPtr wanted, std::shared_ptr<TcpCall> call,
                                                          core::Duration most);
  [[nodiscard]] asio::awaitable<void> receive(PendingPtr pending);
  [[nodiscard]] asio::awaitable<core::Result<Hello>> introduce(PendingPtr pending);
  [[nodiscard]] asio::awaitable<void> welcome(PendingPtr pending);
  [[nodiscard]] asio::awaitable<void> reject(PendingPtr pending, RefuseCode code, std::string why);
  void run(asio::awaitable<void> part, std::function<void(const std::string& why)> failed);
  void run_for(const PendingPtr& pending, asio::awaitable<void> part);
  void abandon(const WantedPtr& wanted, const std::string& why);
  void take_or_dial(const WantedPtr& wanted);
  void start_dialling(const WantedPtr& wanted);
  [[nodiscard]] Hello make_hello(const Wanted& wanted) const;
  [[nodiscard]] static bool belongs(const Wanted& wanted, const Hello& hello);
  [[nodiscard]] static bool overtaken(const Wanted& wanted, const Hello& hello);
  [[nodiscard]] PendingPtr waiting_for(const Wanted& wanted) const;
  void give_up(const WantedPtr& wanted, const core::Error& why);
  void refuse_to_continue(const PendingPtr& pending);
  void decide(const PendingPtr& pending);
  void hold(const PendingPtr& pending);
  void take(const WantedPtr& wanted, PendingPtr pending);
  void drop(const PendingPtr& pending);
  void refused(const PendingConnection& pending, const std::string& why);
  void connected(const WantedPtr& wanted, TcpCall& call, const Hello& of_peer);
  [[nodiscard]] std::optional<Objection> objection_to(const PendingConnection& pending, const Hello& hello) const;

  asio::io_context& io_;
  const Setup setup_;
  const std::string self_;
  std::uint64_t attempts_ = 0;
  bool closed_ = false;
  const core::SteadyClock clock_{};
  RefusalReporter refusals_;
  std::map<std::string, WantedPtr> wanted_;    // by address; until forget() or failed()
  std::map<std::string, Ended> ended_;         // by address: the last session with it
  std::list<PendingPtr> pending_connections_;  // oldest first
  std::map<std::string, PendingPtr> held_;     // by address of the caller
};

}  // namespace troupe::transport
