#include "service/jobs/job_scheduler.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/text/utc_text.hpp"

namespace troupe::service {
namespace {

using Kind = JobEvent::Kind;
using LookClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSoon{20};      // a process that begins
constexpr std::chrono::milliseconds kRunSoon{200};  // a run that gets its directory
constexpr std::chrono::milliseconds kLater{1000};   // what failed, or ends by itself
constexpr std::chrono::milliseconds kLongest{60'000};

std::string utc_now() { return core::utc_text(std::time(nullptr)); }

std::string order_text(Kind kind) {
  switch (kind) {
    case Kind::start: return "start requested";
    case Kind::resume: return "resume requested";
    case Kind::stop: return "stop requested";
    case Kind::kill: return "kill requested";
    default: return "checkpoint requested";
  }
}

int code_of(const ExitRecord& exit) { return exit.signal != 0 ? 128 + exit.signal : exit.code; }

std::string end_text(const ExitRecord& exit) {
  return exit.signal != 0 ? fmt::format("ended by signal {}", exit.signal)
                          : fmt::format("ended with exit code {}", exit.code);
}

}  // namespace

JobScheduler::JobScheduler(JobOptions options, std::string directory, experiment::DirectoryLock lock, JobStore store)
    : options_(std::move(options)),
      directory_(std::move(directory)),
      lock_(std::move(lock)),
      store_(std::move(store)) {}

core::Result<Job> JobScheduler::submit(const JobSpec& spec, bool start) {
  if (auto fine = check_spec(spec); !fine) return tl::unexpected(std::move(fine.error()));
  at("submit: before row");
  auto job = store_.submit(spec, start ? JobState::queued : JobState::stopped, utc_now());
  at("submit: row");
  if (job && options_.on_change) options_.on_change(*job);
  return job;
}

core::Result<Job> JobScheduler::order(std::int64_t id, Kind kind) {
  auto found = find(id);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (!*found) return core::fail(core::Errc::config, fmt::format("there is no job {}", id));
  Job job = **found;
  const auto next = next_state(job.state, {.kind = kind});
  if (!next) return tl::unexpected(next.error());
  const auto place = active_.find(id);
  if (next->effect == JobEffect::save) {
    if (place == active_.end() || !place->second.process.is_known() || !place->second.process.send(SIGUSR1))
      return core::fail(core::Errc::usage, fmt::format("job {} has not begun to run: try again when it has", id));
  }
  Job changed = job;
  changed.state = next->state;
  if (kind == Kind::start || kind == Kind::resume) changed.resume = kind == Kind::resume;
  if (next->effect == JobEffect::kill) changed.kill = true;
  if (job.state == JobState::queued && changed.state == JobState::stopped) changed.ended = utc_now();
  if (auto stored = store(job, changed, order_text(kind)); !stored) {
    const bool stops = next->effect == JobEffect::interrupt || next->effect == JobEffect::kill;
    if (stored.error().code != core::Errc::no_space || !stops || place == active_.end())
      return tl::unexpected(std::move(stored.error()));
    report(stored.error());
    failing_ = true;
    place->second.unstored = order_text(kind);
    job = std::move(changed);
    if (options_.on_change) options_.on_change(job);
  }
  at("order: row");
  if (place != active_.end()) {
    place->second.job = job;
    if (next->effect == JobEffect::interrupt || next->effect == JobEffect::kill) place->second.wanted = next->effect;
    if (place->second.process.supervisor_ended())
      place->second.next_look = {};  // look() delivers, once it has seen that the lock is held
    else
      deliver(place->second);
    at("order: delivered");
  }
  return job;
}

core::Result<std::vector<Job>> JobScheduler::list() {
  return store_.list().map([this](std::vector<Job> jobs) {
    for (auto& job : jobs) add_unstored(job);
    return jobs;
  });
}

core::Result<std::optional<Job>> JobScheduler::find(std::int64_t id) {
  return store_.find(id).map([this](std::optional<Job> job) {
    if (job) add_unstored(*job);
    return job;
  });
}

void JobScheduler::add_unstored(Job& job) const {
  const auto place = active_.find(job.id);
  if (place != active_.end() && !place->second.unstored.empty()) job = place->second.job;
}

core::Result<Job> JobScheduler::set_priority(std::int64_t id, std::int64_t priority) {
  auto found = find(id);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (!*found) return core::fail(core::Errc::config, fmt::format("there is no job {}", id));
  Job job = **found, changed = job;
  changed.spec.priority = priority;
  if (auto stored = store(job, std::move(changed), fmt::format("priority {}", priority)); !stored)
    return tl::unexpected(std::move(stored.error()));
  if (const auto place = active_.find(id); place != active_.end()) place->second.job.spec.priority = priority;
  return job;
}

core::Result<void> JobScheduler::remove(std::int64_t id) {
  auto found = find(id);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (!*found) return core::fail(core::Errc::config, fmt::format("there is no job {}", id));
  if (const auto next = next_state((*found)->state, {.kind = Kind::remove}); !next) return tl::unexpected(next.error());
  if (auto removed = store_.remove(id); !removed) return removed;
  at("remove: row");
  std::error_code ignored;  // what stays is removed at the next start
  std::filesystem::remove_all(folder(id).path(), ignored);
  if (options_.on_remove) options_.on_remove(id);
  return {};
}

core::Result<std::optional<JobDetails>> JobScheduler::details(std::int64_t id) {
  auto job = find(id);
  if (!job) return tl::unexpected(std::move(job.error()));
  if (!*job) return std::nullopt;
  auto history = store_.history(id);
  if (!history) return tl::unexpected(std::move(history.error()));
  auto command = shell_text(command_of(**job));
  return JobDetails{std::move(**job), std::move(command), std::move(*history)};
}

JobFolder JobScheduler::folder(std::int64_t id) const { return JobFolder(fmt::format("{}/jobs/{}", directory_, id)); }

std::vector<std::string> JobScheduler::command_of(const Job& job) const {
  return options_.command ? options_.command(job, folder(job.id)) : command_line(job, folder(job.id), options_.paths);
}

void JobScheduler::look() {
  failing_ = false;
  for (auto entry = active_.begin(); entry != active_.end();)
    entry = look_at(entry->second) ? active_.erase(entry) : std::next(entry);
  while (active_.size() < options_.slots && begin_next()) {
  }
}

bool JobScheduler::begin_next() {
  auto next = store_.next();
  if (!next) {
    report(next.error());
    failing_ = true;
    return false;
  }
  if (!*next) return false;
  Job job = std::move(**next), changed = job;
  ++changed.attempt;
  changed.state = next_state(job.state, {.kind = Kind::begin})->state;
  changed.started = utc_now();
  changed.ended.clear();
  changed.exit_code.reset();
  changed.error.clear();
  changed.kill = false;
  changed.process.reset();
  if (!changed.resume) changed.run.clear();
  at("begin: before row");
  if (auto stored = store(job, std::move(changed), fmt::format("attempt {} begins", job.attempt + 1)); !stored) {
    report(stored.error());
    failing_ = true;
    return false;
  }
  at("begin: row");
  auto process = prepare(job).and_then(
      [&] { return JobProcess::start(folder(job.id), job.attempt, options_.supervisor, command_of(job)); });
  at("begin: supervisor started");
  const auto id = job.id;
  Active active{std::move(job), process ? std::move(*process) : JobProcess::of_other_service(), true};
  if (!process && store_end(active, {.kind = Kind::not_started}, process.error().message)) return true;
  active_.emplace(id, std::move(active));
  return true;
}

core::Result<void> JobScheduler::prepare(const Job& job) const {
  const auto place = folder(job.id);
  if (auto made = place.create(); !made) return made;
  if (const auto file = config_file_name(job.spec); !file.empty())
    if (auto written = place.write(file, job.spec.config); !written) return written;
  at("begin: folder");
  return {};
}

bool JobScheduler::look_at(Active& active) {
  if (!active.unstored.empty()) store_order(active);
  if ((active.ours || active.seen) && !active.process.is_known()) learn_process(active);
  if (!active.run_is_known) learn_run(active);
  const bool watched = !active.process.supervisor_ended() && active.process.descriptor() >= 0;
  if (!watched && LookClock::now() >= active.next_look && look_for_end(active)) return true;
  // Without a supervisor the session's number may be another one's by now, unless a look has just found the lock held.
  if (watched || LookClock::now() < active.next_look) deliver(active);
  return false;
}

void JobScheduler::store_order(Active& active) {
  if (auto stored = store(active.job, active.job, active.unstored); !stored) {
    report(stored.error());
    failing_ = true;
  } else {
    active.unstored.clear();
  }
}

void JobScheduler::learn_process(Active& active) {
  const auto record = folder(active.job.id).process();
  if (!record || record->attempt != active.job.attempt) return;
  active.process.adopt(*record);
  at("process: before row");
  if (active.job.process == record->supervisor) return;
  auto changed = active.job;
  changed.process = record->supervisor;
  if (auto stored = store(active.job, std::move(changed), fmt::format("process {}", record->program.pid)); !stored)
    report(stored.error());  // the file says it, too
  at("process: row");
}

void JobScheduler::learn_run(Active& active) {
  const auto directory = folder(active.job.id).run_directory(active.job.attempt);
  if (directory.empty()) return;
  auto changed = active.job;
  changed.run = run_name(directory, options_.paths.run_directory);
  active.run_is_known = true;
  if (changed.run.empty() || changed.run == active.job.run) return;
  const auto text = fmt::format("run {}", changed.run);
  if (auto stored = store(active.job, std::move(changed), text); !stored) {
    report(stored.error());
    active.run_is_known = false;
  }
}

void JobScheduler::deliver(Active& active) {
  if (active.wanted == JobEffect::interrupt && active.process.send(SIGINT)) active.wanted = JobEffect::none;
  if (active.wanted == JobEffect::kill && active.process.kill()) active.wanted = JobEffect::none;
}

bool JobScheduler::look_for_end(Active& active) {
  const auto& job = active.job;
  const auto outcome = folder(job.id).observe(job.attempt, options_.crash);
  if (!outcome) {
    report(outcome.error());
    failing_ = true;
    return false;
  }
  switch (outcome->kind) {
    case AttemptOutcome::Kind::active:
      active.seen = true;
      if (!active.process.is_known()) learn_process(active);
      active.next_look = LookClock::now() + (active.process.is_known() ? kLater : kSoon);
      return false;
    case AttemptOutcome::Kind::ended: {
      JobEvent event{.kind = Kind::ended, .code = outcome->exit.code, .signal = outcome->exit.signal};
      auto changed = job;
      changed.exit_code = code_of(outcome->exit);
      active.job = std::move(changed);
      auto error = outcome->exit.error;
      if (error.empty() && next_state(job.state, event)->state == JobState::failed) {
        error = outcome->exit.signal == 0 ? folder(job.id).last_log_line() : end_text(outcome->exit);
        if (error.empty()) error = end_text(outcome->exit);
      }
      return store_end(active, event, error);
    }
    case AttemptOutcome::Kind::vanished:
      return store_end(active, {.kind = Kind::vanished},
                       "its processes vanished without an exit status: the host or the supervisor was killed");
    case AttemptOutcome::Kind::never_began: break;
  }
  if (job.process) {  // the folder was removed while it ran
    if (!is_alive(*job.process))
      return store_end(active, {.kind = Kind::vanished}, "its folder was removed while it ran");
    active.next_look = LookClock::now() + kLater;
    return false;
  }
  if (!active.ours) return store_end(active, {.kind = Kind::never_began}, {});
  auto error = folder(job.id).last_log_line();
  return store_end(active, {.kind = Kind::not_started},
                   error.empty() ? "its supervisor was killed before it began" : error);
}

bool JobScheduler::store_end(Active& active, const JobEvent& event, const std::string& error) {
  if (!active.run_is_known) learn_run(active);
  auto changed = active.job;
  changed.state = next_state(changed.state, event)->state;
  changed.process.reset();
  changed.kill = false;
  if (changed.state == JobState::failed || changed.state == JobState::lost) changed.error = error;
  if (changed.state != JobState::queued) changed.ended = utc_now();
  const auto text = event.kind == Kind::ended         ? fmt::format("ended with exit code {}", *changed.exit_code)
                    : event.kind == Kind::never_began ? std::string("the service restarted before its process began")
                    : event.kind == Kind::vanished    ? std::string("its processes vanished")
                                                      : fmt::format("could not be started: {}", error);
  at("end: before row");
  if (auto stored = store(active.job, std::move(changed), text); !stored) {
    report(stored.error());
    failing_ = true;
    return false;
  }
  at("end: row");
  return true;
}

core::Result<void> JobScheduler::store(Job& to, Job changed, const std::string& event) {
  if (auto saved = store_.save(changed, utc_now(), event); !saved) return saved;
  to = std::move(changed);
  if (options_.on_change) options_.on_change(to);
  return {};
}

std::chrono::milliseconds JobScheduler::patience() const {
  auto patience = failing_ ? kLater : kLongest;
  for (const auto& [id, active] : active_) {
    if (!active.process.is_known() || active.wanted != JobEffect::none) return kSoon;
    if (!active.run_is_known) patience = std::min(patience, kRunSoon);
    if (active.process.descriptor() < 0) patience = std::min(patience, kLater);
  }
  return patience;
}

std::vector<int> JobScheduler::descriptors() const {
  std::vector<int> all;
  for (const auto& [id, active] : active_)
    if (active.process.descriptor() >= 0) all.push_back(active.process.descriptor());
  return all;
}

void JobScheduler::report(const core::Error& error) const {
  if (options_.on_error) options_.on_error(error);
}

void JobScheduler::at(std::string_view point) const {
  if (options_.crash != nullptr) options_.crash(point);
}

}  // namespace troupe::service
