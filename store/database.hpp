/// A connection to an SQLite database, and its prepared statements. Failures stick: after the first one every statement of the connection
/// does nothing, and check() returns the failure; so a caller checks once for a group of statements. A statement waits for another writer for
/// at most kBusyWait. Thread rule: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace troupe::store {

inline constexpr std::chrono::milliseconds kBusyWait{10'000};

/// A value of a column. A number that is not finite is stored as nothing.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

class Database {
 public:
  /// Opens the file for writing and creates it if it is missing; ":memory:" is a database that ends with the connection. `shared_memory`: all
  /// processes that use the file can share memory, so it has a write-ahead log, whose file stays (a look would take its end for a change of the
  /// directory); otherwise (network file systems) a rollback journal.
  /// `if_damaged`: what to do about a damaged file, the end of that error's message.
  [[nodiscard]] static core::Result<Database> open(const std::string& path, bool shared_memory,
                                                   std::string if_damaged = {});

  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  ~Database();

  /// Statements without results, divided by semicolons.
  void run(const std::string& statements);
  /// The only value of a statement's first row; 0 without a row.
  [[nodiscard]] std::int64_t number(const std::string& statement);
  /// A number of this connection's that changes when another one has committed something.
  [[nodiscard]] std::int64_t data_version() { return number("PRAGMA data_version"); }

  /// How long a statement waits for another writer; kBusyWait from the beginning.
  void set_busy_wait(std::chrono::milliseconds wait);

  /// The first failure since clear(). Errc::corrupt: no database, or a damaged one; timeout: another process writes; no_space; io.
  [[nodiscard]] core::Result<void> check() const;
  void clear();

 private:
  friend class Statement;
  friend class Transaction;
  friend class Snapshot;
  Database() = default;
  void fail(int code);

  sqlite3* handle_ = nullptr;
  std::string path_, if_damaged_;
  std::optional<core::Error> error_;
};

/// A prepared statement. REQUIRES that the database outlives it and stays where it is.
class Statement {
 public:
  Statement(Database& database, std::string_view text);
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  /// Restarts the statement with these values for its parameters, from the first one on.
  template <class... T>
  Statement& with(const T&... values) {
    restart();
    int index = 0;
    (bind(++index, values), ...);
    return *this;
  }
  Statement& with_list(const std::vector<Cell>& values);

  /// The next row; false: there is none, or the connection has failed.
  [[nodiscard]] bool next();
  /// Runs it to its end and ignores its rows.
  void run();

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;  // also of whole numbers; 0: not a number
  [[nodiscard]] std::string text(int column) const;
  /// The same, valid until the next row; without a copy.
  [[nodiscard]] std::string_view text_view(int column) const;
  [[nodiscard]] Cell cell(int column) const;

 private:
  void restart();
  void bind(int index, std::int64_t value);
  void bind(int index, double value);
  void bind(int index, const std::string& value);
  void bind(int index, const Cell& value);
  template <class T>
  void bind(int index, const std::optional<T>& value) {
    if (value) bind(index, *value);
  }

  Database* database_;
  sqlite3_stmt* handle_ = nullptr;
};

/// What is read while it lives is of one moment, that of the first read: no other process's changes are between. Readers in a rollback journal hold up
/// writers meanwhile.
class Snapshot {
 public:
  explicit Snapshot(Database& database);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

 private:
  Database& database_;
};

/// Statements between its construction and commit() take effect together; without commit() none does.
class Transaction {
 public:
  /// Waits for another writer: the failure is the database's.
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  [[nodiscard]] core::Result<void> commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace troupe::store
