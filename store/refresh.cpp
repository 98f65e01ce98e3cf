#include "store/refresh.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
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

struct Known {
  std::int64_t id = 0;
  std::string kind, problem, status;
  std::int64_t modified = 0;
  bool over = false;  // a run with an end
  std::int64_t position = 0;
  bool seen = false;
};

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
    generation_ = generation(database_);
    read_known();
    if (auto known = database_.check(); !known) return tl::unexpected(known.error());
    reader_.emplace(database_, root_);
    const auto names = list(".");
    if (!names) return tl::unexpected(names.error());
    for (const auto& name : *names) look_at(name);
    if (auto read = read_runs(); !read) return tl::unexpected(read.error());
    if (auto removed = remove_gone(); !removed) return tl::unexpected(removed.error());
    return report_;
  }

  /// Another process has made the store anew since this look began.
  [[nodiscard]] bool made_anew() const noexcept { return made_anew_; }

 private:
  void read_known() {
    Statement all(database_,
                  "SELECT d.id, d.path, d.kind, d.modified, r.status NOT IN ('running', 'killed'), m.position, "
                  "d.problem, r.status "
                  "FROM directories d LEFT JOIN runs r ON r.id = d.id LEFT JOIN readings m ON m.run = d.id "
                  "ORDER BY d.path");
    while (all.next())
      known_.emplace_hint(known_.end(), all.text(1),
                          Known{all.integer(0), all.text(2), all.text(6), all.text(7), all.integer(3),
                                all.integer(4) != 0, all.integer(5)});
  }

  /// Directories in `path`, sorted; without hidden ones.
  core::Result<std::vector<std::string>> list(const std::string& path) const {
    const int file = ::openat(root_file_.get(), path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> open(file < 0 ? nullptr : ::fdopendir(file), &::closedir);
    const auto whole = path == "." ? root_ : root_ + "/" + path;
    if (!open) return tl::unexpected(core::from_errno(errno, "list", whole));
    std::vector<std::string> names;
    errno = 0;
    while (const auto* entry = ::readdir(open.get())) {
      const bool may_be = entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
      if (may_be && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    if (errno != 0) return tl::unexpected(core::from_errno(errno, "list", whole));
    std::ranges::sort(names);
    return names;
  }

  /// The time of a directory's last change, 0 if that was just now; nothing: it is none.
  std::optional<std::int64_t> modified(const std::string& path) const {
    struct stat status {};
    if (::fstatat(root_file_.get(), path.c_str(), &status, 0) != 0 || !S_ISDIR(status.st_mode)) return std::nullopt;
    const auto time = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
    return time < begun_ - kSettled ? time : 0;
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

  void look_at(const std::string& path) {
    const auto time = modified(path);
    if (!time) return;
    ++report_.looked_at;
    const auto known = known_.find(path);
    const bool same = known != known_.end() && known->second.modified == *time && *time != 0;
    if (known != known_.end()) known->second.seen = true;
    if (same && known->second.kind == "foreign") return;
    if (same && known->second.kind == "grid") return look_at_known_runs(path);
    if (same || (is_run(path) && !is_grid_with_config(path))) return look_at_run(path, "", *time);
    look_at_folder(path, *time);
  }

  /// Of a grid to which no run has come.
  void look_at_known_runs(const std::string& grid) {
    const auto prefix = grid + "/";
    for (auto run = known_.lower_bound(prefix); run != known_.end() && run->first.starts_with(prefix); ++run)
      if (const auto time = modified(run->first)) {
        ++report_.looked_at;
        run->second.seen = true;
        look_at_run(run->first, grid, *time);
      }
  }

  /// A grid, or something else.
  void look_at_folder(const std::string& path, std::int64_t time) {
    const auto names = list(path);
    bool is_grid = false;
    if (!names) time = 0;  // it may be readable by the next look
    if (names)
      for (const auto& name : *names) {
        const auto inner = path + "/" + name;
        const auto inner_time = is_run(inner) ? modified(inner) : std::nullopt;
        if (!inner_time) {
          if (is_young(inner)) time = 0;
          continue;
        }
        is_grid = true;
        ++report_.looked_at;
        if (const auto known = known_.find(inner); known != known_.end()) known->second.seen = true;
        look_at_run(inner, path, *inner_time);
      }
    if (const auto known = known_.find(path); known != known_.end() && known->second.kind == "run") {
      known->second.seen = false;  // no run any more: the next look sees what it is
      return;
    }
    DirectoryRow row{path, is_grid ? "grid" : "foreign", time, {}};
    if (!names)
      row.problem = names.error().message;
    else if (!is_grid)
      row.problem = "no run: it has no config.toml";
    const auto known = known_.find(path);
    if (known == known_.end() || known->second.kind != row.kind || known->second.modified != row.modified ||
        known->second.problem != row.problem)
      folders_.push_back(std::move(row));
  }

  void look_at_run(const std::string& path, const std::string& grid, std::int64_t time) {
    const auto known = known_.find(path);
    const bool same =
        known != known_.end() && known->second.kind == "run" && known->second.modified == time && time != 0;
    if (same && known->second.over) return;
    if (!same || size_of_metrics(path) != known->second.position) return work_.push_back({path, grid, time, 0, {}});
    auto status = reader_->status(known->second.id, path);
    if (status != known->second.status) work_.push_back({path, grid, time, known->second.id, std::move(status)});
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
    for (const auto& [path, known] : known_)
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
  std::map<std::string, Known> known_;
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
