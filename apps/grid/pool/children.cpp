#include "apps/grid/pool/children.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/extend.hpp>
#include <boost/process/group.hpp>
#include <boost/process/io.hpp>
#include <fmt/format.h>

namespace troupe::grid {
namespace {

namespace bp = boost::process;

std::string take(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return text.str();
}

}  // namespace

struct Children::Child {
  bp::child process;
  int ended = -1;  // readable after the process has ended
  ~Child() {
    if (ended >= 0) ::close(ended);
  }
};

Children::Children(std::string executable, std::string scratch)
    : executable_(std::move(executable)), scratch_(std::move(scratch)) {}

Children::~Children() {
  signal(SIGKILL);
  for (auto& [id, child] : running_) {
    std::error_code ignored;
    child->process.wait(ignored);
  }
}

core::Result<void> Children::start(std::size_t id, const std::vector<std::string>& arguments) {
  const auto out = fmt::format("{}/{}.out", scratch_, id), err = fmt::format("{}/{}.err", scratch_, id);
  // Runs in the child. If this process is killed, its children save their state and end.
  const auto follow_the_parent = [](auto&) { ::prctl(PR_SET_PDEATHSIG, SIGTERM); };
  bp::group group;
  std::error_code error;
  auto child = std::make_unique<Child>();
  child->process = bp::child(executable_, bp::args(arguments), bp::std_in<bp::null, bp::std_out> out, bp::std_err > err,
                             group, bp::extend::on_exec_setup = follow_the_parent, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "start", executable_));
  group.detach();  // signals go to the process; the group only keeps the terminal's signals away
  child->ended = static_cast<int>(::syscall(SYS_pidfd_open, child->process.id(), 0));
  if (child->ended < 0) return tl::unexpected(core::from_errno(errno, "watch", executable_));
  running_.emplace(id, std::move(child));
  return {};
}

std::vector<Children::End> Children::wait(std::chrono::milliseconds patience, int wake_fd) {
  std::vector<pollfd> watched{{wake_fd, POLLIN, 0}};
  for (const auto& [id, child] : running_) watched.push_back({child->ended, POLLIN, 0});
  ::poll(watched.data(), watched.size(), static_cast<int>(patience.count()));
  std::vector<End> ends;
  std::size_t place = 0;
  for (auto entry = running_.begin(); entry != running_.end();) {
    if (watched[++place].revents == 0) {
      ++entry;
      continue;
    }
    auto& process = entry->second->process;
    std::error_code ignored;
    process.wait(ignored);
    const int status = process.native_exit_code();
    ends.push_back({entry->first, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : process.exit_code(),
                    take(fmt::format("{}/{}.out", scratch_, entry->first)),
                    take(fmt::format("{}/{}.err", scratch_, entry->first))});
    entry = running_.erase(entry);
  }
  return ends;
}

void Children::signal(int number) const {
  for (const auto& [id, child] : running_) ::kill(child->process.id(), number);
}

std::string Children::latest_error_output(std::size_t id) const {
  constexpr std::streamoff kMost = 4096;
  std::ifstream file(fmt::format("{}/{}.err", scratch_, id), std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::streamoff>(file.tellg());
  if (size <= 0) return {};
  file.seekg(std::max<std::streamoff>(size - kMost, 0));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

core::Result<std::string> this_executable() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "read", "/proc/self/exe"));
  return path.string();
}

}  // namespace troupe::grid
