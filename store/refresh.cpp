#include "store/refresh.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "store/known_directories.hpp"
#include "store/look/names.hpp"
#include "store/run_directory.hpp"
#include "store/run_reader.hpp"
#include "store/schema.hpp"

namespace troupe::store {
namespace {

/// A directory may change once more within the same tick of its file system's clock. So one that changed just now is looked at again.
constexpr std::int64_t kSettled = 2'000'000'000;  // ns
/// A directory in a grid becomes a run without a change of the grid's own time. So a grid with a younger one is listed again.
constexpr std::int64_t kYoung = 600'000'000'000;  // ns
constexpr std::size_t kBatch = 200;               // runs of one transaction

struct Work {
  std::string path, grid;
  std::int64_t modified = 0;
  std::int64_t id = 0;
  std::string only_status;  // of a run of which nothing else can have changed
};

class Look {
 public:
  Look(Database& database, const std::string& root) : database_(database), root_(root) {}

  core::Result<Refreshed> run() {
    root_file_ = core::FileDescriptor(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (root_file_.get() < 0) return tl::unexpected(core::from_errno(errno, "open", root_));
    if (auto seen = see(); !seen) return tl::unexpected(seen.error());
    reader_.emplace(database_, root_);
    for (const auto& [name, time] : changed_) look_at(std::string(name), time);
    if (auto read = read_runs(); !read) return tl::unexpected(read.error());
    if (auto removed = remove_gone(); !removed) return tl::unexpected(removed.error());
    return report_;
  }

  /// Another process has made the store anew since this look began.
  [[nodiscard]] bool made_anew() const noexcept { return made_anew_; }

 private:
  using Kind = KnownDirectory::Kind;

  /// What is in the root, and when each changed.
  struct Listed {
    std::vector<std::string_view> names{};
    std::vector<std::int64_t> times{};
  };
  core::Result<Listed> list_root() {
    return directory_names(root_file_.get(), ".", root_, listed_).map([this](std::vector<std::string_view> names) {
      auto times = times_of_change(root_file_.get(), names);
      return Listed{std::move(names), std::move(times)};
    });
  }

  /// Reads what is known, and meanwhile lists the root. The list is younger than what is known: a directory that is not in it is gone.
  core::Result<void> see() {
    std::optional<Snapshot> now(std::in_place, database_);
    generation_ = generation(database_);
    if (auto begun = database_.check(); !begun) return begun;
    auto listing = std::async(std::launch::async | std::launch::deferred, [this] { return list_root(); });
    known_.emplace(database_, texts_);
    auto read = database_.check();
    now.reset();  // a reader may keep others from writing, and a list of many directories takes long on some file systems
    const auto listed = listing.get();
    if (!read) return read;
    if (!listed) return tl::unexpected(listed.error());
    note_times(*listed);
    return {};
  }

  /// What needs a closer look is in changed_ then, by name; of known runs in grids the times are known.
  void note_times(const Listed& listed) {
    std::vector<KnownDirectory*> in_grids;
    std::vector<std::string_view> paths;
    for (std::size_t k = 0; k < listed.names.size(); ++k) {
      auto* known = known_->find(listed.names[k]);
      const auto time = settled(listed.times[k]);
      if (known != nullptr && known->kind == Kind::run && known->over && is_same(*known, time)) {
        known->seen = true;
        ++report_.looked_at;
        continue;
      }
      if (time != kNoDirectory) changed_.emplace_back(listed.names[k], time);
      if (known == nullptr || known->kind != Kind::grid) continue;
      for (auto* run : known_->in_grid(known->path)) {
        in_grids.push_back(run);
        paths.push_back(run->path);
      }
    }
    const auto times = times_of_change(root_file_.get(), paths);
    for (std::size_t k = 0; k < paths.size(); ++k) in_grids[k]->now = settled(times[k]);
    std::ranges::sort(changed_);
  }

  /// 0: it changed just now.
  [[nodiscard]] std::int64_t settled(std::int64_t time) const noexcept {
    return time == kNoDirectory || time < begun_ - kSettled ? time : 0;
  }

  /// kNoDirectory: it is none.
  [[nodiscard]] std::int64_t modified(const std::string& path) const {
    return settled(times_of_change(root_file_.get(), {path}).front());
  }

  static bool is_same(const KnownDirectory& known, std::int64_t time) noexcept {
    return known.modified == time && time != 0;
  }

  bool is_young(const std::string& path) const {
    struct stat status {};
    return ::fstatat(root_file_.get(), path.c_str(), &status, 0) == 0 && S_ISDIR(status.st_mode) &&
           std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 > begun_ - kYoung;
  }

  std::int64_t size_of_metrics(const std::string& path) const {
    struct stat status {};
    return ::fstatat(root_file_.get(), (path + "/metrics.jsonl").c_str(), &status, 0) == 0 ? status.st_size : 0;
  }

  bool is_run(const std::string& path) const {
    struct stat status {};
    return ::fstatat(root_file_.get(), (path + "/config.toml").c_str(), &status, 0) == 0 && S_ISREG(status.st_mode);
  }

  /// A grid may keep a configuration of its own. A run that has just begun has no metrics.jsonl either, but no runs in it.
  bool is_grid_with_config(const std::string& path) const {
    struct stat status {};
    if (::fstatat(root_file_.get(), (path + "/metrics.jsonl").c_str(), &status, 0) == 0) return false;
    return contains_runs(root_file_.get(), path).value_or(false);
  }

  void look_at(const std::string& path, std::int64_t time) {
    ++report_.looked_at;
    auto* known = known_->find(path);
    const bool same = known != nullptr && is_same(*known, time);
    if (known != nullptr) known->seen = true;
    if (same && known->kind == Kind::foreign) return;
    if (same && known->kind == Kind::grid) return look_at_known_runs(path);
    if (same || (is_run(path) && !is_grid_with_config(path))) return look_at_run(path, "", time);
    look_at_folder(path, time);
  }

  /// Of a grid to which no run has come.
  void look_at_known_runs(const std::string& grid) {
    for (auto* run : known_->in_grid(grid)) {
      if (run->now == kNoDirectory) continue;
      ++report_.looked_at;
      run->seen = true;
      if (!run->over || !is_same(*run, run->now)) look_at_run(std::string(run->path), grid, run->now);
    }
  }

  /// A grid, or something else.
  void look_at_folder(const std::string& path, std::int64_t time) {
    Texts texts;
    auto names = directory_names(root_file_.get(), path, root_ + "/" + path, texts);
    bool is_grid = false;
    if (!names) time = 0;  // it may be readable by the next look
    if (names) {
      std::ranges::sort(*names);
      for (const auto name : *names) {
        const auto inner = path + "/" + std::string(name);
        const auto inner_time = is_run(inner) ? modified(inner) : kNoDirectory;
        if (inner_time == kNoDirectory) {
          if (is_young(inner)) time = 0;
          continue;
        }
        is_grid = true;
        ++report_.looked_at;
        if (auto* known = known_->find(inner)) known->seen = true;
        look_at_run(inner, path, inner_time);
      }
    }
    auto* known = known_->find(path);
    if (known != nullptr && known->kind == Kind::run) {
      known->seen = false;  // no run any more: the next look sees what it is
      return;
    }
    DirectoryRow row{path, is_grid ? "grid" : "foreign", time, {}};
    if (!names)
      row.problem = names.error().message;
    else if (!is_grid)
      row.problem = "no run: it has no config.toml";
    if (known == nullptr || known->kind != (is_grid ? Kind::grid : Kind::foreign) || known->modified != row.modified ||
        known->problem != row.problem)
      folders_.push_back(std::move(row));
  }

  void look_at_run(const std::string& path, const std::string& grid, std::int64_t time) {
    const auto* known = known_->find(path);
    const bool same = known != nullptr && known->kind == Kind::run && is_same(*known, time);
    if (same && known->over) return;
    // Of a run that is over the position was not read, and is not needed: it has changed.
    if (!same || size_of_metrics(path) != known->position) return work_.push_back({path, grid, time, 0, {}});
    auto status = reader_->status(known->id, path);
    if (status != known->status) work_.push_back({path, grid, time, known->id, std::move(status)});
  }

  core::Result<void> read_runs() {
    Writer writer(database_);
    std::size_t done = 0;
    while (done < work_.size() || !folders_.empty()) {
      Transaction batch(database_);
      if (auto same = check_generation(); !same) return same;
      reader_->begin();
      writer.begin();
      for (const auto& folder : folders_) writer.put(folder);
      folders_.clear();
      for (std::size_t end = std::min(done + kBatch, work_.size()); done < end; ++done) {
        const auto& one = work_[done];
        if (!one.only_status.empty()) {
          writer.put_status(one.id, one.only_status);
        } else {
          reader_->read(one.path, one.grid, one.modified);
          ++report_.read;
        }
      }
      if (auto committed = batch.commit(); !committed) return committed;
    }
    return database_.check();
  }

  core::Result<void> check_generation() {
    const bool same = generation(database_) == generation_;
    if (auto checked = database_.check(); !checked) return checked;
    if (same) return {};
    made_anew_ = true;
    return core::fail(core::Errc::timeout, fmt::format("{}: other processes make the store anew", root_));
  }

  core::Result<void> remove_gone() {
    std::vector<std::int64_t> gone;
    for (const auto& known : known_->all())
      if (!known.seen) gone.push_back(known.id);
    report_.removed = gone.size();
    if (gone.empty()) return {};
    Writer writer(database_);
    Transaction all(database_);
    if (auto same = check_generation(); !same) return same;
    for (const auto id : gone) writer.remove(id);
    writer.remove_unused_configs();
    return all.commit();
  }

  Database& database_;
  std::string root_;
  std::int64_t generation_ = 0;
  bool made_anew_ = false;
  core::FileDescriptor root_file_;
  std::int64_t begun_ =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  Texts texts_, listed_;  // each is filled by one thread
  std::optional<KnownDirectories> known_;
  std::vector<std::pair<std::string_view, std::int64_t>> changed_;  // name, time
  std::optional<RunReader> reader_;
  std::vector<DirectoryRow> folders_;
  std::vector<Work> work_;
  Refreshed report_;
};

}  // namespace

core::Result<Refreshed> refresh(Database& database, const std::string& root) {
  constexpr int kLooks = 3;
  for (int looks = 1;; ++looks) {
    Look look(database, root);
    auto refreshed = look.run();
    if (!look.made_anew() || looks == kLooks) return refreshed;
  }
}

}  // namespace troupe::store
