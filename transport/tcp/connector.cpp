// The calling side of the handshake.
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "core/open_files.hpp"
#include "transport/net/refusal.hpp"
#include "transport/tcp/handshake_state.hpp"
#include "transport/tcp/socket_options.hpp"

namespace troupe::transport {

using namespace std::chrono_literals;

namespace {

constexpr core::Duration kFirstPause = 10ms;
constexpr core::Duration kLongestPause = 1s;
constexpr unsigned kBrokenCalls = 12;  // in a row: about 6 s
constexpr unsigned kRefusals = 6;      // in a row, of a member that was connected before: about 0.6 s

}  // namespace

/// The result of one call.
struct TcpHandshake::Answer {
  enum class Kind : std::uint8_t { welcome, later, broken, refused, hopeless } kind = Kind::broken;
  Hello welcome{};
  core::Error error{};
};

void TcpHandshake::start_dialling(const WantedPtr& wanted) {
  wanted->pausing = false;
  wanted->dialling = std::make_shared<TcpCall>(tcp::socket(io_));  // set now, because the coroutine begins later
  run(dial(wanted, wanted->dialling), [this, wanted](const std::string& why) { abandon(wanted, why); });
}

asio::awaitable<void> TcpHandshake::dial(WantedPtr wanted, std::shared_ptr<TcpCall> call) {
  core::Duration pause = kFirstPause;
  unsigned broken = 0, refused = 0;
  while (wanted->dialling == call) {
    const Answer answer = co_await ask(wanted, call);
    if (wanted->dialling != call) co_return;  // given up, or the peer's call was taken
    using Kind = Answer::Kind;
    if (answer.kind == Kind::welcome) {
      connected(wanted, *call, answer.welcome);
      co_return;
    }
    broken = answer.kind == Kind::broken ? broken + 1 : 0;
    refused = answer.kind == Kind::refused ? refused + 1 : 0;
    call->close();
    if (const PendingPtr waiting = waiting_for(*wanted)) {
      wanted->dialling.reset();
      take(wanted, waiting);
      co_return;
    }
    const bool enough = wanted->began ? refused >= kRefusals : refused > 0 || broken >= kBrokenCalls;
    if (enough || answer.kind == Kind::hopeless) {
      give_up(wanted, answer.error);
      co_return;
    }
    wanted->pausing = true;
    pause = std::min(pause * 2, kLongestPause);
    call->timer.expires_after(pause);
    SystemError ignored;
    co_await call->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (wanted->dialling != call) co_return;
    wanted->pausing = false;
    call = std::make_shared<TcpCall>(tcp::socket(io_));
    wanted->dialling = call;
  }
}

/// Connects to the first of the host's addresses that answers. The rest of `most` limits the following handshake.
asio::awaitable<core::Result<void>> TcpHandshake::reach(WantedPtr wanted, std::shared_ptr<TcpCall> call,
                                                        core::Duration most) {
  const core::Duration deadline = clock_.now() + most;
  core::Result<TcpEndpoints> found = wanted->endpoints;
  if (found->empty()) found = co_await look_up(call, wanted->remote.at, most);
  if (!found) co_return tl::unexpected(found.error());
  SystemError error = asio::error::timed_out;
  for (std::size_t i = 0; i < found->size() && wanted->dialling == call; ++i) {
    const tcp::endpoint& endpoint = (*found)[i];
    if (!setup_.tls && !endpoint.address().is_loopback())
      co_return core::fail(core::Errc::config,
                           "it is not on this host, and off loopback this endpoint needs TLS: give "
                           "an authority, a certificate and a key (`troupe certs`)");
    // An address that does not answer must not use the time of the addresses after it.
    limit(call, (deadline - clock_.now()) / static_cast<int>(found->size() - i));
    call->timed_out = false;
    tcp::socket& socket = call->stream.socket();
    SystemError ignored;
    socket.close(ignored);
    co_await socket.async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
    if (call->timed_out) {
      error = asio::error::timed_out;
    } else if (!error) {
      set_options(socket, setup_.options);
      limit(call, deadline - clock_.now());
      wanted->endpoints = std::move(*found);
      co_return core::Result<void>{};
    }
  }
  call->refused = error == asio::error::connection_refused;
  call->no_way = error == asio::error::host_unreachable || error == asio::error::network_unreachable;
  std::string why = error == asio::error::timed_out ? "it does not answer" : error.message();
  if (error == asio::error::no_descriptors) why += core::kOpenFilesAdvice;
  co_return core::fail(core::Errc::peer_lost, std::move(why));
}

/// Secures the connection, sends `hello` and reads the peer's answer to it.
asio::awaitable<core::Result<HandshakeFrame>> TcpHandshake::say_hello(WantedPtr wanted, std::shared_ptr<TcpCall> call,
                                                                      Hello hello) {
  core::Result<void> step;
  if (setup_.tls) {
    step = call->stream.secure(setup_.tls.get(), wanted->remote.at.host);
    if (step) step = co_await shake_hands(call->stream);
    if (!step) co_return tl::unexpected(step.error());
  }
  Frame frame;
  frame.type = FrameType::hello;
  call->said_hello = true;
  step = co_await write_frame(call->stream, frame, encode(hello));
  if (!step) co_return tl::unexpected(step.error());
  if (!wanted->began)
    unlimit(*call);  // the peer may call connect() much later; keep-alive detects the loss of a peer meanwhile
  co_return co_await read_frame(call->stream);
}

/// The call ended before the peer answered.
TcpHandshake::Answer TcpHandshake::no_answer(const Wanted& wanted, const TcpCall& call, const core::Error& why) const {
  const bool refused = why.code == core::Errc::corrupt && setup_.tls;
  const bool hopeless = refused || (call.timed_out && !wanted.began);
  Answer answer;
  answer.kind = hopeless ? Answer::Kind::hopeless : Answer::Kind::broken;
  answer.error = why;
  answer.error.code = refused ? core::Errc::config : core::Errc::peer_lost;
  if (call.timed_out) answer.error.message = "it does not answer";
  return answer;
}

/// The peer answered with something else than its welcome.
TcpHandshake::Answer TcpHandshake::not_welcome(Wanted& wanted, const HandshakeFrame& reply) {
  const auto code = reply.frame.type == FrameType::refuse ? RefuseCode{reply.frame.message} : RefuseCode{};
  const bool refused = reply.frame.type == FrameType::refuse || reply.frame.type == FrameType::bye;
  const bool stale = code == RefuseCode::over && !wanted.began;  // the session that it ended is not this one
  if (stale) wanted.peer_token = {};
  Answer answer;
  answer.kind = code == RefuseCode::later || stale ? Answer::Kind::later : Answer::Kind::hopeless;
  answer.error = {core::Errc::peer_lost, refused ? printable_text(reply.payload) : std::string("unexpected reply")};
  return answer;
}

asio::awaitable<TcpHandshake::Answer> TcpHandshake::ask(WantedPtr wanted, std::shared_ptr<TcpCall> call) {
  Answer answer;
  // While a connection is mended, lost_after must leave time for several calls.
  const core::Duration most = wanted->began ? setup_.options.lost_after / 3 : setup_.options.lost_after;
  core::Result<void> step = co_await reach(wanted, call, most);
  if (!step) {
    using Kind = Answer::Kind;
    // A network link that has just come up may have no route to its neighbours for a moment.
    const bool broken = wanted->began || call->no_way;
    answer.kind = call->refused ? Kind::refused : broken ? Kind::broken : Kind::hopeless;
    answer.error = step.error();
    co_return answer;
  }
  Hello hello = make_hello(*wanted);
  hello.attempt = ++attempts_;
  hello.connection = wanted->connection + 1;
  const core::Result<HandshakeFrame> reply = co_await say_hello(wanted, call, hello);
  if (!reply) co_return no_answer(*wanted, *call, reply.error());
  const auto welcomed = decode_hello(reply->payload);
  const bool same =
      welcomed && welcomed->peer_token == wanted->token && (!wanted->began || welcomed->token == wanted->peer_token);
  if (reply->frame.type != FrameType::welcome || !same) co_return not_welcome(*wanted, *reply);
  answer.kind = Answer::Kind::welcome;
  answer.welcome = *welcomed;
  wanted->peer_token = welcomed->token;
  wanted->connection = hello.connection;
  Frame frame;
  frame.type = FrameType::ready;
  limit(call, setup_.options.lost_after);
  step = co_await write_frame(call->stream, frame, {});
  if (!step) {
    answer.kind = Answer::Kind::broken;
    answer.error = {core::Errc::peer_lost, step.error().message};
  }
  co_return answer;
}

}  // namespace troupe::transport
