/// The state of an shm endpoint, behind one mutex, and the thread that reads its sockets and makes its copies. Internal to shm.
///
/// Callers write their frames themselves. The thread sleeps in epoll_wait until a socket, a peer's process descriptor or a caller
/// with bytes to copy wakes it. While there are bytes to copy, it copies one piece of each link at a time, without the mutex, and
/// reads the sockets in between.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "transport/endpoint.hpp"
#include "transport/endpoint_options.hpp"
#include "transport/shm/link.hpp"
#include "transport/shm/listener.hpp"
#include "transport/shm/memory/arenas.hpp"

namespace troupe::transport {

class ShmEndpointImpl {
 public:
  [[nodiscard]] static core::Result<std::unique_ptr<ShmEndpointImpl>> create(const EndpointOptions& options);
  ShmEndpointImpl(const ShmEndpointImpl&) = delete;
  ShmEndpointImpl& operator=(const ShmEndpointImpl&) = delete;
  ~ShmEndpointImpl();

  [[nodiscard]] const ShmSelf& self() const noexcept { return self_; }
  [[nodiscard]] ShmArenas& arenas() noexcept { return arenas_; }

  // As Endpoint's.
  [[nodiscard]] core::Result<Connection> connect(const Address& remote);
  void disconnect(Peer peer, std::string_view why);
  [[nodiscard]] core::Result<std::optional<OperationId>> send(Peer peer, Tag tag, ConstMemoryView memory);
  [[nodiscard]] core::Result<OperationId> receive(Peer peer, Tag tag, MemoryView memory);
  void cancel(OperationId operation);
  [[nodiscard]] Traffic traffic(Peer peer) const;
  [[nodiscard]] std::uint64_t progress(Peer peer) const;
  void close() noexcept;

 private:
  /// The kind of an epoll event; its number identifies the object of that kind.
  enum class Source : std::uint32_t { wake, listener, pending_connection, link, process };

  explicit ShmEndpointImpl(ShmSelf self);
  [[nodiscard]] core::Result<void> open();
  void start();
  void run() noexcept;

  // All with mutex_ held.
  [[nodiscard]] core::Result<ShmLink*> live(Peer peer) const;
  void watch(int fd, Source source, std::uint64_t number, bool for_writing = false) noexcept;
  void rewatch(int fd, Source source, std::uint64_t number, bool for_writing = false) noexcept;
  void accept();
  void hear(std::uint64_t pending_connection);
  void established(std::size_t index) noexcept;
  void follow(std::size_t index) noexcept;
  void read(std::size_t index);
  void lose(std::size_t index, std::string_view why);
  void handle(Source source, std::uint64_t number);
  bool copy_pieces(std::unique_lock<std::mutex>& lock);

  const ShmSelf self_;
  ShmArenas arenas_;
  mutable std::mutex mutex_;
  std::condition_variable copied_;
  ShmListener listener_;
  std::vector<std::unique_ptr<ShmLink>> links_;  // by Peer
  std::vector<bool> watched_for_room_;           // by Peer
  ShmInbox inbox_;
  bool copying_ = false;
  bool closed_ = false;
  core::FileDescriptor epoll_;
  core::FileDescriptor wake_;
  std::mutex ending_;  // held while the thread is joined
  std::thread thread_;
};

}  // namespace troupe::transport
