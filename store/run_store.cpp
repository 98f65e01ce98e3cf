#include "store/run_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <future>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "store/schema.hpp"
#include "store/writer.hpp"

namespace troupe::store {
namespace {

/// File systems whose hosts share no memory, which a write-ahead log needs: NFS, SMB, Lustre, GPFS, BeeGFS, Ceph, AFS, 9P, FUSE.
constexpr std::array<std::uint32_t, 11> kOverNetwork{0x6969,     0x517b,     0xfe534d42, 0xff534d42,
                                                     0x0bd00bd0, 0x47504653, 0x19830326, 0x00c36400,
                                                     0x5346414f, 0x01021997, 0x65735546};

constexpr std::array kFiles{"", "-wal", "-shm", "-journal"};

constexpr const char* kIfDamaged = "`troupe runs rebuild` makes the store anew from the directories";

bool shares_memory(const std::string& directory) {
  struct statfs system {};
  if (::statfs(directory.c_str(), &system) != 0) return false;
  return std::ranges::find(kOverNetwork, static_cast<std::uint32_t>(system.f_type)) == kOverNetwork.end();
}

/// Held by who opens the store's file, together, or by who replaces it, alone.
core::FileDescriptor lock_directory(const std::string& directory, int kind) {
  core::FileDescriptor file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file) ::flock(file.get(), kind | LOCK_NB);  // without the lock two processes may make the store anew twice
  return file;
}

/// In a folder of several users it may be another user's. One that is missing can be made.
bool may_write_store(const std::string& path) {
  return std::ranges::all_of(
      kFiles, [&](const char* suffix) { return ::access((path + suffix).c_str(), W_OK) == 0 || errno == ENOENT; });
}

/// The disk is full or broken, as far as SQLite can tell: a log in shared memory that finds no room is Errc::io.
bool is_of_disk(const core::Error& error) { return error.code == core::Errc::no_space || error.code == core::Errc::io; }

}  // namespace

core::Result<RunStore> RunStore::in(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return core::fail(core::Errc::config,
                      fmt::format("there is no directory {}: --dir names the one that has the runs", directory));
  RunStore store(directory);
  auto opened = store.open_file();
  if (!opened && is_of_disk(opened.error())) {
    store.memory_is_temporary_ = true;
    opened = store.open_memory(opened.error().message);
  }
  if (!opened) return tl::unexpected(opened.error());
  return store;
}

core::Result<RunStore> RunStore::make_anew(const std::string& directory) {
  auto store = in(directory);
  if (!store) return store;
  auto made = make_schema(*store->database_, Make::anew);
  if (!made && made.error().code == core::Errc::corrupt) made = store->replace_file();
  if (!made) return tl::unexpected(made.error());
  if (auto refreshed = store->refresh_or_replace(); !refreshed) return tl::unexpected(refreshed.error());
  return store;
}

core::Result<RunStore> RunStore::open(const std::string& directory) { return open(directory, nullptr); }

core::Result<RunStore> RunStore::open(const std::string& directory, const Question& question) {
  auto opened = in(directory);
  if (!opened) return opened;
  auto& store = *opened;
  std::future<Early> early;
  if (question && !store.in_memory_)
    early = std::async(std::launch::async | std::launch::deferred, [&] { return store.ask_early(question); });
  const auto before = store.replaced_;
  auto looked = store.look();
  bool is_answered = early.valid() && is_of_now(early.get()) && store.replaced_ == before;
  if (!looked && !store.in_memory_ && is_of_disk(looked.error())) {
    is_answered = false;
    store.memory_is_temporary_ = true;
    looked = store.open_memory(looked.error().message).and_then([&] { return store.refresh_all(); });
  }
  if (!looked) return tl::unexpected(looked.error());
  if (question && !is_answered) question(*store.database_);
  return opened;
}

RunStore::Early RunStore::ask_early(const Question& question) const {
  auto connected = connect();
  if (!connected) return {};
  Early early{std::move(*connected)};
  early.version = early.database->data_version();
  question(*early.database);
  return early;
}

bool RunStore::is_of_now(const Early& early) {
  return early.database && early.database->data_version() == early.version && early.database->check();
}

core::Result<void> RunStore::look() {
  auto refreshed = refresh_or_replace();
  if (refreshed || refreshed.error().code != core::Errc::timeout) return refreshed;
  remarks_.push_back(fmt::format("{}: another process works on the store; what follows may be older", directory_));
  database_->clear();
  return {};
}

