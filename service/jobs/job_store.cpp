#include "service/jobs/job_store.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::service {
namespace {

using store::Cell;
using store::Statement;

constexpr const char* kTables = R"(
CREATE TABLE jobs(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, kind TEXT NOT NULL, config TEXT NOT NULL, command TEXT NOT NULL,
  priority INTEGER NOT NULL, nodes TEXT NOT NULL, workers INTEGER NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, submitted TEXT NOT NULL,
  started TEXT, ended TEXT, exit_code INTEGER, error TEXT, run TEXT, attempt INTEGER NOT NULL DEFAULT 0, resume INTEGER NOT NULL DEFAULT 0,
  kill INTEGER NOT NULL DEFAULT 0, pid INTEGER, pid_start INTEGER);
CREATE INDEX jobs_by_state ON jobs(state, priority DESC, id);
CREATE INDEX jobs_by_run ON jobs(run);
CREATE TABLE history(id INTEGER PRIMARY KEY, job INTEGER NOT NULL, at TEXT NOT NULL, event TEXT NOT NULL);
CREATE INDEX history_by_job ON history(job, id);
)";

constexpr std::string_view kInMemory = ":memory:";

constexpr const char* kIfDamaged =
    "end the jobs that still run, and move it away with its -wal and -shm: the service then knows no jobs; runs stay";

constexpr const char* kBookColumns =
    "id, name, kind, config, command, priority, nodes, workers, user, state, submitted, started, ended, exit_code, "
    "error, run, attempt, "
    "resume, kill, pid, pid_start";

Cell text_or_nothing(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

Job job_from(const Statement& row) {
  Job job;
  job.id = row.integer(0);
  job.spec.name = row.text(1);
  job.spec.kind = job_kind(row.text(2)).value_or(JobKind::train);
  job.spec.config = row.text(3);
  const auto command = nlohmann::json::parse(row.text(4), nullptr, false);
  if (command.is_array())
    for (const auto& word : command)
      if (word.is_string()) job.spec.command.push_back(word.get<std::string>());
  job.spec.priority = row.integer(5);
  job.spec.nodes = row.text(6);
  job.spec.workers = row.integer(7);
  job.spec.user = row.text(8);
  job.state = job_state(row.text(9)).value_or(JobState::lost);
  job.submitted = row.text(10);
  job.started = row.text(11);
  job.ended = row.text(12);
  if (!std::holds_alternative<std::monostate>(row.cell(13))) job.exit_code = static_cast<int>(row.integer(13));
  job.error = row.text(14);
  job.run = row.text(15);
  job.attempt = row.integer(16);
  job.resume = row.integer(17) != 0;
  job.kill = row.integer(18) != 0;
  if (row.integer(19) != 0)
    job.process = ProcessIdentity{static_cast<pid_t>(row.integer(19)), static_cast<std::uint64_t>(row.integer(20))};
  return job;
}

void add_history(store::Database& database, std::int64_t id, const std::string& at, const std::string& event) {
  Statement(database, "INSERT INTO history(job, at, event) VALUES(?, ?, ?)").with(id, at, event).run();
}

bool is_full(const core::Result<void>& done) { return !done && done.error().code == core::Errc::no_space; }

}  // namespace

core::Result<JobStore> JobStore::open(const std::string& path) {
  auto opened = store::Database::open(path, true, kIfDamaged);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  JobStore store(std::make_unique<store::Database>(std::move(*opened)),
                 ReservedRoom(path == kInMemory ? std::string() : path + ".room"));
  auto& database = *store.database_;
  database.run("PRAGMA synchronous=FULL");  // what a user was told is stored is stored
  store::Transaction all(database);
  const auto version = database.number("PRAGMA user_version");
  if (version > kVersion)
    return core::fail(core::Errc::corrupt, fmt::format("{}: it is of a later version of Troupe: use that one", path));
  if (version == 0) {
    database.run(kTables);
    database.run(fmt::format("PRAGMA user_version={}", kVersion));
  }
  if (auto done = all.commit(); !done) return tl::unexpected(std::move(done.error()));
  store.room_.keep();
  return store;
}

/// The result, or the first failure since the last call. The connection can be used again.
template <class Result>
core::Result<Result> JobStore::checked(Result result) {
  auto fine = database_->check();
  database_->clear();
  if (!fine) return tl::unexpected(std::move(fine.error()));
  return result;
}

