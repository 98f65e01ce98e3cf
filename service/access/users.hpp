/// Who may use the service: `<run.dir>/.service/users.json`, readable by its owner only (docs/service.md). Another process may change the
/// file at any time: of changes by several processes none is lost. Thread-safe.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "service/http/message.hpp"

namespace troupe::service {

struct User {
  std::string name;
  Role role = Role::read;
  std::string sha256;  // of the token, hexadecimal
};

/// The users in a file's text, and back. Errc::corrupt: it is not such a file.
[[nodiscard]] core::Result<std::vector<User>> parse_users(std::string_view text, const std::string& path);
[[nodiscard]] std::string users_text(const std::vector<User>& users);

/// "read", "run", "admin". Errc::usage.
[[nodiscard]] core::Result<Role> parse_role(std::string_view text);

class Users {
 public:
  /// Reads the file. A missing file has no users. Errc::corrupt, io.
  /// `patience`: how long add() and remove() wait for another process that changes the file.
  [[nodiscard]] static core::Result<Users> open(const std::string& path,
                                                std::chrono::milliseconds patience = std::chrono::seconds(10));
  Users(Users&& other) noexcept;

  [[nodiscard]] bool empty() const;
  /// Who has the token; nothing: no one. Looks at the file again if it has changed, at most once a second; a file that cannot be read leaves
  /// the users as they were.
  [[nodiscard]] std::optional<User> find(std::string_view token, std::chrono::steady_clock::time_point now) const;

  /// A new user's token. Replaces the file. Errc::usage: the name is taken, or no name: 1 to 64 letters, digits, ".", "-", "_";
  /// timeout: another process is changing the file; io, no_space.
  [[nodiscard]] core::Result<std::string> add(const std::string& name, Role role);
  /// Errc::usage: there is no such user; timeout: another process is changing the file; io, no_space.
  [[nodiscard]] core::Result<void> remove(const std::string& name);

 private:
  struct Seen {
    std::chrono::steady_clock::time_point at{};
    ino_t file = 0;
    std::int64_t modified = 0;
    off_t bytes = 0;
  };
  Users(std::string path, std::chrono::milliseconds patience) : path_(std::move(path)), patience_(patience) {}
  core::Result<void> read() const;
  core::Result<void> read_anew() const;
  core::Result<void> write(std::vector<User> users);

  std::string path_;
  std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  mutable std::vector<User> users_;
  mutable Seen seen_;
};

}  // namespace troupe::service
