#include "child.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace troupe::transport::testing {
namespace {

constexpr int kPatienceMs = 60'000;

void read_whole(int fd, void* to, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    pollfd watched{fd, POLLIN, 0};
    if (::poll(&watched, 1, kPatienceMs) == 0) throw std::runtime_error("the other process says nothing");
    const ssize_t count = ::recv(fd, static_cast<char*>(to) + done, size - done, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::runtime_error("the other process is gone");
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace

void Line::say(const std::string& text) const {
  std::string packet(sizeof(std::size_t), '\0');
  const std::size_t size = text.size();
  packet.replace(0, sizeof size, reinterpret_cast<const char*>(&size), sizeof size);
  packet += text;
  if (::send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(packet.size()))
    throw std::runtime_error("the other process is gone");
}

std::string Line::hear() const {
  std::size_t size = 0;
  read_whole(fd_, &size, sizeof size);
  std::string text(size, '\0');
  read_whole(fd_, text.data(), size);
  return text;
}

Child::Child(const std::function<void(Line&)>& work) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) throw std::runtime_error("socketpair");
  process_ = ::fork();
  if (process_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(pair[0]);
    Line line(pair[1]);
    try {
      work(line);
      ::_exit(0);
    } catch (const std::exception&) {
      ::_exit(1);
    }
  }
  ::close(pair[1]);
  fd_ = pair[0];
  line_ = Line(fd_);
}

Child::~Child() { kill(); }

void Child::signal(int number) const { ::kill(process_, number); }

void Child::stop() const {
  signal(SIGSTOP);
  siginfo_t stopped{};
  while (::waitid(P_PID, static_cast<id_t>(process_), &stopped, WSTOPPED | WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
}

void Child::kill() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
  }
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

bool is_listed(const std::string& name) {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (line.find(name) != std::string::npos) return true;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none))
    if (entry.path().filename().string().find(name) != std::string::npos) return true;
  return false;
}

}  // namespace troupe::transport::testing
