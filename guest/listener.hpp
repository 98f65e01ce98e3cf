/// The socket that a program's guest connects to, and which of those that connect is the guest. Thread rule: one thread at a time.
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
  /// The connection whose HELLO has the token. Those of other users, without the token, or that say something else disturb nothing, however
  /// many there are and however long they stay. But what the process or a descendant of it says must be the protocol: Errc::data.
  /// Errc::io: the process has ended, or closed its connection. Errc::timeout: it has not connected, or is silent.
  [[nodiscard]] core::Result<Arrival> await(GuestProcess& process, Frames::Deadline deadline);

 private:
  struct Visitor {
    Frames frames;
    bool is_program;  // of the process or a descendant of it
  };
  GuestListener() = default;
  void accept_all(const GuestProcess& process, std::vector<Visitor>& visitors) const;

  std::string name_, token_;
  core::FileDescriptor socket_;
};

}  // namespace troupe::guest
