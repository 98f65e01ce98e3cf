/// How two tcp members find each other. Both call connect(), in any order, and end up with one connection.
///
///     caller                                  called
///     hello{attempt, window, from, to}  ──►   not that member: refuse(stranger)
///                                             no connect() to the caller yet: waits for it; for long or many: refuse(later)
///                                       ◄──   welcome{window}
///     ready                             ──►   both are established
///
/// Each calls the other unless a call of the other is waiting. When both call at once, the call of the one with the
/// smaller address is taken, and the other is dropped; should it not get through, the one that waits is. A call that
/// breaks before welcome is made again, for a while; one that nobody answers ends the attempt.
///
/// Who is turned away: whoever does not speak our protocol, TLS or version, shows no certificate of our authority, or
/// one that does not name the host it claims to be; who does not say hello within `patience`; the oldest of more than
/// `max_strangers`. Such a connection costs a socket and less than 64 KiB, and is reported.
///
/// Thread rule: the I/O thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "transport/completion_queue.hpp"
#include "transport/tcp_address.hpp"
#include "transport/tcp_asio.hpp"
#include "transport/tcp_greeting.hpp"
#include "transport/tcp_hello.hpp"
#include "transport/tcp_options.hpp"
#include "transport/tcp_stream.hpp"

namespace troupe::transport {

class TcpMeeting {
 public:
  struct Setup {
    TcpAddress self;
    Window window;                 // what peers may announce to this member
    std::shared_ptr<SSL_CTX> tls;  // null: plain
    TcpOptions options;
    std::function<void(Peer, TcpStream, Window of_peer)> met;
    std::function<void(Peer, const core::Error& why)> failed;
  };
  TcpMeeting(asio::io_context& io, Setup setup);

  /// Ends by met(), failed() or forget().
  void want(Peer peer, const TcpAddress& remote);
  void forget(const std::string& remote);
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

  [[nodiscard]] asio::awaitable<void> dial(WantedPtr wanted, std::shared_ptr<TcpCall> call);
  [[nodiscard]] asio::awaitable<Answer> ask(WantedPtr wanted, std::shared_ptr<TcpCall> call);
  [[nodiscard]] asio::awaitable<core::Result<void>> reach(const WantedPtr& wanted, TcpCall& call);
  [[nodiscard]] asio::awaitable<void> receive(VisitorPtr visitor);
  [[nodiscard]] asio::awaitable<core::Result<Hello>> introduce(VisitorPtr visitor);
  [[nodiscard]] asio::awaitable<void> welcome(VisitorPtr visitor);
  [[nodiscard]] asio::awaitable<void> turn_away(VisitorPtr visitor, RefuseCode code, std::string why);
  void start_dialling(const WantedPtr& wanted);
  void place(const VisitorPtr& visitor);
  void park(const VisitorPtr& visitor);
  void adopt(const WantedPtr& wanted, VisitorPtr visitor);
  void leave(const VisitorPtr& visitor);
  void refused(const Visitor& visitor, const std::string& why) const;
  void met(const WantedPtr& wanted, TcpCall& call, Window of_peer);
  [[nodiscard]] core::Result<void> check_hello(const Visitor& visitor, const Hello& hello) const;

  asio::io_context& io_;
  const Setup setup_;
  const std::string self_;
  std::uint64_t attempts_ = 0;
  bool closed_ = false;
  std::map<std::string, WantedPtr> wanted_;   // by address
  std::list<VisitorPtr> strangers_;           // oldest first
  std::map<std::string, VisitorPtr> parked_;  // by the address of who calls
};

}  // namespace troupe::transport
