/// Processes of the real program, beside the test: started, listened to, signalled, and never left behind. One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/security/tls_files.hpp"

namespace troupe::nodes {

/// Generous: tests wait so long for what should happen. The machine may be busy with other things.
inline constexpr std::chrono::seconds kSoon{120};

class Process {
 public:
  /// `arguments`: the program first, looked up on PATH. `directory`: where it is started; empty: here.
  explicit Process(std::vector<std::string> arguments, const std::string& directory = {});
  /// Kills it when nobody has waited for it.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Blocks until `sign` has been seen on standard error. False: it never was, and the process has ended or kSoon is over.
  [[nodiscard]] bool says(std::string_view sign);
  /// As often as `times`.
  [[nodiscard]] bool says(std::string_view sign, std::size_t times);
  /// Blocks until it has ended and returns its exit code; -1: killed by a signal. After kSoon it is killed, and that is -2.
  /// A sanitizer's report among what it has said fails the test, however it ended.
  int wait();
  /// It has not ended so far.
  [[nodiscard]] bool runs();
  void signal(int number) const;
  /// SIGKILL, and gone when this returns.
  void kill();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// What it has said so far.
  [[nodiscard]] const std::string& out();
  [[nodiscard]] const std::string& err();

 private:
  /// Takes what is there, blocking for it until `until`. False: there is nothing, and, unless it is too early, never will be.
  bool hear(std::chrono::steady_clock::time_point until);

  pid_t pid_ = -1;
  int process_ = -1;         // readable when it has ended
  int pipes_[2] = {-1, -1};  // standard output and error
  std::string texts_[2];     // as heard
  int code_ = 0;
  bool ended_ = false;
};

/// `troupe` with these arguments.
[[nodiscard]] std::vector<std::string> program(const std::vector<std::string>& arguments);
/// "--ca", "…" as the program takes them; nothing for none.
[[nodiscard]] std::vector<std::string> tls_arguments(const security::TlsFiles& tls);

/// `troupe node`. After the constructor it listens, or up() is false.
class NodeProcess {
 public:
  struct Options {
    security::TlsFiles tls{};
    std::string directory{};  // where it is started
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;             // any
    std::vector<std::string> within{};  // what the command begins with: "ip netns exec …"
  };
  NodeProcess() : NodeProcess(Options{}) {}
  explicit NodeProcess(const Options& options);

  [[nodiscard]] bool up() const noexcept { return port_ != 0; }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// "127.0.0.1:41234"
  [[nodiscard]] std::string name() const { return host_ + ":" + std::to_string(port_); }
  [[nodiscard]] Process& process() noexcept { return process_; }
  [[nodiscard]] const std::string& log() { return process_.err(); }
  /// Bytes of memory that it holds now.
  [[nodiscard]] std::uint64_t resident() const;

 private:
  std::string host_;
  Process process_;
  std::uint16_t port_ = 0;
};

/// How often `part` stands in `text`.
[[nodiscard]] std::size_t count(std::string_view text, std::string_view part);

}  // namespace troupe::nodes
