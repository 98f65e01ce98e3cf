/// Where an shm endpoint can be called: its listening socket, and the callers that wait there. Only processes of our user
/// come in, and only those that know the secret stay. Internal to shm; under the member's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/error.hpp"
#include "transport/shm/memory/arenas.hpp"
#include "transport/shm/link_state.hpp"
#include "transport/shm/protocol/socket.hpp"

namespace troupe::transport {

class ShmDoor {
 public:
  /// A peer that has called and waits for our connect().
  struct Caller {
    Descriptor socket;
    ShmIntroduction introduction;
  };

  ShmDoor(const ShmSelf& self, ShmArenas& arenas) noexcept : self_(self), arenas_(arenas) {}

  [[nodiscard]] core::Result<void> open();
  [[nodiscard]] int socket() const noexcept { return listener_.get(); }

  /// Lets in who stands there. The new ones' numbers follow the others'; `watch(number, socket)` is called for each.
  template <class Watch>
  void accept(Watch watch) {
    while (const auto number = accept_one())
      if (*number > 0) watch(*number, strangers_.at(*number).socket.get());
  }
  /// Hears what stranger `number` has to say: its introduction (then its id is the answer), a question, or nonsense.
  std::optional<ShmToken> hear(std::uint64_t number);
  /// All that are here, the oldest first.
  [[nodiscard]] std::vector<std::uint64_t> numbers() const;
  /// The caller of that name, if it waits: gone from here with that.
  [[nodiscard]] std::optional<Caller> take(const ShmAddress& peer);
  void close() noexcept;

 private:
  struct Stranger {
    Descriptor socket;
    std::optional<ShmIntroduction> introduction{};
  };
  [[nodiscard]] std::optional<std::uint64_t> accept_one();
  [[nodiscard]] std::optional<std::uint64_t> oldest_silent() const;
  void make_room();
  void turn_away(std::uint64_t number) noexcept;

  const ShmSelf& self_;
  ShmArenas& arenas_;
  Descriptor listener_;
  Descriptor spare_;  // given up for a moment when the process has no descriptor left, to turn callers away
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Stranger> strangers_;  // by number
  ShmInbox inbox_;
};

}  // namespace troupe::transport
