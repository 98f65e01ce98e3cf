// The accepting side of the handshake.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "transport/security/tls_context.hpp"
#include "transport/tcp/handshake_state.hpp"
#include "transport/tcp/socket_options.hpp"

namespace troupe::transport {

using namespace std::chrono_literals;

namespace {

constexpr core::Duration kHeldFor = 30s;
constexpr core::Duration kLinger = 1s;
constexpr std::size_t kMostHeld = 256;

}  // namespace

void TcpHandshake::accept(tcp::socket socket) {
  const auto pending = std::make_shared<PendingConnection>();
  SystemError error;
  const tcp::endpoint from = socket.remote_endpoint(error);
  if (error) return;  // closed already
  pending->from = fmt::format("{}:{}", from.address().to_string(), from.port());
  set_options(socket, setup_.options);
  pending->call = std::make_shared<TcpCall>(std::move(socket));
  pending_connections_.push_back(pending);
  if (pending_connections_.size() > setup_.options.max_pending) {
    const PendingPtr oldest = pending_connections_.front();
    oldest->crowded_out = true;
    oldest->call->close();
    pending_connections_.pop_front();
  }
  run_for(pending, receive(pending));
}

void TcpHandshake::refused(const PendingConnection& pending, const std::string& why) {
  if (!closed_) refusals_.report(pending.from, why);
}

asio::awaitable<void> TcpHandshake::receive(PendingPtr pending) {
  TcpCall& call = *pending->call;
  limit(pending->call, setup_.options.lost_after);
  const core::Result<Hello> hello = co_await introduce(pending);
  if (!hello) {
    if (pending->crowded_out)
      refused(*pending, fmt::format("closed: {} newer connections are pending and it has not authenticated",
                                    setup_.options.max_pending));
    else if (call.timed_out)
      refused(*pending, "it did not authenticate in time");
    else if (hello.error().code != core::Errc::peer_lost)  // a peer that left by itself was not refused
      refused(*pending, hello.error().message);
    if (call.stream.socket().is_open()) {
      limit(pending->call, kLinger);
      co_await linger(call.stream);
    }
    pending_connections_.remove(pending);
    call.close();
    co_return;
  }
  pending_connections_.remove(pending);
  pending->hello = *hello;
  decide(pending);
  const core::Result<HandshakeFrame> next = co_await read_frame(call.stream);  // or the end of the connection
  const WantedPtr wanted = pending->wanted;
  if (next && next->frame.type == FrameType::ready && wanted && wanted->taken == pending) {
    connected(wanted, call, pending->hello);
    co_return;
  }
  drop(pending);
}

/// Reads and checks the hello: certificate, version and addresses.
asio::awaitable<core::Result<Hello>> TcpHandshake::introduce(PendingPtr pending) {
  TcpStream& stream = pending->call->stream;
  if (setup_.tls) {
    core::Result<void> secured = stream.secure(setup_.tls.get(), "");
    if (secured) secured = co_await shake_hands(stream);
    if (!secured) co_return tl::unexpected(secured.error());
  }
  const core::Result<HandshakeFrame> first = co_await read_frame(stream);
  if (!first) co_return tl::unexpected(first.error());
  if (first->frame.type != FrameType::hello) co_return core::fail(core::Errc::corrupt, "it did not say hello");
  const core::Result<Hello> hello = decode_hello(first->payload);
  if (!hello) co_return hello;
  const std::optional<Objection> objection = objection_to(*pending, *hello);
  if (!objection) co_return hello;
  Frame frame;
  frame.type = FrameType::refuse;
  frame.message = static_cast<std::uint64_t>(RefuseCode::pending_connection);
  const std::string& why = objection->to_pending;
  const auto* bytes = reinterpret_cast<const std::byte*>(why.data());
  (void)co_await write_frame(stream, frame, std::vector<std::byte>(bytes, bytes + why.size()));
  co_return core::fail(core::Errc::corrupt, objection->for_log);
}

std::optional<TcpHandshake::Objection> TcpHandshake::objection_to(const PendingConnection& pending,
                                                                  const Hello& hello) const {
  const auto said = [](std::string text) { return Objection{text, text}; };
  if (hello.version != kTcpVersion)
    return said(
        fmt::format("it speaks version {} of the tcp protocol, this member {}: run the same version of troupe "
                    "on all hosts",
                    hello.version, kTcpVersion));
  const auto from = parse_tcp_address(hello.from);
  if (!from) return said("it claims an address that is none");
  if (setup_.tls && !security::names_host(pending.call->stream.peer_certificate().get(), from->at.host))
    return said(
        fmt::format("its certificate does not name {}, where it claims to be (`troupe certs node NAME --host {}` "
                    "makes one that does)",
                    from->at.host, from->at.host));
  if (hello.to != self_)
    return Objection{"this is another member, or another incarnation of it",
                     fmt::format("{} looked for {} and found {}", hello.from, hello.to, self_)};
  if (hello.from == self_) return said("it claims to be this member");
  return std::nullopt;
}

/// Decides what to do with an introduced connection.
void TcpHandshake::decide(const PendingPtr& pending) {
  const Hello& hello = pending->hello;
  const auto found = wanted_.find(hello.from);
  if (found == wanted_.end()) return hello.peer_token.empty() ? hold(pending) : refuse_to_continue(pending);
  const WantedPtr wanted = found->second;
  if (overtaken(*wanted, hello)) return drop(pending);
  if (!belongs(*wanted, hello)) return refuse_to_continue(pending);
  if (wanted->connected) {
    if (hello.connection <= wanted->connection) return drop(pending);  // an earlier connection's call, late
    wanted->connected = false;
    setup_.superseded(wanted->peer);
  } else if (wanted->taken) {  // a newer attempt replaces the older one
    if (hello.attempt < wanted->taken->hello.attempt) return drop(pending);
    std::exchange(wanted->taken, nullptr)->call->close();
  } else if (wanted->dialling && !wanted->pausing && hello.from > self_ &&
             (!wanted->began || wanted->dialling->said_hello)) {
    return hold(pending);  // this member's own call has priority; when mending, only once it has sent hello
  }
  if (const auto call = std::exchange(wanted->dialling, nullptr)) call->close();
  take(wanted, pending);
}

/// The caller wants to continue a session that does not exist or is not its own, or to begin one while there is one.
void TcpHandshake::refuse_to_continue(const PendingPtr& pending) {
  if (pending->hello.peer_token.empty()) {
    refused(*pending, fmt::format("it wants a first connection of {}, with which there is one", pending->hello.from));
    return run_for(pending,
                   reject(pending, RefuseCode::later, "it has not noticed the end of the previous connection yet"));
  }
  const auto ended = ended_.find(pending->hello.from);
  const bool known = ended != ended_.end() && ended->second.token == pending->hello.peer_token;
  if (!known)
    refused(*pending,
            fmt::format("it wants to go on with a connection of {} and does not know its token", pending->hello.from));
  const std::string why = known ? ended->second.why : "there is no such connection";
  run_for(pending, reject(pending, RefuseCode::over, why));
}

void TcpHandshake::hold(const PendingPtr& pending) {
  const auto [held, added] = held_.emplace(pending->hello.from, pending);
  if (!added) {
    if (pending->hello.attempt < held->second->hello.attempt) return drop(pending);
    std::exchange(held->second, pending)->call->close();
  }
  const auto away = [this](const PendingPtr& who) {
    run_for(who, reject(who, RefuseCode::later, "it has not connected to this one yet"));
  };
  if (held_.size() > kMostHeld) {
    held_.erase(pending->hello.from);
    return away(pending);
  }
  const std::shared_ptr<TcpCall> call = pending->call;
  call->timer.expires_after(kHeldFor);
  call->timer.async_wait([this, pending, away](const SystemError& error) {
    const auto waiting = held_.find(pending->hello.from);
    if (error || waiting == held_.end() || waiting->second != pending) return;
    held_.erase(waiting);
    away(pending);
  });
}

asio::awaitable<void> TcpHandshake::reject(PendingPtr pending, RefuseCode code, std::string why) {
  if (!pending->call->stream.socket().is_open()) co_return;  // closed by the peer already
  pending_connections_.push_back(pending);                   // until drop(): close() and max_pending can end it
  limit(pending->call, kLinger);
  Frame frame;
  frame.type = FrameType::refuse;
  frame.message = static_cast<std::uint64_t>(code);
  const auto* bytes = reinterpret_cast<const std::byte*>(why.data());
  (void)co_await write_frame(pending->call->stream, frame, std::vector<std::byte>(bytes, bytes + why.size()));
  SystemError ignored;
  pending->call->stream.socket().shutdown(tcp::socket::shutdown_send, ignored);  // receive() reads until the end
}

void TcpHandshake::take(const WantedPtr& wanted, PendingPtr pending) {  // by value: held_ may hold the last one
  if (const auto waiting = held_.find(wanted->text); waiting != held_.end() && waiting->second == pending)
    held_.erase(waiting);
  wanted->taken = pending;
  wanted->connection = std::max(wanted->connection, pending->hello.connection);
  wanted->peer_token = pending->hello.token;
  pending->wanted = wanted;
  limit(pending->call, setup_.options.lost_after);
  run_for(pending, welcome(pending));
}

asio::awaitable<void> TcpHandshake::welcome(PendingPtr pending) {
  Hello hello = make_hello(*pending->wanted);
  hello.attempt = pending->hello.attempt;
  hello.connection = pending->hello.connection;
  Frame frame;
  frame.type = FrameType::welcome;
  const core::Result<void> written = co_await write_frame(pending->call->stream, frame, encode(hello));
  if (!written) pending->call->close();  // receive() notices
}

/// Closes and forgets the connection. If a session was going to use it, the session calls the peer itself.
void TcpHandshake::drop(const PendingPtr& pending) {
  pending->call->close();
  pending_connections_.remove(pending);
  if (const auto waiting = held_.find(pending->hello.from); waiting != held_.end() && waiting->second == pending)
    held_.erase(waiting);
  const WantedPtr wanted = pending->wanted;
  if (!wanted || wanted->taken != pending) return;
  wanted->taken.reset();
  start_dialling(wanted);
}

}  // namespace troupe::transport
