/// A process that has jobs as `troupe serve` has, for tests that kill it, and the program of such a job. TROUPE_JOB_CRASH: the point at which a
/// process kills itself (service/jobs/job_folder.hpp, CrashPoint).
///
///     job_host supervise --attempt N FOLDER -- PROGRAM…    what `troupe supervise` does
///     job_host serve DIRECTORY ROOM [WORD…]                jobs in DIRECTORY; words, in this order:
///         submit=N     submits N jobs that append their id to DIRECTORY/runs
///         train        submits a job that appends its signals to DIRECTORY/signals, and waits for it to run
///         stop         stops the job of `train`
///         drain        ends when no job is queued or active; without it the process waits to be killed
///         remove       removes all jobs before that
///     job_host train FILE                                  appends "begun"; "checkpoint" at SIGUSR1; "saved" at SIGINT, and exits with 130
///     job_host family FILE                                 starts a process in a group of its own, and both append their pid and wait
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "service/jobs/job_runner.hpp"
#include "service/jobs/supervisor.hpp"

namespace {

using namespace troupe;

void crash(std::string_view point) {
  const char* const wanted = std::getenv("TROUPE_JOB_CRASH");
  if (wanted != nullptr && point == wanted) ::kill(::getpid(), SIGKILL);
}

/// One write: lines of several processes do not mix.
void append(const std::string& file, const std::string& line) {
  const core::FileDescriptor to(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const auto text = line + "\n";
  if (::write(to.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int fail(const core::Error& error) {
  std::cerr << error.message << std::endl;
  return core::exit_code(error.code);
}

int supervise(const std::vector<std::string>& words) {
  const auto done = service::supervise(
      {.folder = words[3], .attempt = number(words[2]), .command = {words.begin() + 5, words.end()}, .crash = crash});
  return done ? 0 : fail(done.error());
}

int train(const std::string& file) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGUSR1}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  append(file, "begun");
  for (;;) {
    int signal = 0;
    ::sigwait(&signals, &signal);
    append(file, signal == SIGINT ? "saved" : "checkpoint");
    if (signal == SIGINT) return core::exit_code(core::Errc::interrupted);
  }
}

int family(const std::string& file) {
  const bool child = ::fork() == 0;
  if (child) ::setpgid(0, 0);
  append(file, std::to_string(::getpid()));
  for (;;) ::pause();
}

/// Tells that a job has changed.
struct Changes {
  std::mutex mutex;
  std::condition_variable changed;
  int count = 0;
  void note() {
    const std::scoped_lock lock(mutex);
    ++count;
    changed.notify_all();
  }
  /// Returns when the condition holds; looks at it after each change.
  template <class Condition>
  void wait(Condition condition) {
    for (int seen = 0; !condition();) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return count != seen; });
      seen = count;
    }
  }
};

bool is_over(service::JobRunner& runner) {
  const auto jobs = runner.list();
  return jobs && std::ranges::all_of(*jobs, [](const service::Job& job) {
           return job.state != service::JobState::queued && !service::is_active(job.state);
         });
}

/// The line goes to standard error, unbuffered: the test knows that the job was accepted.
service::Job submit(service::JobRunner& runner, std::vector<std::string> command) {
  service::JobSpec spec{.name = "job", .kind = service::JobKind::launch, .command = std::move(command)};
  auto job = runner.submit(spec);
  if (!job) std::exit(fail(job.error()));
  std::cerr << fmt::format("submitted {};\n", job->id) << std::flush;
  return *job;
}

int serve(const std::string& self, const std::vector<std::string>& words) {
  const auto& directory = words[1];
  const auto is = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
  service::JobOptions options;
  options.paths = {.executable = self, .run_directory = directory};
  options.supervisor = {self, "supervise"};
  options.slots = static_cast<std::size_t>(number(words[2]));
  options.command = [](const service::Job& job, const service::JobFolder&) {
    auto command = job.spec.command;
    command.push_back(std::to_string(job.id));
    return command;
  };
  options.crash = crash;
  Changes changes;
  options.on_change = [&changes](const service::Job&) { changes.note(); };
  options.on_error = [](const core::Error& error) { std::cerr << error.message << std::endl; };
  auto runner = service::JobRunner::open(std::move(options));
  if (!runner) return fail(runner.error());
  for (const auto& word : words)
    if (word.starts_with("submit="))
      for (auto left = number(std::string_view(word).substr(7)); left > 0; --left)
        submit(**runner, {"/bin/sh", "-c", "echo $0 >> '" + directory + "/runs'"});
  if (is("train")) {
    const auto job = submit(**runner, {self, "train", directory + "/signals"});
    changes.wait([&] { return (*runner)->find(job.id).value()->process.has_value(); });
    while (::access((directory + "/signals").c_str(), F_OK) != 0) std::this_thread::yield();
    if (is("stop")) static_cast<void>((*runner)->stop(job.id));
  }
  if (!is("drain"))
    for (;;) ::pause();
  changes.wait([&] { return is_over(**runner); });
  if (is("remove")) {
    const auto jobs = (*runner)->list().value();
    for (const auto& job : jobs) static_cast<void>((*runner)->remove(job.id));
  }
  std::cerr << "drained" << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() >= 6 && words[0] == "supervise") return supervise(words);
  if (words.size() >= 3 && words[0] == "serve") return serve(argv[0], words);
  if (words.size() >= 2 && words[0] == "train") return train(words[1]);
  if (words.size() >= 2 && words[0] == "family") return family(words[1]);
  std::cerr << "job_host: see its source" << std::endl;
  return 2;
}