core::Result<void> RunStore::open_file() {
  const auto path = fmt::format("{}/{}", directory_, kStoreFile);
  if (::access(directory_.c_str(), W_OK) != 0 || !may_write_store(path)) return open_memory({});
  {
    const auto together = lock_directory(directory_, LOCK_SH);
    auto opened = Database::open(path, shares_memory(directory_), kIfDamaged);
    if (!opened && opened.error().code != core::Errc::corrupt) return tl::unexpected(opened.error());
    if (opened) {
      database_ = std::make_unique<Database>(std::move(*opened));
      const auto ours = has_schema(*database_);
      if (ours) {
        if (*ours) {  // readers wait for no writer
          add_missing(*database_);
          database_->clear();  // without them the store is slower
          return {};
        }
        if (database_->number("SELECT count(*) FROM sqlite_schema") > 0)
          remarks_.push_back(fmt::format("{}: it is of another version: it is made anew from the directories", path));
        return make_schema(*database_, Make::unless_there);
      }
      // Of a busy or unreachable file nothing is known; what SQLite cannot make sense of is damaged.
      if (ours.error().code != core::Errc::corrupt && ours.error().code != core::Errc::internal)
        return tl::unexpected(ours.error());
    }
  }
  return replace_file();
}

core::Result<void> RunStore::open_memory(std::string_view why) {
  auto memory = Database::open(":memory:", false);
  if (!memory) return tl::unexpected(memory.error());
  database_ = std::make_unique<Database>(std::move(*memory));
  in_memory_ = true;
  remarks_.push_back(fmt::format("the run store in {} cannot be written: all runs are read anew each time{}{}",
                                 directory_, why.empty() ? "" : ": ", why));
  return make_schema(*database_, Make::anew);
}

core::Result<void> RunStore::replace_file() {
  const auto path = fmt::format("{}/{}", directory_, kStoreFile);
  remarks_.push_back(fmt::format("{} is damaged: it is made anew from the directories", path));
  database_.reset();
  ++replaced_;
  const auto alone = lock_directory(directory_, LOCK_EX);
  for (const char* suffix : kFiles)
    if (::unlink((path + suffix).c_str()) != 0 && errno != ENOENT)
      return tl::unexpected(core::from_errno(errno, "remove", path + suffix));
  auto opened = Database::open(path, shares_memory(directory_), kIfDamaged);
  if (!opened) return tl::unexpected(opened.error());
  database_ = std::make_unique<Database>(std::move(*opened));
  return make_schema(*database_, Make::unless_there);
}

core::Result<std::unique_ptr<Database>> RunStore::connect() const {
  if (in_memory_) return nullptr;
  const auto together = lock_directory(directory_, LOCK_SH);
  return Database::open(fmt::format("{}/{}", directory_, kStoreFile), shares_memory(directory_), kIfDamaged)
      .map([](Database&& opened) { return std::make_unique<Database>(std::move(opened)); });
}

core::Result<void> RunStore::refresh_all() {
  auto refreshed = refresh(*database_, directory_);
  if (!refreshed) return tl::unexpected(refreshed.error());
  refreshed_ = *refreshed;
  return {};
}

core::Result<void> RunStore::refresh_or_replace() {
  auto refreshed = refresh_all();
  if (refreshed || refreshed.error().code != core::Errc::corrupt) return refreshed;
  if (auto replaced = replace_file(); !replaced) return replaced;
  return refresh_all();
}

core::Result<RunNotes> RunStore::change_notes(const std::string& path, const Change& change) {
  Transaction alone(*database_);
  if (auto begun = database_->check(); !begun) return tl::unexpected(begun.error());
  auto notes = read_notes(directory_ + "/" + path);
  if (!notes) return notes;
  change(*notes);
  sort_tags(notes->tags);
  if (auto written = write_notes(directory_ + "/" + path, *notes); !written) return tl::unexpected(written.error());
  Statement run(*database_, "SELECT id FROM directories WHERE path = ?");
  if (run.with(path).next()) Writer(*database_).put_notes(run.integer(0), *notes);
  run.run();
  if (auto committed = alone.commit(); !committed) return tl::unexpected(committed.error());
  return notes;
}

core::Result<std::vector<Problem>> RunStore::problems() {
  std::vector<Problem> problems;
  Statement all(*database_, "SELECT path, problem FROM directories WHERE problem IS NOT NULL ORDER BY path");
  while (all.next()) problems.push_back({all.text(0), all.text(1)});
  return database_->check().map([&] { return problems; });
}

}  // namespace troupe::store
