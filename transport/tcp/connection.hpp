/// Transfers the frames of one session over one TCP connection. Reads straight into the memory that the session names, and writes
/// straight from the memory that it lends. Thread rule: the I/O thread only. It holds the session's mutex while the session handles
/// a frame, never while bytes move.
#pragma once

#include <sys/uio.h>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "transport/tcp/protocol/frame.hpp"
#include "transport/tcp/protocol/session.hpp"
#include "transport/tcp/stream.hpp"

namespace troupe::transport {

class TcpConnection : public std::enable_shared_from_this<TcpConnection> {
 public:
  enum class Why : std::uint8_t {
    broke,  ///< only the connection ended: another one may continue the session
    over,   ///< the peer sent bye, broke the protocol or was given up
  };
  /// The connection has ended: called once, without the mutex, unless stop() or abandon() came first.
  using Ended = std::function<void(Why, const core::Error&)>;
  /// `mutex` guards `session`; both must outlive the last call. `hashes`: payload is hashed.
  TcpConnection(asio::io_context& io, std::mutex& mutex, std::shared_ptr<TcpSession> session, TcpStream stream,
                bool hashes, Ended ended);

  void start();
  /// The session has frames to write: starts writing.
  void kick();
  /// Call once per heartbeat. Returns how many heartbeats in a row have passed without a byte from the peer.
  [[nodiscard]] unsigned tick();
  [[nodiscard]] unsigned silent() const noexcept { return silent_; }
  /// The peer has sent at least one whole frame.
  [[nodiscard]] bool has_heard() const noexcept { return has_heard_; }
  /// Closes; first sends bye with `why` if that is possible at once.
  void stop(std::string_view why);
  /// Closes without bye: another connection takes over.
  void abandon();
  /// As stop(), and calls Ended with Why::over.
  void give_up(const core::Error& error);

 private:
  static constexpr std::size_t kStagingBytes = std::size_t{16} << 10;

  void wait_read();
  void wait_write();
  void read_some();
  void write_some();
  [[nodiscard]] bool parse();
  [[nodiscard]] bool next_batch();
  void advance(std::size_t bytes);
  void report();
  void end(Why why, const core::Error& error);
  [[nodiscard]] bool blocked(TcpStream::Step step);

  asio::io_context& io_;
  std::mutex& mutex_;
  const std::shared_ptr<TcpSession> session_;
  TcpStream stream_;
  const bool hashes_;
  Ended ended_;
  bool stopped_ = false;
  bool waits_read_ = false;
  bool waits_write_ = false;
  bool write_broken_ = false;
  unsigned silent_ = 0;
  bool has_heard_ = false;

  // Input: bytes that were read ahead, then the frame whose payload is being read.
  std::array<std::byte, kStagingBytes> staging_;
  std::size_t staged_from_ = 0;
  std::size_t staged_to_ = 0;
  bool in_payload_ = false;
  Frame frame_;
  std::byte* payload_ = nullptr;
  std::size_t missing_ = 0;

  // Output: the frames being written, and how far.
  std::vector<Outgoing> batch_;
  std::vector<std::size_t> ends_;  // of each frame: index of the part after its last
  std::vector<FrameBytes> headers_;
  std::vector<iovec> parts_;
  std::size_t part_ = 0;
  bool moves_ = false;        // the batch has numbered frames, not only a heartbeat
  std::size_t reported_ = 0;  // frames reported to the session as written
};

}  // namespace troupe::transport
