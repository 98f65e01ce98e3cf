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

constexpr core::Duration kParkedFor = 30s;
constexpr core::Duration kLingers = 1s;
constexpr std::size_t kMostParked = 256;

}  // namespace

void TcpHandshake::visit(tcp::socket socket) {
  const auto visitor = std::make_shared<Visitor>();
  SystemError error;
  const tcp::endpoint from = socket.remote_endpoint(error);
  if (error) return;  // closed already
  visitor->from = fmt::format("{}:{}", from.address().to_string(), from.port());
  set_options(socket, setup_.options);
  visitor->call = std::make_shared<TcpCall>(std::move(socket));
  pending_connections_.push_back(visitor);
  if (pending_connections_.size() > setup_.options.max_pending) {
    const VisitorPtr oldest = pending_connections_.front();
    oldest->crowded_out = true;
    oldest->call->close();
    pending_connections_.pop_front();
  }
  run_for(visitor, receive(visitor));
}

void TcpHandshake::refused(const Visitor& visitor, const std::string& why) {
  if (!closed_) refusals_.report(visitor.from, why);
}

asio::awaitable<void> TcpHandshake::receive(VisitorPtr visitor) {
  TcpCall& call = *visitor->call;
  limit(visitor->call, setup_.options.lost_after);
  const core::Result<Hello> hello = co_await introduce(visitor);
  if (!hello) {
    if (visitor->crowded_out)
      refused(*visitor, "too many that do not say who they are");
    else if (call.timed_out)
      refused(*visitor, "it did not say who it is in time");
    else if (hello.error().code != core::Errc::peer_lost)  // a peer that left by itself was not refused
      refused(*visitor, hello.error().message);
    if (call.stream.socket().is_open()) {
      limit(visitor->call, kLingers);
      co_await linger(call.stream);
    }
    pending_connections_.remove(visitor);
    call.close();
    co_return;
  }
  pending_connections_.remove(visitor);
  visitor->hello = *hello;
  place(visitor);
  const core::Result<GreetingFrame> next = co_await read_frame(call.stream);  // or the end of the connection
  const WantedPtr wanted = visitor->wanted;
  if (next && next->frame.type == FrameType::ready && wanted && wanted->adopted == visitor) {
    met(wanted, call, visitor->hello);
    co_return;
  }
  leave(visitor);
}

/// Reads and checks the hello: certificate, version and addresses.
asio::awaitable<core::Result<Hello>> TcpHandshake::introduce(VisitorPtr visitor) {
  TcpStream& stream = visitor->call->stream;
  if (setup_.tls) {
    core::Result<void> secured = stream.secure(setup_.tls.get(), "");
    if (secured) secured = co_await shake_hands(stream);
    if (!secured) co_return tl::unexpected(secured.error());
  }
  const core::Result<GreetingFrame> first = co_await read_frame(stream);
  if (!first) co_return tl::unexpected(first.error());
  if (first->frame.type != FrameType::hello) co_return core::fail(core::Errc::corrupt, "it did not say hello");
  const core::Result<Hello> hello = decode_hello(first->payload);
  if (!hello) co_return hello;
  const std::optional<Objection> objection = objection_to(*visitor, *hello);
  if (!objection) co_return hello;
  Frame frame;
  frame.type = FrameType::refuse;
  frame.message = static_cast<std::uint64_t>(RefuseCode::pending_connection);
  const std::string& why = objection->to_pending;
  const auto* bytes = reinterpret_cast<const std::byte*>(why.data());
  (void)co_await write_frame(stream, frame, std::vector<std::byte>(bytes, bytes + why.size()));
  co_return core::fail(core::Errc::corrupt, objection->for_log);
}

