#include "service/jobs/process_identity.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

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

constexpr std::size_t kState = 0, kParent = 1, kSession = 3, kStart = 19;  // fields 3, 4, 6 and 22

template <class Number>
Number to_number(const std::string& text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool has_ended(const std::vector<std::string>& fields) {
  return fields.size() <= kStart || fields[kState] == "Z" || fields[kState] == "X";
}

/// Of a process that has no session here, as seen in a container, the number is 0.
std::vector<ProcessIdentity> followers_of(pid_t leader) {
  std::vector<ProcessIdentity> followers;
  std::error_code error;
  if (leader <= 0) return followers;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const auto pid = to_number<pid_t>(entry->path().filename().string());
    if (pid <= 0 || pid == leader) continue;
    const auto fields = stat_fields(pid);
    if (has_ended(fields)) continue;
    if (to_number<pid_t>(fields[kSession]) == leader || to_number<pid_t>(fields[kParent]) == leader)
      followers.push_back({pid, to_number<std::uint64_t>(fields[kStart])});
  }
  return followers;
}

}  // namespace

std::optional<ProcessIdentity> identity_of(pid_t pid) {
  const auto fields = stat_fields(pid);
  if (pid <= 0 || has_ended(fields)) return std::nullopt;
  return ProcessIdentity{pid, to_number<std::uint64_t>(fields[kStart])};
}

bool is_alive(const ProcessIdentity& process) { return identity_of(process.pid) == process; }

core::FileDescriptor open_process(pid_t pid) {
  return core::FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool send_signal(const ProcessIdentity& process, int signal) {
  const auto opened = open_process(process.pid);  // first: what is alive afterwards is what it refers to
  if (!is_alive(process)) return false;
  if (!opened) return ::kill(process.pid, signal) == 0;
  return ::syscall(SYS_pidfd_send_signal, opened.get(), signal, nullptr, 0) == 0;
}

void kill_followers(const ProcessIdentity& leader, std::chrono::milliseconds patience) {
  // A look finds no orphan whose parent ends meanwhile: the next one does, as the leader's child.
  constexpr int kEmptyLooks = 2;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (int empty = 0;;) {
    // The kernel gives a number away only when no process is of its session any more.
    if (const auto present = identity_of(leader.pid); present && *present != leader) return;
    const auto followers = followers_of(leader.pid);
    for (const auto& process : followers) send_signal(process, SIGKILL);
    empty = followers.empty() ? empty + 1 : 0;
    if (empty == kEmptyLooks || std::chrono::steady_clock::now() > until) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace troupe::service
