#include "service/jobs/job_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include <fmt/format.h>

#include "core/open_files.hpp"
#include "service/jobs/supervisor.hpp"

namespace troupe::service {
namespace {

/// posix_spawn(3)'s arguments, which want to be released.
struct Spawn {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
  Spawn() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  ~Spawn() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;
};

bool is_readable(int descriptor) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, 0) > 0;
}

}  // namespace

core::Result<JobProcess> JobProcess::start(const JobFolder& folder, std::int64_t attempt,
                                           const std::vector<std::string>& supervisor,
                                           const std::vector<std::string>& command) {
  auto line = supervisor;
  line.insert(line.end(), {"--attempt", std::to_string(attempt), folder.path(), "--"});
  line.insert(line.end(), command.begin(), command.end());
  std::vector<char*> words;
  for (auto& word : line) words.push_back(word.data());
  words.push_back(nullptr);

  Spawn spawn;
  const auto log = folder.log();
  ::posix_spawn_file_actions_addopen(&spawn.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&spawn.files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::posix_spawn_file_actions_adddup2(&spawn.files, STDOUT_FILENO, STDERR_FILENO);
  // Sockets of Asio are inherited. A job that held the listening one would keep the service from starting again.
  ::posix_spawn_file_actions_addclosefrom_np(&spawn.files, STDERR_FILENO + 1);
  const auto blocked = supervisor_signals();
  sigset_t all;
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&spawn.attributes, &blocked);
  ::posix_spawnattr_setsigdefault(&spawn.attributes, &all);
  ::posix_spawnattr_setflags(&spawn.attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  JobProcess started;
  const int error =
      ::posix_spawn(&started.child_, words.front(), &spawn.files, &spawn.attributes, words.data(), ::environ);
  if (error != 0) return tl::unexpected(core::from_errno(error, "start", line.front()));
  core::restore_open_files_limit(started.child_);  // before it starts the job, which inherits it
  started.watch(started.child_);
  return started;
}

void JobProcess::watch(pid_t supervisor) {
  ended_ = open_process(supervisor);
  gone_ = !ended_ && errno == ESRCH;
}

void JobProcess::adopt(const ProcessRecord& record) {
  record_ = record;
  if (child_ != 0) return;
  watch(record.supervisor.pid);
  gone_ = gone_ || !is_alive(record.supervisor);  // the number may be another process's by now
  if (gone_) ended_.reset();
}

bool JobProcess::supervisor_ended() {
  if (gone_) return true;
  // A child is also reaped where there was no descriptor for it.
  if (child_ != 0 ? ::waitpid(child_, nullptr, WNOHANG) == 0 : !ended_ || !is_readable(ended_.get())) return false;
  ended_.reset();
  gone_ = true;
  return true;
}

bool JobProcess::send(int signal) {
  if (!supervisor_ended() && ended_) return ::syscall(SYS_pidfd_send_signal, ended_.get(), signal, nullptr, 0) == 0;
  return record_ && send_signal(record_->program, signal);
}

bool JobProcess::kill() {
  if (!supervisor_ended() && ended_) return ::syscall(SYS_pidfd_send_signal, ended_.get(), SIGUSR2, nullptr, 0) == 0;
  if (!record_) return false;
  constexpr std::chrono::milliseconds kPatience{200};  // the caller's other jobs wait
  kill_followers(record_->supervisor, kPatience);
  return true;
}

}  // namespace troupe::service
