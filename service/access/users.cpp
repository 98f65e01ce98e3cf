#include "service/access/users.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

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

core::Result<Users> Users::open(const std::string& path) {
  Users users(path);
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
  if (auto now = read(); !now) return tl::unexpected(now.error());
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
  if (auto now = read(); !now) return now;
  auto users = users_;
  if (std::erase_if(users, [&](const User& user) { return user.name == name; }) == 0)
    return core::fail(core::Errc::usage, fmt::format("there is no user {}", name));
  return write(std::move(users));
}

}  // namespace troupe::service
