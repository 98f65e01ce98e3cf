#include "service/access/users.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <thread>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "service/access/token.hpp"
#include "transport/security/private_file.hpp"

namespace troupe::service {
namespace {

constexpr std::size_t kLongestName = 64, kHashDigits = 64;

bool is_user_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  });
}

/// The right to change a file of users, against other processes. The lock is that of the folder itself: a lock file that root makes could not
/// be opened by the service's own user.
class ChangeOfUsers {
 public:
  static core::Result<ChangeOfUsers> begin(const std::string& path, std::chrono::milliseconds patience) {
    constexpr std::chrono::milliseconds kBetweenTries{10};
    auto folder = std::filesystem::path(path).parent_path().string();
    if (folder.empty()) folder = ".";
    ChangeOfUsers change(core::FileDescriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    if (!change.folder_) return tl::unexpected(core::from_errno(errno, "open", folder));
    for (const auto until = std::chrono::steady_clock::now() + patience;;) {
      if (::flock(change.folder_.get(), LOCK_EX | LOCK_NB) == 0) return change;
      // Some network file systems have no locks, or none of a folder: there the last of two changes wins.
      if (errno != EWOULDBLOCK && errno != EINTR) return change;
      if (std::chrono::steady_clock::now() > until)
        return core::fail(core::Errc::timeout,
                          fmt::format("{}: another process is changing the users: try again when it has ended", path));
      std::this_thread::sleep_for(kBetweenTries);
    }
  }
  ChangeOfUsers(ChangeOfUsers&&) noexcept = default;
  ChangeOfUsers& operator=(ChangeOfUsers&&) = delete;
  /// Explicitly: a forked child that has not started its program yet shares the open folder.
  ~ChangeOfUsers() {
    if (folder_) ::flock(folder_.get(), LOCK_UN);
  }

 private:
  explicit ChangeOfUsers(core::FileDescriptor folder) : folder_(std::move(folder)) {}
  core::FileDescriptor folder_;
};

}  // namespace

core::Result<Role> parse_role(std::string_view text) {
  for (const auto role : {Role::read, Role::run, Role::admin})
    if (text == name(role)) return role;
  return core::fail(core::Errc::usage, fmt::format("\"{}\" is no role: use read, run or admin", text));
}

core::Result<std::vector<User>> parse_users(std::string_view text, const std::string& path) {
  const auto bad = [&](std::string_view what) {
    return core::fail(core::Errc::corrupt,
                      fmt::format("{}: {}: restore it, or remove it and add the users again", path, what));
  };
  const auto json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("users") || !json["users"].is_array()) return bad("it is no list of users");
  std::vector<User> users;
  for (const auto& one : json["users"]) {
    const auto field = [&](const char* key) {
      return one.is_object() && one.contains(key) && one[key].is_string() ? one[key].get<std::string>() : std::string();
    };
    const auto role = parse_role(field("role"));
    User user{field("name"), role.value_or(Role::none), field("sha256")};
    if (!is_user_name(user.name) || !role || user.sha256.size() != kHashDigits) return bad("a user is malformed");
    users.push_back(std::move(user));
  }
  return users;
}

std::string users_text(const std::vector<User>& users) {
  auto list = Json::array();
  for (const auto& user : users)
    list.push_back({{"name", user.name}, {"role", name(user.role)}, {"sha256", user.sha256}});
  return Json{{"users", list}}.dump(2) + "\n";
}

Users::Users(Users&& other) noexcept
    : path_(std::move(other.path_)), patience_(other.patience_), users_(std::move(other.users_)), seen_(other.seen_) {}

core::Result<Users> Users::open(const std::string& path, std::chrono::milliseconds patience) {
  Users users(path, patience);
  if (auto read = users.read(); !read) return tl::unexpected(read.error());
  return users;
}

/// REQUIRES the mutex, or a caller that is alone.
core::Result<void> Users::read() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) {
    if (errno != ENOENT) return tl::unexpected(core::from_errno(errno, "read", path_));
    users_.clear();
    seen_.file = 0;
    return {};
  }
  const auto modified = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  if (seen_.file == status.st_ino && seen_.modified == modified && seen_.bytes == status.st_size) return {};
  const auto text = security::read_file(path_);
  if (!text) return tl::unexpected(text.error());
  auto users = parse_users(*text, path_);
  if (!users) return tl::unexpected(users.error());
  users_ = std::move(*users);
  seen_.file = status.st_ino;
  seen_.modified = modified;
  seen_.bytes = status.st_size;
  return {};
}

/// Also where inode, size and time are those of the last time: two changes may come within one tick of the file system's clock.
core::Result<void> Users::read_anew() const {
  seen_.file = 0;
  return read();
}

bool Users::empty() const {
  const std::scoped_lock lock(mutex_);
  return users_.empty();
}

std::optional<User> Users::find(std::string_view token, std::chrono::steady_clock::time_point now) const {
  const auto hash = sha256_hex(token);
  const std::scoped_lock lock(mutex_);
  if (now - seen_.at >= std::chrono::seconds(1)) {
    seen_.at = now;
    static_cast<void>(read());
  }
  std::optional<User> found;
  for (const auto& user : users_)  // all of them: the time says nothing of who it is
    if (equal_in_constant_time(user.sha256, hash)) found = user;
  return found;
}

core::Result<void> Users::write(std::vector<User> users) {
  auto written = security::replace_file(path_, users_text(users), security::kForOwner, security::Owner::kept);
  if (!written) return written;
  users_ = std::move(users);
  return {};
}

core::Result<std::string> Users::add(const std::string& name, Role role) {
  const std::scoped_lock lock(mutex_);
  if (!is_user_name(name))
    return core::fail(
        core::Errc::usage,
        fmt::format("\"{}\" is no user's name: use up to 64 letters, digits, \".\", \"-\" and \"_\"", name));
  const auto change = ChangeOfUsers::begin(path_, patience_);
  if (!change) return tl::unexpected(change.error());
  if (auto now = read_anew(); !now) return tl::unexpected(now.error());
  if (std::ranges::find(users_, name, &User::name) != users_.end())
    return core::fail(core::Errc::usage, fmt::format("there is a user {}: remove that one first", name));
  auto token = new_token();
  auto users = users_;
  users.push_back({name, role, sha256_hex(token)});
  if (auto written = write(std::move(users)); !written) return tl::unexpected(written.error());
  return token;
}

core::Result<void> Users::remove(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  const auto change = ChangeOfUsers::begin(path_, patience_);
  if (!change) return tl::unexpected(change.error());
  if (auto now = read_anew(); !now) return now;
  auto users = users_;
  if (std::erase_if(users, [&](const User& user) { return user.name == name; }) == 0)
    return core::fail(core::Errc::usage, fmt::format("there is no user {}", name));
  return write(std::move(users));
}

}  // namespace troupe::service
