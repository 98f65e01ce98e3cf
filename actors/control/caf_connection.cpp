#include "actors/control/caf_connection.hpp"

#include <atomic>
#include <utility>

#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/stream_impl.hpp>

#include "actors/control/conversation.hpp"

namespace troupe::actors {
namespace {

namespace network = caf::io::network;
using network::rw_state;

// The interface that CAF's stream requires of a transport; the names are CAF's.
class WirePolicy {
 public:
  WirePolicy(transport::TlsConnection connection, std::shared_ptr<ControlPeers> peers,
             std::function<void(const core::Error&)> on_refused)
      : connection_(std::move(connection)),
        conversation_(connection_.side(), std::move(peers), connection_.certificate()),
        on_refused_(std::move(on_refused)) {}

  rw_state read_some(std::size_t& result, network::native_socket, void* buffer, std::size_t size) {
    const transport::ConnectionMove move = connection_.read(buffer, size);
    result = move.bytes;
    if (move.state == transport::ConnectionState::ended) return end(connection_.error());
    if (const auto wrong = conversation_.received({static_cast<const char*>(buffer), move.bytes}))
      return refuse({core::Errc::config, std::string(*wrong)});
    return rw_state::success;
  }
  rw_state write_some(std::size_t& result, network::native_socket, const void* buffer, std::size_t size) {
    const transport::ConnectionMove move = connection_.write(buffer, size);
    result = move.bytes;
    conversation_.sent({static_cast<const char*>(buffer), move.bytes});
    return move.state == transport::ConnectionState::ended ? end(connection_.error()) : rw_state::success;
  }
  // No socket event announces bytes that TLS has already decrypted.
  [[nodiscard]] bool must_read_more(network::native_socket, std::size_t threshold) const {
    return connection_.pending() >= threshold;
  }

 private:
  rw_state end(const core::Error& why) {
    return conversation_.greeted() ? rw_state::failure
                                   : refuse(why);  // after its handshake, a connection's end is no refusal
  }
  rw_state refuse(const core::Error& why) {
    if (on_refused_) std::exchange(on_refused_, nullptr)(why);
    return rw_state::failure;
  }

  transport::TlsConnection connection_;
  Conversation conversation_;
  std::function<void(const core::Error&)> on_refused_;
};

// CAF itself uses the socket's number. A new socket may get that number while CAF still cleans up the previous connection.
caf::io::connection_handle next_handle() {
  static std::atomic<std::int64_t> last{std::int64_t{1} << 40};
  return caf::io::connection_handle::from_int(++last);
}

class CafConnection final : public caf::io::scribe {
 public:
  CafConnection(network::default_multiplexer& multiplexer, transport::TlsConnection connection,
                std::shared_ptr<ControlPeers> peers, std::function<void(const core::Error&)> on_refused)
      : scribe(next_handle()),
        stream_(multiplexer, connection.release(), std::move(connection), std::move(peers), std::move(on_refused)) {}

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (!std::exchange(launched_, true)) stream_.start(this);
  }
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  void flush() override { stream_.flush(this); }
  std::string addr() const override {
    const auto address = network::remote_addr_of_fd(stream_.fd());
    return address ? *address : std::string();
  }
  std::uint16_t port() const override {
    const auto port = network::remote_port_of_fd(stream_.fd());
    return port ? *port : std::uint16_t{0};
  }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

 private:
  bool launched_ = false;
  network::stream_impl<WirePolicy> stream_;
};

}  // namespace

caf::io::scribe_ptr make_caf_connection(network::default_multiplexer& multiplexer, transport::TlsConnection connection,
                                        std::shared_ptr<ControlPeers> peers,
                                        std::function<void(const core::Error& why)> on_refused) {
  return caf::make_counted<CafConnection>(multiplexer, std::move(connection), std::move(peers), std::move(on_refused));
}

}  // namespace troupe::actors
