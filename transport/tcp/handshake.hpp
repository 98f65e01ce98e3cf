/// How two tcp members find each other. Both call connect(), in any order, and end up with one connection.
///
///     caller                                  called
///     hello{attempt, connection, token, peer's token, received, window, from, to}
///                                       ──►   not that member: refuse(stranger); gave it up: refuse(over)
///                                             no connect() to the caller yet: waits for it; for long or many: refuse(later)
///                                       ◄──   welcome{the same}
///     ready                             ──►   both have a connection
///
/// Each calls the other unless a call of the other is waiting. When both call at once, the call of the one with the
/// smaller address is taken, and the other is dropped; should it not get through, the one that waits is. A call that
/// breaks before welcome is made again, for a while; one that nobody answers ends the attempt.
///
/// A connection that breaks is followed by another of the same session, found in the same way: both call. `connection`
/// counts them: while a member believes that it has one, a call for a later one takes its place, and one for an earlier is
/// late. Each shows the token that the other gave in the first greeting and says how many numbered frames it has
/// received; both go on after those (transport/tcp/protocol/unacked.hpp). The call goes to the address that the session began with, and TLS
/// checks the certificate as before. One who does not know the token is refused and reported, and changes nothing.
/// A member that refuses connections is gone, after kRefusals of them in a row; otherwise it is for the caller of again()
/// to say when it has been long enough.
///
/// Who is turned away: whoever does not speak our protocol, TLS or version, shows no certificate of our authority, or
/// one that does not name the host it claims to be; who does not say hello within `lost_after`; the oldest of more than
/// `max_strangers`. Such a connection is reported, and costs a socket and, in TLS, some 80 KiB (220 KiB at the most: an
/// extension of 60 KiB in its ClientHello).
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
#include "transport/net/refusal_reporter.hpp"
#include "transport/net/address.hpp"
#include "transport/tcp/asio.hpp"
#include "transport/tcp/greeting.hpp"
#include "transport/tcp/protocol/hello.hpp"
#include "transport/net/tcp_options.hpp"
#include "transport/tcp/stream.hpp"

namespace troupe::transport {

class TcpMeeting {
 public:
  struct Setup {
    TcpAddress self;
    Window window;                 // what peers may announce to this member
    std::shared_ptr<SSL_CTX> tls;  // null: plain
    TcpOptions options;
    std::function<std::uint64_t(Peer)> received;  // numbered frames of the peer so far
    std::function<void(Peer, TcpStream, const Hello& of_peer)> met;
    std::function<void(Peer)> superseded;  // its connection: another is on its way to met()
    std::function<void(Peer, const core::Error& why)> failed;
  };
  TcpMeeting(asio::io_context& io, Setup setup);

  /// A new session. Leads to met() or failed(), unless forget() comes first.
  void want(Peer peer, const TcpAddress& remote);
  /// The connection broke. As want(), for the same session.
  void again(Peer peer, const std::string& remote);
  /// The session is over; whoever still wants to go on with it is told `why`.
  void forget(Peer peer, const std::string& remote, std::string_view why);
  /// Somebody has connected to the listening socket.
  void visit(tcp::socket socket);
  /// Closes everything; nothing is reported any more.
  void close();

 private:
  struct Visitor;
  struct Wanted;
  using VisitorPtr = std::shared_ptr<Visitor>;
  using WantedPtr = std::shared_ptr<Wanted>;
  struct Answer;
  struct Ended {
    SessionToken token;
    std::string why;
  };
  /// What is wrong with a hello. A stranger is not told this member's address: its incarnation is for those who were
  /// introduced.
  struct Objection {
    std::string to_stranger;
    std::string for_log;
  };

  [[nodiscard]] asio::awaitable<void> dial(WantedPtr wanted, std::shared_ptr<TcpCall> call);
  [[nodiscard]] asio::awaitable<Answer> ask(WantedPtr wanted, std::shared_ptr<TcpCall> call);
  [[nodiscard]] asio::awaitable<core::Result<void>> reach(WantedPtr wanted, std::shared_ptr<TcpCall> call,
                                                          core::Duration most);
  [[nodiscard]] asio::awaitable<void> receive(VisitorPtr visitor);
  [[nodiscard]] asio::awaitable<core::Result<Hello>> introduce(VisitorPtr visitor);
  [[nodiscard]] asio::awaitable<void> welcome(VisitorPtr visitor);
  [[nodiscard]] asio::awaitable<void> turn_away(VisitorPtr visitor, RefuseCode code, std::string why);
  void run(asio::awaitable<void> part, std::function<void(const std::string& why)> failed);
  void run_for(const VisitorPtr& visitor, asio::awaitable<void> part);
  void abandon(const WantedPtr& wanted, const std::string& why);
  void meet(const WantedPtr& wanted);
  void start_dialling(const WantedPtr& wanted);
  [[nodiscard]] Hello greeting(const Wanted& wanted) const;
  [[nodiscard]] static bool belongs(const Wanted& wanted, const Hello& hello);
  [[nodiscard]] static bool overtaken(const Wanted& wanted, const Hello& hello);
  [[nodiscard]] VisitorPtr waiting_for(const Wanted& wanted) const;
  void give_up(const WantedPtr& wanted, const core::Error& why);
  void refuse_to_go_on(const VisitorPtr& visitor);
  void place(const VisitorPtr& visitor);
  void park(const VisitorPtr& visitor);
  void adopt(const WantedPtr& wanted, VisitorPtr visitor);
  void leave(const VisitorPtr& visitor);
  void refused(const Visitor& visitor, const std::string& why);
  void met(const WantedPtr& wanted, TcpCall& call, const Hello& of_peer);
  [[nodiscard]] std::optional<Objection> objection_to(const Visitor& visitor, const Hello& hello) const;

  asio::io_context& io_;
  const Setup setup_;
  const std::string self_;
  std::uint64_t attempts_ = 0;
  bool closed_ = false;
  const core::SteadyClock clock_{};
  RefusalReporter refusals_;
  std::map<std::string, WantedPtr> wanted_;   // by address; until forget() or failed()
  std::map<std::string, Ended> ended_;        // by address: the last session with it
  std::list<VisitorPtr> strangers_;           // oldest first
  std::map<std::string, VisitorPtr> parked_;  // by the address of who calls
};

}  // namespace troupe::transport
