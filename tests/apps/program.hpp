/// Runs the real program and returns its output. One thread.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/folder.hpp"

namespace troupe::apps {

struct Outcome {
  int code = -1;  // exit code; -1: killed by a signal or by the deadline
  std::string out;
  std::string err;
};

using TemporaryDirectory = tests::Folder;

inline std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Runs a program (searched in PATH), killed after five minutes; standard output goes to `out_path` where one is given.
inline Outcome run_program(std::vector<std::string> arguments, const std::string& out_path = {}) {
  const TemporaryDirectory folder;
  const std::string out = out_path.empty() ? folder.file("out") : out_path, err = folder.file("err");
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT, 0644);
  ::posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT, 0644);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return {};
  constexpr int kDeadlineMs = 300'000;
  pollfd ended{static_cast<int>(::syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  if (::poll(&ended, 1, kDeadlineMs) != 1) ::kill(child, SIGKILL);
  ::close(ended.fd);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out_path.empty() ? contents(out) : std::string{},
          contents(err)};
}

/// Runs `troupe` with these arguments, as above.
inline Outcome troupe(std::vector<std::string> arguments, const std::string& out_path = {}) {
  arguments.insert(arguments.begin(), TROUPE_BINARY);
  return run_program(std::move(arguments), out_path);
}

/// Runs a program and calls `then` with its process id once `sign` appears on standard error. The program is killed after five
/// minutes.
inline Outcome run_until(std::vector<std::string> arguments, std::string_view sign,
                         const std::function<void(pid_t)>& then) {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int pipe[2] = {-1, -1};
  if (::pipe2(pipe, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, pipe[1], 2);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(pipe[1]);
  Outcome outcome;
  bool sent = false;
  while (failed == 0) {
    constexpr int kDeadlineMs = 300'000;
    pollfd readable{pipe[0], POLLIN, 0};
    if (::poll(&readable, 1, kDeadlineMs) != 1) ::kill(child, SIGKILL);
    char buffer[4096];
    const auto count = ::read(pipe[0], buffer, sizeof buffer);
    if (count <= 0) break;
    outcome.err.append(buffer, static_cast<std::size_t>(count));
    if (!sent && outcome.err.find(sign) != std::string::npos) {
      sent = true;
      then(child);
    }
  }
  ::close(pipe[0]);
  int status = 0;
  if (failed == 0) ::waitpid(child, &status, 0);
  if (failed == 0 && WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

/// Runs `troupe` with these arguments and sends SIGINT once `sign` appears.
inline Outcome troupe_interrupted(std::vector<std::string> arguments, std::string_view sign) {
  arguments.insert(arguments.begin(), TROUPE_BINARY);
  return run_until(std::move(arguments), sign, [](pid_t child) { ::kill(child, SIGINT); });
}

/// Whether the run's directory has a checkpoint besides the one that the run begins with.
inline bool saved_after_step_0(const std::string& run) {
  std::error_code not_yet;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/checkpoints", not_yet)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".safetensors") && name.find_first_of("123456789") != std::string::npos) return true;
  }
  return false;
}

/// Whether standard error is one line that begins with the program's name, and standard output is empty.
inline bool is_one_line(const Outcome& outcome) {
  return outcome.out.empty() && outcome.err.starts_with("troupe: ") && outcome.err.find('\n') == outcome.err.size() - 1;
}

}  // namespace troupe::apps
