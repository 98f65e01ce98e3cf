/// Processes of the real program beside the test: started, read, signalled, and never left running. One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/security/tls_files.hpp"

namespace troupe::nodes {

/// Upper limit of a wait for an expected event. Generous: the machine may be busy.
inline constexpr std::chrono::seconds kSoon{120};

class Process {
 public:
  /// `arguments`: the program first, looked up on PATH. `directory`: where it is started; empty: the current one.
  explicit Process(std::vector<std::string> arguments, const std::string& directory = {});
  /// Kills the process if it has not been waited for.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Blocks until `sign` is in its standard error. False: the process has ended without it, or kSoon has passed.
  [[nodiscard]] bool says(std::string_view sign);
  /// As above, until `sign` is there `times` times.
  [[nodiscard]] bool says(std::string_view sign, std::size_t times);
  /// Blocks until the process has ended and returns its exit code; -1: killed by a signal. After kSoon the process is killed: -2.
  /// A sanitizer's report in its standard error fails the test, whatever the exit code.
  int wait();
  /// The process has not ended yet.
  [[nodiscard]] bool runs();
  void signal(int number) const;
  /// Sends SIGKILL and waits until the process has ended.
  void kill();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Its standard output, and its standard error, so far.
  [[nodiscard]] const std::string& out();
  [[nodiscard]] const std::string& err();

 private:
  /// Reads available output, blocking for it until `until`. False: none arrived, and no pipe was closed.
  bool hear(std::chrono::steady_clock::time_point until);

  pid_t pid_ = -1;
  int process_ = -1;         // readable when the process has ended
  int pipes_[2] = {-1, -1};  // standard output and error
  std::string texts_[2];     // read so far
  int code_ = 0;
  bool ended_ = false;
};

/// The command line of `troupe` with these arguments.
[[nodiscard]] std::vector<std::string> program(const std::vector<std::string>& arguments);
/// The program's options for `tls`: "--ca", "…"; empty for no TLS.
[[nodiscard]] std::vector<std::string> tls_arguments(const security::TlsFiles& tls);

/// `troupe node`. The constructor waits until it listens; up() is false if it does not.
class NodeProcess {
 public:
  struct Options {
    security::TlsFiles tls{};
    std::string directory{};  // where it is started
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;             // any
    std::vector<std::string> within{};  // words before the command: "ip netns exec …"
    bool programs = false;              // it may start programs of the user's
  };
  NodeProcess() : NodeProcess(Options{}) {}
  explicit NodeProcess(const Options& options);

  [[nodiscard]] bool up() const noexcept { return port_ != 0; }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// "127.0.0.1:41234"
  [[nodiscard]] std::string name() const { return host_ + ":" + std::to_string(port_); }
  [[nodiscard]] Process& process() noexcept { return process_; }
  [[nodiscard]] const std::string& log() { return process_.err(); }
  /// Its resident memory in bytes.
  [[nodiscard]] std::uint64_t resident() const;

 private:
  std::string host_;
  Process process_;
  std::uint16_t port_ = 0;
};

/// Number of occurrences of `part` in `text`.
[[nodiscard]] std::size_t count(std::string_view text, std::string_view part);

}  // namespace troupe::nodes
