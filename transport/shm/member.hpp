/// All of an shm endpoint behind one mutex, and the thread that reads its sockets and makes its copies. Only endpoint.cpp and
/// tests include this.
///
/// Callers write their frames themselves; the thread sleeps in epoll_wait until a socket, a peer's process descriptor or
/// a caller with something to copy wakes it. While there is something to copy it copies one piece of each link, without
/// the mutex, and looks at the sockets in between.
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
#include "transport/shm/memory/arenas.hpp"
#include "transport/shm/listener.hpp"
#include "transport/shm/link.hpp"

namespace troupe::transport {

class ShmMember {
 public:
  [[nodiscard]] static core::Result<std::unique_ptr<ShmMember>> create(const EndpointOptions& options);
  ShmMember(const ShmMember&) = delete;
  ShmMember& operator=(const ShmMember&) = delete;
  ~ShmMember();

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
  /// What an event of epoll is about, and which one of its kind.
  enum class Source : std::uint32_t { wake, door, stranger, link, process };

  explicit ShmMember(ShmSelf self);
  [[nodiscard]] core::Result<void> open();
  void start();
  void run() noexcept;

  // All with mutex_ held.
  [[nodiscard]] core::Result<ShmLink*> live(Peer peer) const;
  void watch(int fd, Source source, std::uint64_t number, bool for_writing = false) noexcept;
  void rewatch(int fd, Source source, std::uint64_t number, bool for_writing = false) noexcept;
  void accept();
  void hear(std::uint64_t stranger);
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
  ShmDoor door_;
  std::vector<std::unique_ptr<ShmLink>> links_;  // by Peer
  std::vector<bool> watched_for_room_;           // by Peer
  ShmInbox inbox_;
  bool copying_ = false;
  bool closed_ = false;
  Descriptor epoll_;
  Descriptor wake_;
  std::mutex ending_;  // of whoever joins the thread
  std::thread thread_;
};

}  // namespace troupe::transport
