/// The store of the runs in a directory: `.store.sqlite` there (docs/formats/run-store.md). The directories of the runs are the truth; the
/// store is rebuilt from them whenever it is missing, damaged or of another version. Several processes may use one store at once. Thread
/// rule: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "store/database.hpp"
#include "store/refresh.hpp"
#include "store/run_notes.hpp"

namespace troupe::store {

inline constexpr std::string_view kStoreFile = ".store.sqlite";

/// A directory that is not a run, or of which something cannot be read.
struct Problem {
  std::string path, text;
};

class RunStore {
 public:
  /// Opens or creates the store of `directory`, and reads what has changed. Where the directory cannot be written, or has no room, the store is in
  /// memory and is rebuilt each time: who wants to make room must be able to see and remove runs. Errc::config: there is no such directory.
  [[nodiscard]] static core::Result<RunStore> open(const std::string& directory);

  /// The same, and asks the store a question while it reads what has changed. `question` is called on another thread, with a connection of its own and what
  /// the store knew before; and once more, on this thread, if that is not what the store knows now. What the last call found counts.
  using Question = std::function<void(Database&)>;
  [[nodiscard]] static core::Result<RunStore> open(const std::string& directory, const Question& question);

  /// As open(), but rebuilds the whole store.
  [[nodiscard]] static core::Result<RunStore> make_anew(const std::string& directory);

  /// A further connection to the same store, for another thread; null: the store is in memory. Errors: from Database::open().
  [[nodiscard]] core::Result<std::unique_ptr<Database>> connect() const;

  /// Applies `change` to the tags and the note of the run in `path`, in its directory and in the store, and sorts the tags. Other processes that change notes
  /// through this store wait meanwhile.
  using Change = std::function<void(RunNotes&)>;
  [[nodiscard]] core::Result<RunNotes> change_notes(const std::string& path, const Change& change);

  /// Whether the store is in memory for a reason that may pass, such as a full disk: opened again it may be a file.
  [[nodiscard]] bool is_temporarily_in_memory() const noexcept { return memory_is_temporary_; }

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  [[nodiscard]] Database& database() noexcept { return *database_; }
  /// What the user should know about the store itself: whole lines, without ends.
  [[nodiscard]] const std::vector<std::string>& remarks() const noexcept { return remarks_; }
  [[nodiscard]] const Refreshed& refreshed() const noexcept { return refreshed_; }
  [[nodiscard]] core::Result<std::vector<Problem>> problems();

 private:
  explicit RunStore(std::string directory) : directory_(std::move(directory)) {}
  static core::Result<RunStore> in(const std::string& directory);
  core::Result<void> open_file();
  /// In place of the file, after `why`; empty.
  core::Result<void> open_memory(std::string_view why);
  core::Result<void> replace_file();
  core::Result<void> refresh_all();
  /// open()'s look. Another process that works on the store is a remark.
  core::Result<void> look();
  /// A question was asked with this connection, at its data_version(). Null: it could not be.
  struct Early {
    std::unique_ptr<Database> database = nullptr;
    std::int64_t version = 0;
  };
  [[nodiscard]] Early ask_early(const Question& question) const;
  [[nodiscard]] static bool is_of_now(const Early& early);
  /// refresh_all(); a damaged store is replaced.
  core::Result<void> refresh_or_replace();

  std::string directory_;
  std::unique_ptr<Database> database_;  // Statements need it to stay where it is
  bool in_memory_ = false, memory_is_temporary_ = false;
  int replaced_ = 0;  // files
  std::vector<std::string> remarks_;
  Refreshed refreshed_;
};

/// An open store, and what it answers.
template <class Answer>
struct Answered {
  RunStore store;
  core::Result<Answer> answer;
};

/// RunStore::open() with a question that has an answer. The question only reads.
template <class Answer>
[[nodiscard]] core::Result<Answered<Answer>> open_and_ask(
    const std::string& directory, const std::function<core::Result<Answer>(Database&)>& question) {
  std::optional<core::Result<Answer>> answer;
  auto store = RunStore::open(directory, [&](Database& database) { answer.emplace(question(database)); });
  if (!store) return tl::unexpected(store.error());
  return Answered<Answer>{std::move(*store), std::move(*answer)};
}

}  // namespace troupe::store
