#include "tests/nodes/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <csignal>
#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>

namespace troupe::nodes {

namespace {

using Clock = std::chrono::steady_clock;

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::max<decltype(left)>(left, 0));
}

std::vector<std::string> node_command(const NodeProcess::Options& options) {
  auto command = options.within;
  auto node = program({"node", "--listen", options.host + ":" + std::to_string(options.port)});
  const auto tls = tls_arguments(options.tls);
  command.insert(command.end(), node.begin(), node.end());
  command.insert(command.end(), tls.begin(), tls.end());
  if (options.programs) command.emplace_back("--programs");
  return command;
}

}  // namespace

Process::Process(std::vector<std::string> arguments, const std::string& directory) {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  std::array<int, 2> theirs{};
  for (int k = 0; k < 2; ++k) {
    std::array<int, 2> pipe{};
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pipes_[k] = pipe[0];
    theirs[k] = pipe[1];
    ::posix_spawn_file_actions_adddup2(&files, theirs[k], k + 1);
  }
  if (!directory.empty()) ::posix_spawn_file_actions_addchdir_np(&files, directory.c_str());
  const int failed = ::posix_spawnp(&pid_, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  for (const int end : theirs) ::close(end);
  if (failed != 0) throw std::runtime_error(arguments[0] + " does not start");
  process_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

Process::~Process() {
  if (!ended_) kill();
  for (const int pipe : pipes_)
    if (pipe >= 0) ::close(pipe);
  ::close(process_);
}

bool Process::hear(Clock::time_point until) {
  std::array<pollfd, 2> ready{pollfd{pipes_[0], POLLIN, 0}, pollfd{pipes_[1], POLLIN, 0}};
  if (::poll(ready.data(), ready.size(), milliseconds_until(until)) <= 0) return false;
  bool heard = false;
  for (int k = 0; k < 2; ++k) {
    if (ready[k].revents == 0) continue;
    std::array<char, 4096> bytes{};
    const auto length = ::read(pipes_[k], bytes.data(), bytes.size());
    heard = true;
    if (length > 0) {
      texts_[k].append(bytes.data(), static_cast<std::size_t>(length));
    } else {
      ::close(pipes_[k]);
      pipes_[k] = -1;
    }
  }
  return heard;
}

bool Process::says(std::string_view sign) { return says(sign, 1); }

bool Process::says(std::string_view sign, std::size_t times) {
  const auto until = Clock::now() + kSoon;
  while (count(texts_[1], sign) < times)
    if ((pipes_[0] < 0 && pipes_[1] < 0) || !hear(until)) return false;
  return true;
}

int Process::wait() {
  if (ended_) return code_;
  const auto until = Clock::now() + kSoon;
  while (pipes_[0] >= 0 || pipes_[1] >= 0)
    if (!hear(until)) break;
  pollfd over{process_, POLLIN, 0};
  const bool late = ::poll(&over, 1, milliseconds_until(until)) != 1;
  if (late) ::kill(pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  ended_ = true;
  code_ = late ? -2 : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  // Checked here because not every test checks the exit code of every process, and a killed process has none.
  for (const auto* report : {"Sanitizer: ", "runtime error: "})
    EXPECT_EQ(texts_[1].find(report), std::string::npos) << texts_[1];
  return code_;
}

bool Process::runs() {
  pollfd over{process_, POLLIN, 0};
  return !ended_ && ::poll(&over, 1, 0) == 0;
}

void Process::signal(int number) const {
  if (!ended_) ::kill(pid_, number);
}

void Process::kill() {
  signal(SIGKILL);
  wait();
}

const std::string& Process::out() {
  while (hear(Clock::now())) {
  }
  return texts_[0];
}

const std::string& Process::err() {
  static_cast<void>(out());
  return texts_[1];
}

std::vector<std::string> program(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{TROUPE_BINARY};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

std::vector<std::string> tls_arguments(const security::TlsFiles& tls) {
  if (tls.empty()) return {};
  return {"--ca", tls.ca, "--cert", tls.certificate, "--key", tls.key};
}

NodeProcess::NodeProcess(const Options& options)
    : host_(options.host), process_(node_command(options), options.directory) {
  const auto sign = "listens on " + host_ + ":";
  if (!process_.says(sign)) return;
  const auto& text = process_.err();
  for (auto i = text.find(sign) + sign.size(); i < text.size() && std::isdigit(text[i]); ++i)
    port_ = static_cast<std::uint16_t>(port_ * 10 + (text[i] - '0'));
}

std::uint64_t NodeProcess::resident() const {
  std::ifstream statm("/proc/" + std::to_string(process_.pid()) + "/statm");
  std::uint64_t pages = 0, held = 0;
  statm >> pages >> held;
  return held * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

}  // namespace troupe::nodes
