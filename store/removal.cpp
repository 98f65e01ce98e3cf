#include "store/removal.hpp"

#include <cerrno>
#include <filesystem>

#include <fmt/format.h>

#include "experiment/directory/directory_lock.hpp"
#include "store/writer.hpp"

namespace troupe::store {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kRemoving = ".removing-";

/// Of removals that were killed.
void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with(kRemoving)) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

core::Result<void> remove_run(RunStore& store, const std::string& path) {
  const auto directory = fs::path(store.directory()) / path;
  const auto lock = experiment::DirectoryLock::take(directory.string());
  if (!lock) return tl::unexpected(lock.error());
  remove_leftovers(directory.parent_path());
  const auto hidden = directory.parent_path() / fmt::format("{}{}", kRemoving, directory.filename().string());
  std::error_code error;
  fs::rename(directory, hidden, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "rename", directory.string()));
  Statement run(store.database(), "SELECT id FROM directories WHERE path = ?");
  Transaction all(store.database());
  if (run.with(path).next()) {
    Writer writer(store.database());
    writer.remove(run.integer(0));
    writer.remove_unused_configs();
  }
  run.run();
  if (auto committed = all.commit(); !committed) return committed;  // the next look sees that the run is gone
  fs::remove_all(hidden, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "remove", hidden.string()));
  return {};
}

}  // namespace troupe::store
