/// The socket that a program connects to as a guest. Tells the guest from other connections by its token. Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <string>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "guest/description.hpp"
#include "guest/frames.hpp"
#include "guest/process.hpp"

namespace troupe::guest {

class GuestListener {
 public:
  /// Listens in the abstract namespace, under a name and with a token that nobody can guess. Errc::io.
  [[nodiscard]] static core::Result<GuestListener> open();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }    ///< without the leading NUL
  [[nodiscard]] const std::string& token() const noexcept { return token_; }  ///< 32 hexadecimal digits

  struct Arrival {
    Frames frames;
    Introduction introduction;
  };
  /// Waits for the connection whose HELLO has the token. Other connections (of other users, with another token, malformed, silent) are dropped
  /// and delay nothing, however many there are. Errc::data: the first frame of the process, or of a descendant of it, is not a valid HELLO.
  /// Errc::io: the process has ended, or closed its connection. Errc::timeout: it has not connected, or is silent.
  [[nodiscard]] core::Result<Arrival> await(GuestProcess& process, Frames::Deadline deadline);

 private:
  /// A connection that has not sent its HELLO yet.
  struct Visitor {
    Frames frames;
    bool is_program;  // of the process or a descendant of it
  };
  GuestListener() = default;
  /// False: this process has no descriptors left, so connections wait.
  [[nodiscard]] bool accept_all(const GuestProcess& process, std::vector<Visitor>& visitors) const;

  std::string name_, token_;
  core::FileDescriptor socket_;
};

}  // namespace troupe::guest
