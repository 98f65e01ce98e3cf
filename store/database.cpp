#include "store/database.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace troupe::store {
namespace {

core::Errc errc_of_code(int code) {
  switch (code & 0xff) {  // the upper bits say more than is needed
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return core::Errc::corrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return core::Errc::timeout;
    case SQLITE_FULL: return core::Errc::no_space;
    case SQLITE_NOMEM: return core::Errc::out_of_memory;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM: return core::Errc::io;
    default: return core::Errc::internal;
  }
}

std::string_view advice_for(core::Errc code, std::string_view if_damaged) {
  switch (code) {
    case core::Errc::corrupt: return if_damaged;
    case core::Errc::timeout: return "another process changes the store; try again";
    case core::Errc::no_space: return "make room, then try again";
    default: return "";
  }
}

}  // namespace

core::Result<Database> Database::open(const std::string& path, bool shared_memory, std::string if_damaged) {
  Database database;
  database.path_ = path;
  database.if_damaged_ = std::move(if_damaged);
  const int code = sqlite3_open_v2(path.c_str(), &database.handle_,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (code != SQLITE_OK) database.fail(code);
  database.set_busy_wait(kBusyWait);
  // The directories are the truth: a power failure may cost the newest transactions, which the next look reads again.
  database.run(shared_memory ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL" : "PRAGMA journal_mode=DELETE");
  int on = 1;  // the file of the log is emptied by the last who closes it, but not removed
  if (shared_memory && database.handle_ != nullptr)
    sqlite3_file_control(database.handle_, nullptr, SQLITE_FCNTL_PERSIST_WAL, &on);
  if (shared_memory) database.run("PRAGMA journal_size_limit=67108864");
  database.run("PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY");
  if (auto opened = database.check(); !opened) return tl::unexpected(opened.error());
  return database;
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      path_(std::move(other.path_)),
      if_damaged_(std::move(other.if_damaged_)),
      error_(std::move(other.error_)) {}

Database& Database::operator=(Database&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  std::swap(if_damaged_, other.if_damaged_);
  std::swap(error_, other.error_);
  return *this;
}

Database::~Database() { sqlite3_close_v2(handle_); }

void Database::fail(int code) {
  if (error_) return;
  const auto* why = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code);
  // SQLite knows ENOSPC, but not that a quota is used up.
  const bool over_quota =
      (code & 0xff) == SQLITE_IOERR && handle_ != nullptr && sqlite3_system_errno(handle_) == EDQUOT;
  const auto kind = over_quota ? core::Errc::no_space : errc_of_code(code);
  const auto advice = advice_for(kind, if_damaged_);
  error_ = core::Error{kind, fmt::format("{}: {}{}{}", path_, why, advice.empty() ? "" : ": ", advice)};
}

void Database::run(const std::string& statements) {
  if (error_) return;
  if (const int code = sqlite3_exec(handle_, statements.c_str(), nullptr, nullptr, nullptr); code != SQLITE_OK)
    fail(code);
}

std::int64_t Database::number(const std::string& statement) {
  Statement asked(*this, statement);
  return asked.next() ? asked.integer(0) : 0;
}

void Database::set_busy_wait(std::chrono::milliseconds wait) {
  if (handle_ != nullptr) sqlite3_busy_timeout(handle_, static_cast<int>(wait.count()));
}

core::Result<void> Database::check() const {
  if (error_) return tl::unexpected(*error_);
  return {};
}

void Database::clear() { error_.reset(); }

Statement::Statement(Database& database, std::string_view text) : database_(&database) {
  if (database.error_) return;
  const int code = sqlite3_prepare_v2(database.handle_, text.data(), static_cast<int>(text.size()), &handle_, nullptr);
  if (code != SQLITE_OK) database.fail(code);
}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_), handle_(std::exchange(other.handle_, nullptr)) {}

Statement::~Statement() { sqlite3_finalize(handle_); }

void Statement::restart() {
  if (handle_ == nullptr) return;  // its text could not be prepared
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
}

Statement& Statement::with_list(const std::vector<Cell>& values) {
  restart();
  for (std::size_t i = 0; i < values.size(); ++i) bind(static_cast<int>(i) + 1, values[i]);
  return *this;
}

void Statement::bind(int index, std::int64_t value) { sqlite3_bind_int64(handle_, index, value); }

void Statement::bind(int index, double value) {
  if (std::isfinite(value)) sqlite3_bind_double(handle_, index, value);
}

void Statement::bind(int index, const std::string& value) {
  sqlite3_bind_text64(handle_, index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void Statement::bind(int index, const Cell& value) {
  std::visit(
      [&](const auto& typed) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(typed)>, std::monostate>) bind(index, typed);
      },
      value);
}

bool Statement::next() {
  if (database_->error_ || handle_ == nullptr) return false;
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_->fail(code);
  sqlite3_reset(handle_);
  return false;
}

void Statement::run() {
  while (next()) {
  }
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }

double Statement::real(int column) const { return sqlite3_column_double(handle_, column); }

std::string Statement::text(int column) const { return std::string(text_view(column)); }

std::string_view Statement::text_view(int column) const {
  const auto* bytes = sqlite3_column_text(handle_, column);
  return bytes == nullptr ? std::string_view()
                          : std::string_view(reinterpret_cast<const char*>(bytes),
                                             static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
}

Cell Statement::cell(int column) const {
  switch (sqlite3_column_type(handle_, column)) {
    case SQLITE_INTEGER: return integer(column);
    case SQLITE_FLOAT: return sqlite3_column_double(handle_, column);
    case SQLITE_NULL: return std::monostate();
    default: return text(column);
  }
}

Snapshot::Snapshot(Database& database) : database_(database) { database_.run("BEGIN"); }

Snapshot::~Snapshot() {
  auto failure = std::exchange(database_.error_, std::nullopt);
  database_.run("ROLLBACK");  // nothing was written
  database_.error_ = std::move(failure);
}

Transaction::Transaction(Database& database) : database_(database) { database_.run("BEGIN IMMEDIATE"); }

core::Result<void> Transaction::commit() {
  database_.run("COMMIT");
  auto done = database_.check();
  if (done) open_ = false;
  return done;
}

Transaction::~Transaction() {
  if (!open_) return;
  auto failure = std::exchange(database_.error_, std::nullopt);
  database_.run("ROLLBACK");  // fails where nothing was begun, or SQLite has undone it itself
  database_.error_ = std::move(failure);
}

}  // namespace troupe::store
