// What both sides of a meeting share, and who is connected to whom. tcp_dial.cpp calls, tcp_visit.cpp is called.
#include "transport/tcp_meeting.hpp"

#include <utility>

#include "transport/tcp_meeting_parts.hpp"

namespace troupe::transport {

TcpMeeting::TcpMeeting(asio::io_context& io, Setup setup)
    : io_(io), setup_(std::move(setup)), self_(to_text(setup_.self)) {}

void TcpMeeting::want(Peer peer, const TcpAddress& remote) {
  const auto wanted = std::make_shared<Wanted>();
  wanted->peer = peer;
  wanted->remote = remote;
  wanted->text = to_text(remote);
  wanted_[wanted->text] = wanted;
  if (const auto waiting = parked_.find(wanted->text); waiting != parked_.end())
    adopt(wanted, waiting->second);
  else
    start_dialling(wanted);
}

void TcpMeeting::forget(const std::string& remote) {
  const auto found = wanted_.find(remote);
  if (found == wanted_.end()) return;
  const WantedPtr wanted = found->second;
  wanted_.erase(found);
  if (const auto call = std::exchange(wanted->dialling, nullptr)) call->close();
  if (const auto visitor = std::exchange(wanted->adopted, nullptr)) visitor->call->close();
}

void TcpMeeting::met(const WantedPtr& wanted, TcpCall& call, Window of_peer) {
  unlimit(call);
  call.timer.cancel();
  wanted->dialling.reset();
  wanted->adopted.reset();
  wanted_.erase(wanted->text);
  setup_.met(wanted->peer, std::move(call.stream), of_peer);
}

void TcpMeeting::close() {
  closed_ = true;
  while (!wanted_.empty()) forget(std::string(wanted_.begin()->first));
  for (const VisitorPtr& visitor : strangers_) visitor->call->close();
  for (const auto& [text, visitor] : parked_) visitor->call->close();
}

}  // namespace troupe::transport
