#include "peers.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "transport/common/wire_hash.hpp"
#include "transport/tcp/protocol/hello.hpp"

namespace troupe::transport::testing {
namespace {

constexpr int kPeersPatienceMs = 60'000;
const core::SteadyClock steady;

sockaddr_in loopback(const char* address, std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &at.sin_addr);
  return at;
}

bool wait_readable(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, kPeersPatienceMs) == 1;
}

}  // namespace

int listen_on(const char* address, std::uint16_t port) {
  const int listening = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int reuse = 1;  // connections of an earlier test may have used the port
  ::setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const sockaddr_in at = loopback(address, port);
  EXPECT_EQ(::bind(listening, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(::listen(listening, 16), 0);
  return listening;
}

std::uint16_t port_of(int listening) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  EXPECT_EQ(::getsockname(listening, reinterpret_cast<sockaddr*>(&at), &size), 0);
  return ntohs(at.sin_port);
}

Party tcp_party(const std::string& name, TcpOptions options, Credit credit) {
  EndpointOptions all{.name = name, .credit = credit, .tcp = std::move(options)};
  return Party({"tcp", {}, {}}, all, steady);
}

void exchange(Party& a, Peer b_at_a, Party& b, Peer a_at_b, std::size_t size) {
  const Bytes sent = pattern(size, 7);
  Bytes received(size);
  const OperationId receiving = b.receive(a_at_b, tag(77), view(received));
  const OperationId sending = a.send(b_at_a, tag(77), view(sent));
  a.expect_done(sending, size);
  b.expect_done(receiving, size);
  EXPECT_EQ(received, sent);
}

RawSocket::RawSocket(RawSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), frames_(other.frames_) {}

RawSocket::~RawSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

RawSocket RawSocket::connect(const std::string& address, std::uint16_t port) {
  RawSocket made = try_connect(address, port);
  EXPECT_TRUE(made.good()) << address << ':' << port;
  return made;
}

RawSocket RawSocket::try_connect(const std::string& address, std::uint16_t port) {
  RawSocket made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in at = loopback(address.c_str(), port);
  if (::connect(made.descriptor_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) made.reset();
  return made;
}

void RawSocket::write(const void* data, std::size_t size) const {
  EXPECT_EQ(::send(descriptor_, data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
}

void RawSocket::write(Frame frame, const Bytes& payload) const {
  frame.length = static_cast<std::uint32_t>(payload.size());
  frame.payload_hash = wire_hash(payload);
  if (frame.ack == 0) frame.ack = frames_;
  const FrameBytes header = encode(frame);
  Bytes all(header.begin(), header.end());
  all.insert(all.end(), payload.begin(), payload.end());
  write(all.data(), all.size());
}

bool RawSocket::read(std::byte* to, std::size_t size) const {
  while (size > 0) {
    if (!wait_readable(descriptor_)) return false;
    const ssize_t got = ::recv(descriptor_, to, size, 0);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

Frame RawSocket::read_frame(Bytes* payload_read) {
  for (;;) {
    FrameBytes header;
    if (!read(header.data(), header.size())) {
      ADD_FAILURE() << "the connection ended";
      return {};
    }
    const Frame frame = decode(header.data()).value();
    Bytes payload(frame.length);
    EXPECT_TRUE(read(payload.data(), payload.size()));
    if (frame.length > 0) {
      EXPECT_EQ(wire_hash(payload), frame.payload_hash);
    }
    if (is_numbered(frame.type)) ++frames_;
    if (frame.type == FrameType::heartbeat) continue;
    if (payload_read != nullptr) *payload_read = std::move(payload);
    return frame;
  }
}

bool RawSocket::ends() const {
  std::byte ignored[4096];
  for (;;) {
    if (!wait_readable(descriptor_)) return false;
    if (::recv(descriptor_, ignored, sizeof ignored, 0) <= 0) return true;
  }
}

void RawSocket::reset() {
  const linger at_once{1, 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(std::exchange(descriptor_, -1));
}

std::function<void(const RefusedConnection&)> Refusals::hook() {
  return [this](const RefusedConnection& refusal) {
    const std::lock_guard lock(mutex_);
    all_.push_back(refusal);
    added_.notify_all();
  };
}

std::vector<RefusedConnection> Refusals::wait_for(std::size_t count) {
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(added_.wait_for(lock, std::chrono::milliseconds(kPeersPatienceMs), [&] { return all_.size() >= count; }));
  return all_;
}

std::string RawPeer::own_address(int listening) {
  return to_text({{"127.0.0.1", port_of(listening)}, false, "0", "raw"});
}

Bytes RawPeer::hello(const std::string& from, const std::string& to) {
  Hello hello;
  hello.version = kTcpVersion;
  hello.attempt = 1;
  hello.connection = 1;
  hello.token = kToken;
  hello.window = {256, 1 << 20};
  hello.from = from;
  hello.to = to;
  return encode(hello);
}

RawPeer::RawPeer(Party& party)
    : listening(listen_on("127.0.0.1", 0)),
      socket(RawSocket::connect("127.0.0.2", parse_tcp_address(party->address().text)->at.port)) {
  const std::string mine = own_address(listening.descriptor());
  socket.write({.type = FrameType::hello}, hello(mine, party->address().text));
  const Connection connection = party->connect({mine}).value();
  at_party = connection.peer;
  Bytes welcome;
  EXPECT_EQ(socket.read_frame(&welcome).type, FrameType::welcome);
  party_says = decode_hello(welcome).value();
  socket.write({.type = FrameType::ready});
  party.expect_done(connection.established, 0);
}

Hello RawPeer::next(std::uint64_t connection, std::uint64_t received) const {
  Hello hello = decode_hello(RawPeer::hello(party_says.to, party_says.from)).value();
  hello.attempt = connection;
  hello.connection = connection;
  hello.peer_token = party_says.token;
  hello.received = received;
  return hello;
}

std::pair<RawSocket, Hello> RawPeer::answer() const {
  for (;;) {
    EXPECT_TRUE(wait_readable(listening.descriptor()));
    RawSocket call(::accept4(listening.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    std::byte first{};  // none: a connection that the party dropped in favour of this peer's own
    EXPECT_TRUE(wait_readable(call.descriptor()));
    if (::recv(call.descriptor(), &first, 1, MSG_PEEK) <= 0) continue;
    Bytes hello;
    EXPECT_EQ(call.read_frame(&hello).type, FrameType::hello);
    return {std::move(call), decode_hello(hello).value()};
  }
}

Proxy::Proxy(const Party& behind, Change change)
    : listening_(listen_on("127.0.0.3", parse_tcp_address(behind->address().text)->at.port)),
      change_(std::move(change)),
      thread_([this, port = parse_tcp_address(behind->address().text)->at.port] {
        while (wait_readable(listening_.descriptor())) {
          const RawSocket in(::accept4(listening_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
          if (!in.good()) return;
          const RawSocket out = RawSocket::try_connect("127.0.0.2", port);
          if (out.good()) carry(in, out);
        }
      }) {}

Proxy::~Proxy() {
  ::shutdown(listening_.descriptor(), SHUT_RDWR);
  thread_.join();
}

void Proxy::carry(const RawSocket& in, const RawSocket& out) const {
  std::vector<std::byte> buffer(1 << 16);
  std::size_t forth = 0;
  for (;;) {
    pollfd watched[2]{{in.descriptor(), POLLIN, 0}, {out.descriptor(), POLLIN, 0}};
    if (::poll(watched, 2, kPeersPatienceMs) <= 0) return;
    for (const int side : {0, 1}) {
      if (watched[side].revents == 0) continue;
      const ssize_t got = ::recv(watched[side].fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) return;
      const auto size = static_cast<std::size_t>(got);
      if (side == 0) {
        if (!change_(forth, buffer.data(), size)) return;
        forth += size;
      }
      if (::send(watched[1 - side].fd, buffer.data(), size, MSG_NOSIGNAL) != got) return;
    }
  }
}

TcpOptions behind_proxy() { return {.listen = "127.0.0.2:0", .advertise = "127.0.0.3"}; }

}  // namespace troupe::transport::testing