std::optional<TcpHandshake::Objection> TcpHandshake::objection_to(const Visitor& visitor, const Hello& hello) const {
  const auto said = [](std::string text) { return Objection{text, text}; };
  if (hello.version != kTcpVersion)
    return said(
        fmt::format("it speaks version {} of the tcp protocol, this member {}: run the same version of troupe "
                    "on all hosts",
                    hello.version, kTcpVersion));
  const auto from = parse_tcp_address(hello.from);
  if (!from) return said("it claims an address that is none");
  if (setup_.tls && !security::names_host(visitor.call->stream.peer_certificate().get(), from->at.host))
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
void TcpHandshake::place(const VisitorPtr& visitor) {
  const Hello& hello = visitor->hello;
  const auto found = wanted_.find(hello.from);
  if (found == wanted_.end()) return hello.peer_token.empty() ? park(visitor) : refuse_to_go_on(visitor);
  const WantedPtr wanted = found->second;
  if (overtaken(*wanted, hello)) return leave(visitor);
  if (!belongs(*wanted, hello)) return refuse_to_go_on(visitor);
  if (wanted->connected) {
    if (hello.connection <= wanted->connection) return leave(visitor);  // an earlier connection's call, late
    wanted->connected = false;
    setup_.superseded(wanted->peer);
  } else if (wanted->adopted) {  // a newer attempt replaces the older one
    if (hello.attempt < wanted->adopted->hello.attempt) return leave(visitor);
    std::exchange(wanted->adopted, nullptr)->call->close();
  } else if (wanted->dialling && !wanted->pausing && hello.from > self_ &&
             (!wanted->began || wanted->dialling->said_hello)) {
    return park(visitor);  // this member's own call has priority; when mending, only once it has sent hello
  }
  if (const auto call = std::exchange(wanted->dialling, nullptr)) call->close();
  adopt(wanted, visitor);
}

/// The caller wants to continue a session that does not exist or is not its own, or to begin one while there is one.
void TcpHandshake::refuse_to_go_on(const VisitorPtr& visitor) {
  if (visitor->hello.peer_token.empty()) {
    refused(*visitor, fmt::format("it wants a first connection of {}, with which there is one", visitor->hello.from));
    return run_for(visitor,
                   turn_away(visitor, RefuseCode::later, "it has not noticed the end of the previous connection yet"));
  }
  const auto ended = ended_.find(visitor->hello.from);
  const bool known = ended != ended_.end() && ended->second.token == visitor->hello.peer_token;
  if (!known)
    refused(*visitor,
            fmt::format("it wants to go on with a connection of {} and does not know its token", visitor->hello.from));
  const std::string why = known ? ended->second.why : "there is no such connection";
  run_for(visitor, turn_away(visitor, RefuseCode::over, why));
}

void TcpHandshake::park(const VisitorPtr& visitor) {
  const auto [place, added] = parked_.emplace(visitor->hello.from, visitor);
  if (!added) {
    if (visitor->hello.attempt < place->second->hello.attempt) return leave(visitor);
    std::exchange(place->second, visitor)->call->close();
  }
  const auto away = [this](const VisitorPtr& who) {
    run_for(who, turn_away(who, RefuseCode::later, "it has not connected to this one yet"));
  };
  if (parked_.size() > kMostParked) {
    parked_.erase(visitor->hello.from);
    return away(visitor);
  }
  const std::shared_ptr<TcpCall> call = visitor->call;
  call->timer.expires_after(kParkedFor);
  call->timer.async_wait([this, visitor, away](const SystemError& error) {
    const auto waiting = parked_.find(visitor->hello.from);
    if (error || waiting == parked_.end() || waiting->second != visitor) return;
    parked_.erase(waiting);
    away(visitor);
  });
}

asio::awaitable<void> TcpHandshake::turn_away(VisitorPtr visitor, RefuseCode code, std::string why) {
  if (!visitor->call->stream.socket().is_open()) co_return;  // closed by the peer already
  pending_connections_.push_back(visitor);                   // until leave(): close() and max_pending can end it
  limit(visitor->call, kLingers);
  Frame frame;
  frame.type = FrameType::refuse;
  frame.message = static_cast<std::uint64_t>(code);
  const auto* bytes = reinterpret_cast<const std::byte*>(why.data());
  (void)co_await write_frame(visitor->call->stream, frame, std::vector<std::byte>(bytes, bytes + why.size()));
  SystemError ignored;
  visitor->call->stream.socket().shutdown(tcp::socket::shutdown_send, ignored);  // receive() reads until the end
}

void TcpHandshake::adopt(const WantedPtr& wanted, VisitorPtr visitor) {  // by value: parked_ may hold the last one
  if (const auto waiting = parked_.find(wanted->text); waiting != parked_.end() && waiting->second == visitor)
    parked_.erase(waiting);
  wanted->adopted = visitor;
  wanted->connection = std::max(wanted->connection, visitor->hello.connection);
  wanted->peer_token = visitor->hello.token;
  visitor->wanted = wanted;
  limit(visitor->call, setup_.options.lost_after);
  run_for(visitor, welcome(visitor));
}

asio::awaitable<void> TcpHandshake::welcome(VisitorPtr visitor) {
  Hello hello = greeting(*visitor->wanted);
  hello.attempt = visitor->hello.attempt;
  hello.connection = visitor->hello.connection;
  Frame frame;
  frame.type = FrameType::welcome;
  const core::Result<void> written = co_await write_frame(visitor->call->stream, frame, encode(hello));
  if (!written) visitor->call->close();  // receive() notices
}

/// Closes and forgets the connection. If a session was going to use it, the session calls the peer itself.
void TcpHandshake::leave(const VisitorPtr& visitor) {
  visitor->call->close();
  pending_connections_.remove(visitor);
  if (const auto waiting = parked_.find(visitor->hello.from); waiting != parked_.end() && waiting->second == visitor)
    parked_.erase(waiting);
  const WantedPtr wanted = visitor->wanted;
  if (!wanted || wanted->adopted != visitor) return;
  wanted->adopted.reset();
  start_dialling(wanted);
}

}  // namespace troupe::transport
