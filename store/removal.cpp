#include "store/removal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "store/run_directory.hpp"
#include "store/writer.hpp"

namespace troupe::store {
namespace {

namespace fs = std::filesystem;

/// Removes the directory, its lock's file last: so the lock excludes others until nothing else is left. It is let go before its file is
/// removed: NFS keeps a removed file that is open as `.nfsXXXX`, and the directory with it.
core::Result<void> remove_directory(const fs::path& directory, core::Result<experiment::DirectoryLock> lock) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename() != experiment::DirectoryLock::kFile) {
      fs::remove_all(entry->path(), error);
      if (error) break;
    }
  { const auto last = std::move(lock); }
  if (!error) fs::remove_all(directory, error);
  if (error) return tl::unexpected(core::from_errno(error.value(), "remove", directory.string()));
  return {};
}

/// SQLite needs room to forget a run, and removing a run makes room.
bool is_full(const core::Result<void>& done) { return !done && done.error().code == core::Errc::no_space; }

/// The hidden folder beside runs into which this user's removals move them. Of another owner, or open to others, it is none of ours: what is
/// in it must stay.
class Removing {
 public:
  static core::Result<Removing> in(int parent, const fs::path& folder) {
    const auto name = fmt::format(".removing-{}", ::geteuid());
    Removing removing(parent, folder / name);
    if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST)
      return tl::unexpected(core::from_errno(errno, "make", removing.path_.string()));
    removing.file_.reset(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!removing.file_ || ::fstat(removing.file_.get(), &status) != 0)
      return tl::unexpected(core::from_errno(errno, "open", removing.path_.string()));
    if (status.st_uid != ::geteuid() || (status.st_mode & 0077) != 0)
      return core::fail(core::Errc::io,
                        fmt::format("{} was not made by this command: move it away", removing.path_.string()));
    return removing;
  }

  /// Of removals that were killed. One that goes on holds its lock.
  void remove_leftovers() const {
    std::error_code error;
    for (fs::directory_iterator entry(path_, error), end; !error && entry != end; entry.increment(error)) {
      std::error_code ignored;
      if (!entry->is_directory(ignored) || entry->is_symlink(ignored)) continue;
      auto lock = experiment::DirectoryLock::take(entry->path().string());
      if (lock) (void)remove_directory(entry->path(), std::move(lock));  // the next removal tries again
    }
  }

  [[nodiscard]] int file() const noexcept { return file_.get(); }
  [[nodiscard]] const fs::path& path() const noexcept { return path_; }
  /// Fails where another removal has moved something into it.
  void remove_if_empty() const { ::unlinkat(parent_, path_.filename().c_str(), AT_REMOVEDIR); }

 private:
  Removing(int parent, fs::path path) : parent_(parent), path_(std::move(path)) {}
  int parent_;
  fs::path path_;
  core::FileDescriptor file_;
};

/// Where there are no locks, only a run with an end is known not to train.
core::Result<void> check_status(RunStore& store, const std::string& path) {
  Statement row(store.database(), "SELECT r.status FROM runs r JOIN directories d ON d.id = r.id WHERE d.path = ?");
  const auto status = row.with(path).next() ? row.text(0) : std::string("running");
  if (auto checked = store.database().check(); !checked) return checked;
  if (status != "running" && status != "killed") return {};
  return core::fail(core::Errc::timeout,
                    fmt::format("{}/{} has no end, and its file system has no locks: make sure that no process trains "
                                "there, then remove the directory yourself",
                                store.directory(), path));
}

void forget_run(Database& database, const std::string& path) {
  Statement run(database, "SELECT id FROM directories WHERE path = ?");
  if (run.with(path).next()) {
    Writer writer(database);
    writer.remove(run.integer(0));
    writer.remove_unused_configs();
  }
  run.run();
}

/// Whether `name` in `directory` is what `file` has open.
bool is_same(int directory, const std::string& name, int file) {
  struct stat named {
  }, open{};
  return ::fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(file, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

}  // namespace

core::Result<void> remove_run(RunStore& store, const std::string& path, const TakeLock& take) {
  const auto place = open_run_directory(store.directory(), path);
  if (!place) return tl::unexpected(place.error());
  const auto directory = fs::path(store.directory()) / path;
  auto lock = take ? take(directory.string()) : experiment::DirectoryLock::take(directory.string());
  if (!lock) return tl::unexpected(lock.error());
  if (!lock->missing().empty())
    if (auto over = check_status(store, path); !over) return over;
  const auto removing = Removing::in(place->parent.get(), directory.parent_path());
  if (!removing && removing.error().code == core::Errc::no_space &&
      is_same(place->parent.get(), place->name, place->run.get()))
    return remove_directory(directory, std::move(lock));  // there is not even room for the hidden folder
  if (!removing) return tl::unexpected(removing.error());
  removing->remove_leftovers();

  const auto hidden = fmt::format("{}-{}", place->name, ::getpid());
  {
    Transaction all(store.database());
    forget_run(store.database(), path);
    if (auto ready = store.database().check(); !ready && !is_full(ready)) {
      removing->remove_if_empty();
      return ready;
    }
    if (::renameat(place->parent.get(), place->name.c_str(), removing->file(), hidden.c_str()) != 0) {
      const int error = errno;
      removing->remove_if_empty();
      return tl::unexpected(core::from_errno(error, "rename", directory.string()));
    }
    const auto brought_back = [&](const core::Error& why) -> core::Result<void> {
      if (::renameat(removing->file(), hidden.c_str(), place->parent.get(), place->name.c_str()) != 0)
        return tl::unexpected(core::from_errno(errno, "move back", (removing->path() / hidden).string()));
      removing->remove_if_empty();
      return tl::unexpected(why);
    };
    if (!is_same(removing->file(), hidden, place->run.get()))
      return brought_back(
          {core::Errc::config, fmt::format("{}: another process has put something else in its place: look at it again",
                                           directory.string())});
    if (auto committed = all.commit(); !committed && !is_full(committed)) return brought_back(committed.error());
  }
  store.database().clear();  // after a full disk: the next look finds that the directory is gone
  auto removed = remove_directory(removing->path() / hidden, std::move(lock));
  removing->remove_if_empty();
  return removed;
}

}  // namespace troupe::store
