/// The listening socket of an shm endpoint, and its pending connections. Accepts only processes of the same user, and keeps only
/// those that know the secret. Internal to shm. Thread rule: under the endpoint's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "transport/shm/link_state.hpp"
#include "transport/shm/memory/arenas.hpp"
#include "transport/shm/protocol/socket.hpp"

namespace troupe::transport {

class ShmListener {
 public:
  /// A peer that has connected and waits for this side's connect().
  struct Caller {
    core::FileDescriptor socket;
    ShmIntroduction introduction;
  };

  ShmListener(const ShmSelf& self, ShmArenas& arenas) noexcept : self_(self), arenas_(arenas) {}

  [[nodiscard]] core::Result<void> open();
  [[nodiscard]] int socket() const noexcept { return listener_.get(); }

  /// Accepts all waiting connections. Numbers increase; `watch(number, socket)` is called for each new one.
  template <class Watch>
  void accept(Watch watch) {
    while (const auto number = accept_one())
      if (*number > 0) watch(*number, pending_connections_.at(*number).socket.get());
  }
  /// Reads the first frame of pending connection `number`. Returns the peer's id for a hello. Answers an attach. Closes the
  /// connection for any other frame.
  std::optional<ShmToken> hear(std::uint64_t number);
  /// The numbers of all pending connections, oldest first.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;
  /// Removes and returns the caller with that id and secret, if it waits.
  [[nodiscard]] std::optional<Caller> take(const ShmAddress& peer);
  void close() noexcept;

 private:
  struct PendingConnection {
    core::FileDescriptor socket;
    std::optional<ShmIntroduction> introduction{};
  };
  [[nodiscard]] std::optional<std::uint64_t> accept_one();
  [[nodiscard]] std::optional<std::uint64_t> oldest_silent() const;
  void make_room();
  void reject(std::uint64_t number) noexcept;

  const ShmSelf& self_;
  ShmArenas& arenas_;
  core::FileDescriptor listener_;
  core::FileDescriptor spare_;  // freed for a moment to accept and close a connection when no descriptor is left
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, PendingConnection> pending_connections_;  // by number
  ShmInbox inbox_;
};

}  // namespace troupe::transport