core::Result<Job> JobStore::submit(const JobSpec& spec, JobState state, const std::string& at) {
  std::int64_t id = 0;
  core::Result<void> done;
  {
    store::Transaction all(*database_);
    Statement insert(*database_,
                     "INSERT INTO jobs(name, kind, config, command, priority, nodes, workers, user, state, submitted) "
                     "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id");
    insert.with(spec.name, std::string(name(spec.kind)), spec.config,
                nlohmann::json(spec.command).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                spec.priority, spec.nodes, spec.workers, spec.user, std::string(name(state)), at);
    if (insert.next()) id = insert.integer(0);
    insert.run();
    add_history(*database_, id, at, spec.user.empty() ? "submitted" : fmt::format("submitted by {}", spec.user));
    done = all.commit();
  }
  database_->clear();
  if (!done) return tl::unexpected(std::move(done.error()));
  Job job;
  job.id = id;
  job.spec = spec;
  job.state = state;
  job.submitted = at;
  return job;
}

core::Result<void> JobStore::save(const Job& job, const std::string& at, const std::string& event) {
  auto done = try_to_save(job, at, event);
  if (done) room_.keep();
  const bool ends = job.state != JobState::queued && job.state != JobState::running;
  return ends && is_full(done) && room_.give_up() ? try_to_save(job, at, event) : done;
}

core::Result<void> JobStore::try_to_save(const Job& job, const std::string& at, const std::string& event) {
  core::Result<void> done;
  {
    store::Transaction all(*database_);
    Statement update(*database_,
                     "UPDATE jobs SET priority=?, state=?, started=?, ended=?, exit_code=?, error=?, run=?, attempt=?, "
                     "resume=?, kill=?, pid=?, pid_start=? WHERE id=?");
    const auto flag = [](bool value) { return std::int64_t{value ? 1 : 0}; };
    update
        .with_list({job.spec.priority, std::string(name(job.state)), text_or_nothing(job.started),
                    text_or_nothing(job.ended), job.exit_code ? Cell(std::int64_t{*job.exit_code}) : Cell(),
                    text_or_nothing(job.error), text_or_nothing(job.run), job.attempt, flag(job.resume), flag(job.kill),
                    job.process ? Cell(std::int64_t{job.process->pid}) : Cell(),
                    job.process ? Cell(static_cast<std::int64_t>(job.process->start)) : Cell(), job.id})
        .run();
    add_history(*database_, job.id, at, event);
    done = all.commit();
  }
  database_->clear();
  return done;
}

core::Result<void> JobStore::remove(std::int64_t id) {
  auto done = try_to_remove(id);
  if (done) room_.keep();
  return is_full(done) && room_.give_up() ? try_to_remove(id) : done;
}

core::Result<void> JobStore::try_to_remove(std::int64_t id) {
  core::Result<void> done;
  {
    store::Transaction all(*database_);
    Statement(*database_, "DELETE FROM history WHERE job=?").with(id).run();
    Statement(*database_, "DELETE FROM jobs WHERE id=?").with(id).run();
    done = all.commit();
  }
  database_->clear();
  return done;
}

core::Result<std::vector<Job>> JobStore::select(const std::string& condition, const std::vector<Cell>& values) {
  std::vector<Job> jobs;
  {
    Statement rows(*database_, fmt::format("SELECT {} FROM jobs {}", kBookColumns, condition));
    rows.with_list(values);
    while (rows.next()) jobs.push_back(job_from(rows));
  }
  return checked(std::move(jobs));
}

core::Result<std::optional<Job>> JobStore::select_first(const std::string& condition, const std::vector<Cell>& values) {
  return select(condition + " LIMIT 1", values).map([](std::vector<Job> jobs) {
    return jobs.empty() ? std::nullopt : std::optional(std::move(jobs.front()));
  });
}

core::Result<std::optional<Job>> JobStore::find(std::int64_t id) { return select_first("WHERE id=?", {id}); }

core::Result<std::optional<Job>> JobStore::find_by_run(const std::string& run) {
  const auto slash = run.find('/');  // a run of a grid is in the grid's directory
  return select_first("WHERE run IN (?, ?) ORDER BY id DESC", {run, run.substr(0, slash)});
}

core::Result<std::vector<Job>> JobStore::list() { return select("ORDER BY id DESC", {}); }

core::Result<std::vector<Job>> JobStore::active() {
  return select("WHERE state IN (?, ?) ORDER BY id",
                {std::string(name(JobState::running)), std::string(name(JobState::stopping))});
}

core::Result<std::optional<Job>> JobStore::next() {
  return select_first("WHERE state=? ORDER BY priority DESC, id", {std::string(name(JobState::queued))});
}

core::Result<std::vector<JobHistoryLine>> JobStore::history(std::int64_t id) {
  std::vector<JobHistoryLine> lines;
  {
    Statement rows(*database_, "SELECT at, event FROM history WHERE job=? ORDER BY id");
    rows.with(id);
    while (rows.next()) lines.push_back({rows.text(0), rows.text(1)});
  }
  return checked(std::move(lines));
}

}  // namespace troupe::service
