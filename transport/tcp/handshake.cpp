// The common part of both sides of the handshake, and the table of sessions. connector.cpp calls, listener.cpp accepts.
#include "transport/tcp/handshake.hpp"

#include <exception>
#include <utility>

#include "transport/tcp/handshake_state.hpp"

namespace troupe::transport {

TcpHandshake::TcpHandshake(asio::io_context& io, Setup setup)
    : io_(io), setup_(std::move(setup)), self_(to_text(setup_.self)), refusals_(setup_.options.on_refused, clock_) {}

void TcpHandshake::connect(Peer peer, const TcpAddress& remote) {
  const auto wanted = std::make_shared<Wanted>();
  wanted->peer = peer;
  wanted->remote = remote;
  wanted->text = to_text(remote);
  wanted->token = new_session_token();
  wanted_[wanted->text] = wanted;
  take_or_dial(wanted);
}

void TcpHandshake::reconnect(Peer peer, const std::string& remote) {
  const auto found = wanted_.find(remote);
  if (found == wanted_.end() || found->second->peer != peer) return;
  found->second->connected = false;
  take_or_dial(found->second);
}

void TcpHandshake::take_or_dial(const WantedPtr& wanted) {
  if (const PendingPtr waiting = waiting_for(*wanted))
    take(wanted, waiting);
  else
    start_dialling(wanted);
}

/// If the coroutine throws (out of memory, a bug), `failed` is called; otherwise its waiters would wait for ever.
void TcpHandshake::run(asio::awaitable<void> part, std::function<void(const std::string& why)> failed) {
  asio::co_spawn(io_, std::move(part), [failed = std::move(failed)](const std::exception_ptr& thrown) {
    if (!thrown) return;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      failed(error.what());
    }
  });
}

void TcpHandshake::run_for(const PendingPtr& pending, asio::awaitable<void> part) {
  run(std::move(part), [this, pending](const std::string& why) {
    refused(*pending, why);
    drop(pending);
    const WantedPtr wanted = pending->wanted;
    if (wanted && !wanted->dialling && !wanted->taken) abandon(wanted, why);
  });
}

void TcpHandshake::abandon(const WantedPtr& wanted, const std::string& why) {
  const auto found = wanted_.find(wanted->text);
  if (found == wanted_.end() || found->second != wanted || wanted->connected) return;
  if (const auto call = std::exchange(wanted->dialling, nullptr)) call->close();
  give_up(wanted, {core::Errc::internal, why});
}

void TcpHandshake::forget(Peer peer, const std::string& remote, std::string_view why) {
  const auto found = wanted_.find(remote);
  if (found == wanted_.end() || found->second->peer != peer) return;
  const WantedPtr wanted = found->second;
  wanted_.erase(found);
  ended_[wanted->text] = {wanted->token, std::string(why)};
  if (const auto call = std::exchange(wanted->dialling, nullptr)) call->close();
  if (const auto pending = std::exchange(wanted->taken, nullptr)) pending->call->close();
}

void TcpHandshake::give_up(const WantedPtr& wanted, const core::Error& why) {
  wanted->dialling.reset();
  forget(wanted->peer, wanted->text, why.message);
  setup_.failed(wanted->peer, why);
}

void TcpHandshake::connected(const WantedPtr& wanted, TcpCall& call, const Hello& of_peer) {
  unlimit(call);
  call.timer.cancel();
  wanted->dialling.reset();
  wanted->taken.reset();
  wanted->began = true;
  wanted->connected = true;
  try {
    setup_.connected(wanted->peer, std::move(call.stream), of_peer);
  } catch (...) {
    wanted->connected = false;
    throw;
  }
}

/// This member's part of hello and welcome; the caller adds the fields of the call.
Hello TcpHandshake::make_hello(const Wanted& wanted) const {
  Hello hello;
  hello.version = kTcpVersion;
  hello.token = wanted.token;
  hello.peer_token = wanted.peer_token;
  hello.received = setup_.received(wanted.peer);
  hello.window = setup_.window;
  hello.from = self_;
  hello.to = wanted.text;
  return hello;
}

/// Whether the sender of this hello may have the session's next connection.
bool TcpHandshake::belongs(const Wanted& wanted, const Hello& hello) {
  if (wanted.began) return hello.peer_token == wanted.token && hello.token == wanted.peer_token;
  return hello.peer_token.empty() || hello.peer_token == wanted.token;
}

/// Whether it is the peer's own first call, read only after this member's call was taken. The peer has closed it by then.
bool TcpHandshake::overtaken(const Wanted& wanted, const Hello& hello) {
  return wanted.began && hello.peer_token.empty() && hello.token == wanted.peer_token;
}

TcpHandshake::PendingPtr TcpHandshake::waiting_for(const Wanted& wanted) const {
  const auto waiting = held_.find(wanted.text);
  return waiting != held_.end() && belongs(wanted, waiting->second->hello) ? waiting->second : nullptr;
}

void TcpHandshake::close() {
  closed_ = true;
  while (!wanted_.empty()) {
    const WantedPtr wanted = wanted_.begin()->second;
    forget(wanted->peer, wanted->text, "it closed its endpoint");
  }
  for (const PendingPtr& pending : pending_connections_) pending->call->close();
  for (const auto& [text, pending] : held_) pending->call->close();
}

}  // namespace troupe::transport
