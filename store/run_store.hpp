/// The store of the runs in a directory: `.store.sqlite` there (docs/formats/run-store.md). The directories of the runs are the truth; the
/// store is rebuilt from them whenever it is missing, damaged or of another version. Several processes may use one store at once. Thread
/// rule: one thread at a time.
#pragma once

#include <functional>
#include <memory>
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
  /// Opens or creates the store of `directory`, and reads what has changed. Where the directory cannot be written, the store is in memory
  /// and is rebuilt each time. Errc::config: there is no such directory.
  [[nodiscard]] static core::Result<RunStore> open(const std::string& directory);

  /// The same, but rebuilds the whole store.
  [[nodiscard]] static core::Result<RunStore> make_anew(const std::string& directory);

  /// A further connection to the same store, for another thread; null: the store is in memory. Errors: from Database::open().
  [[nodiscard]] core::Result<std::unique_ptr<Database>> connect() const;

  /// Applies `change` to the tags and the note of the run in `path`, in its directory and in the store, and sorts the tags. Other processes that change notes
  /// through this store wait meanwhile.
  using Change = std::function<void(RunNotes&)>;
  [[nodiscard]] core::Result<RunNotes> change_notes(const std::string& path, const Change& change);

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
  core::Result<void> replace_file();
  core::Result<void> refresh_all();
  /// The same; a damaged store is replaced.
  core::Result<void> refresh_or_replace();

  std::string directory_;
  std::unique_ptr<Database> database_;  // Statements need it to stay where it is
  bool in_memory_ = false;
  std::vector<std::string> remarks_;
  Refreshed refreshed_;
};

}  // namespace troupe::store
