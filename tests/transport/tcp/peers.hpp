/// Shared by tests of tcp: endpoints of this process, raw sockets, and a proxy that imitates network faults.
/// Every wait has a distant deadline, and fails the test when it passes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "certificates.hpp"
#include "tests/transport/endpoint_contract.hpp"
#include "transport/net/address.hpp"
#include "transport/tcp/protocol/frame.hpp"
#include "transport/tcp/protocol/hello.hpp"

namespace troupe::transport::testing {

[[nodiscard]] Party tcp_party(const std::string& name, TcpOptions options = {}, Credit credit = {});

/// Sends one message from a to b and checks it.
void exchange(Party& a, Peer b_at_a, Party& b, Peer a_at_b, std::size_t size = 1000);

/// An address of this host; port 0: any. The caller closes the socket.
[[nodiscard]] int listen_on(const char* address, std::uint16_t port);
[[nodiscard]] std::uint16_t port_of(int listening);

/// A socket in blocking mode, closed by the destructor. One thread.
class RawSocket {
 public:
  explicit RawSocket(int descriptor) : descriptor_(descriptor) {}
  RawSocket(RawSocket&& other) noexcept;
  ~RawSocket();
  [[nodiscard]] static RawSocket connect(const std::string& address, std::uint16_t port);
  /// As connect(), where no listener may exist: then good() is false.
  [[nodiscard]] static RawSocket try_connect(const std::string& address, std::uint16_t port);
  [[nodiscard]] bool good() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  void write(const void* data, std::size_t size) const;
  void write(Frame frame, const Bytes& payload = {}) const;  // fills in length, hash and the count of received frames
  /// False when the connection ended first.
  [[nodiscard]] bool read(std::byte* to, std::size_t size) const;
  /// The next frame that is not a heartbeat, with a checked payload; fails the test when there is none.
  [[nodiscard]] Frame read_frame(Bytes* payload = nullptr);
  /// Whether the other side closes the connection, whatever it sends before.
  [[nodiscard]] bool ends() const;
  /// Closes the connection with a reset.
  void reset();

 private:
  int descriptor_;
  std::uint64_t frames_ = 0;  // numbered frames that were read
};

/// Collects refusals. Thread-safe; must outlive the endpoint.
class Refusals {
 public:
  [[nodiscard]] std::function<void(const RefusedConnection&)> hook();
  /// Waits until there are `count`, and returns all.
  [[nodiscard]] std::vector<RefusedConnection> wait_for(std::size_t count);

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::vector<RefusedConnection> all_;
};

/// A peer made by hand, connected to `party`, a plain endpoint that listens on 127.0.0.2. The peer dials.
struct RawPeer {
  explicit RawPeer(Party& party);
  /// The hello that continues the session over its `connection`th connection.
  [[nodiscard]] Hello next(std::uint64_t connection, std::uint64_t received) const;
  /// Accepts the party's connection and reads its hello.
  [[nodiscard]] std::pair<RawSocket, Hello> answer() const;
  [[nodiscard]] static std::string own_address(int listening);
  /// The hello of a first connection, with kToken.
  [[nodiscard]] static Bytes hello(const std::string& from, const std::string& to);
  static constexpr SessionToken kToken{{std::byte{1}}};
  RawSocket listening;  // its address is smaller than the party's, so its call wins
  RawSocket socket;
  Peer at_party{};
  Hello party_says;  // the party's welcome
};

/// Between a caller on 127.0.0.1 and `behind`, made with behind_proxy(). Sees the bytes that the caller sends, over one
/// connection at a time. Ends when both have closed.
class Proxy {
 public:
  /// May change the bytes, which begin at `from` of the connection. False: the proxy ends both connections.
  using Change = std::function<bool(std::size_t from, std::byte* bytes, std::size_t size)>;
  Proxy(const Party& behind, Change change);
  ~Proxy();

 private:
  void carry(const RawSocket& in, const RawSocket& out) const;
  const RawSocket listening_;
  const Change change_;
  std::thread thread_;
};
[[nodiscard]] TcpOptions behind_proxy();

}  // namespace troupe::transport::testing
