#include "service/jobs/process_identity.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace troupe::service {
namespace {

/// Fields 3 and on of /proc/<pid>/stat. The second is the program's name in parentheses, which may contain anything.
std::vector<std::string> stat_fields(pid_t pid) {
  std::ostringstream text;
  text << std::ifstream(fmt::format("/proc/{}/stat", pid)).rdbuf();
  const auto line = text.str();
  const auto end = line.rfind(')');
  std::vector<std::string> fields;
  if (end == std::string::npos) return fields;
  std::istringstream rest(line.substr(end + 1));
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

constexpr std::size_t kState = 0, kSession = 3, kStart = 19;  // fields 3, 6 and 22

template <class Number>
Number to_number(const std::string& text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool has_ended(const std::vector<std::string>& fields) {
  return fields.size() <= kStart || fields[kState] == "Z" || fields[kState] == "X";
}

}  // namespace

std::optional<ProcessIdentity> identity_of(pid_t pid) {
  const auto fields = stat_fields(pid);
  if (pid <= 0 || has_ended(fields)) return std::nullopt;
  return ProcessIdentity{pid, to_number<std::uint64_t>(fields[kStart])};
}

bool is_alive(const ProcessIdentity& process) { return identity_of(process.pid) == process; }

std::vector<pid_t> members_of_session(pid_t session) {
  std::vector<pid_t> members;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const auto pid = to_number<pid_t>(entry->path().filename().string());
    if (pid <= 0 || pid == session) continue;
    const auto fields = stat_fields(pid);
    if (!has_ended(fields) && to_number<pid_t>(fields[kSession]) == session) members.push_back(pid);
  }
  return members;
}

}  // namespace troupe::service
