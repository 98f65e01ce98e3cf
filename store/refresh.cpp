#include "store/refresh.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "core/file_descriptor.hpp"
#include "store/known_directories.hpp"
#include "store/look/listing.hpp"
#include "store/look/names.hpp"
#include "store/look/thread_pool.hpp"
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
/// Between two of them: who waits to write asks again after 1 to 100 ms, and would not find a moment without.
constexpr std::chrono::milliseconds kPause{30};

struct Work {
  std::string path, grid;
  std::int64_t modified = 0;
  std::int64_t id = 0;
  std::string only_status;  // of a run of which nothing else can have changed
};

class Look {
 public:
  Look(Database& database, const std::string& root, std::stop_token stop)
      : database_(database), root_(root), stop_(std::move(stop)) {}

  core::Result<Refreshed> run() {
    root_file_ = core::FileDescriptor(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (root_file_.get() < 0) return tl::unexpected(core::from_errno(errno, "open", root_));
    if (auto seen = see(); !seen) return tl::unexpected(seen.error());
    reader_.emplace(database_, root_);
    for (const auto& one : changed_) look_at(std::string(one.path), one.known, one.time);
    if (auto read = read_runs(); !read) return tl::unexpected(read.error());
    if (auto removed = remove_gone(); !removed) return tl::unexpected(removed.error());
    keep_listing();
    return report_;
  }

  /// Another process has made the store anew since this look began.
  [[nodiscard]] bool made_anew() const noexcept { return made_anew_; }

 private:
  using Kind = KnownDirectory::Kind;

  /// It needs a closer look. `known`: null unless the store has it.
  struct Changed {
    std::string_view path;
    KnownDirectory* known = nullptr;
    std::int64_t time = 0;
  };

  /// Reads what is known, and meanwhile asks when that changed. The root is listed too, unless it has the names that it had. The list is younger than
  /// what is known: a directory that is not in it is gone.
  core::Result<void> see() {
    std::optional<Snapshot> now(std::in_place, database_);
    generation_ = generation(database_);
    version_ = database_.data_version();
    const auto known_time = known_listing(database_);
    if (auto begun = database_.check(); !begun) return begun;
    listing_ = time_of_listing(root_file_.get());
    const bool is_listed = listing_ == 0 || listing_ != known_time;
    std::future<core::Result<std::vector<std::string_view>>> names;
    if (is_listed)
      names = std::async(std::launch::async | std::launch::deferred,
                         [this] { return directory_names(root_file_.get(), ".", root_, listed_); });
    known_.emplace(texts_);  // outlives the pool
    ThreadPool pool(askers_of(root_file_.get()));
    known_->read(database_, [&](KnownDirectories::Piece& piece) {
      pool.add([this, &piece] {
        if (stop_.stop_requested()) return;
        for (auto& known : piece) known.now = settled(time_of_change(root_file_.get(), known.path.data()));
      });
    });
    auto read = database_.check();
    now.reset();  // a reader may keep others from writing, and asking many directories takes long on some file systems
    pool.wait();
    if (is_listed) {
      const auto found = names.get();
      if (!read) return read;
      if (!found) return tl::unexpected(found.error());
      note_new(known_->mark_listed(*found));
    }
    if (!read) return read;
    if (auto goes_on = check_stop(); !goes_on) return goes_on;  // some were not asked
    note_known(is_listed);
    std::ranges::sort(changed_, {}, &Changed::path);
    return {};
  }

  void note_new(const std::vector<std::string_view>& names) {
    const auto times = times_of_change(root_file_.get(), names);
    for (std::size_t k = 0; k < names.size(); ++k)
      if (times[k] != kNoDirectory)
        changed_.push_back({names[k], nullptr, settled(times[k])});
      else
        listing_ = 0;  // a link to no directory: what it leads to may become one without a change of the root
  }

  /// What is known by its name in the root. The runs in a grid are looked at with it.
  void note_known(bool is_listed) {
    for (auto& piece : known_->pieces())
      for (auto& known : piece) {
        if (known.now == kNoDirectory || (is_listed && !known.listed)) continue;
        if (known.kind == Kind::run && known.over && is_same(known, known.now) && !is_in_grid(known)) {
          known.seen = true;
          ++report_.looked_at;
        } else if (!is_in_grid(known)) {
          changed_.push_back({known.path, &known, known.now});
        }
      }
  }

  static bool is_in_grid(const KnownDirectory& known) noexcept {
    return known.path.find('/') != std::string_view::npos;
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

  void look_at(const std::string& path, KnownDirectory* known, std::int64_t time) {
    ++report_.looked_at;
    const bool same = known != nullptr && is_same(*known, time);
    if (known != nullptr) known->seen = true;
    if (same && known->kind == Kind::foreign) return;
    if (same && known->kind == Kind::grid) return look_at_known_runs(path);
    if (same || (is_run(path) && !is_grid_with_config(path))) return look_at_run(path, "", known, time);
    look_at_folder(path, known, time);
  }

  /// Of a grid to which no run has come.
  void look_at_known_runs(const std::string& grid) {
    for (auto* run : known_->in_grid(grid)) {
      if (run->now == kNoDirectory) continue;
      ++report_.looked_at;
      run->seen = true;
      if (!run->over || !is_same(*run, run->now)) look_at_run(std::string(run->path), grid, run, run->now);
    }
  }

  /// A grid, or something else.
  void look_at_folder(const std::string& path, KnownDirectory* known, std::int64_t time) {
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
        auto* run = known_->in_grid(path, inner);
        if (run != nullptr) run->seen = true;
        look_at_run(inner, path, run, inner_time);
      }
    }
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

  void look_at_run(const std::string& path, const std::string& grid, const KnownDirectory* known, std::int64_t time) {
    const bool same = known != nullptr && known->kind == Kind::run && is_same(*known, time);
    if (same && known->over) return;
    const auto* before = same ? known_->unfinished(known->id) : nullptr;
    if (before == nullptr || size_of_metrics(path) != before->position)
      return work_.push_back({path, grid, time, 0, {}});
    auto status = reader_->status(known->id, path);
    if (status != before->status) work_.push_back({path, grid, time, known->id, std::move(status)});
  }

  core::Result<void> read_runs() {
    Writer writer(database_);
    std::size_t done = 0;
    while (done < work_.size() || !folders_.empty()) {
      if (auto goes_on = check_stop(); !goes_on) return goes_on;
      if (done > 0) std::this_thread::sleep_for(kPause);
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

  core::Result<void> check_stop() const {
    if (!stop_.stop_requested()) return {};
    return core::fail(core::Errc::interrupted, fmt::format("{}: the look at the runs was ended", root_));
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
    for (const auto& piece : known_->pieces())
      for (const auto& known : piece)
        if (!known.seen) gone.push_back(known.id);
    report_.removed = gone.size();
    if (gone.empty()) return {};
    Writer writer(database_);
    Transaction all(database_);
    if (auto same = check_generation(); !same) return same;
    for (const auto id : gone) writer.remove(id);
    writer.remove_unused_configs();
    store::keep_listing(database_, 0);  // some may be there as something else, which the next look finds
    return all.commit();
  }

  /// The next look need not list the root if it has not changed by then. It is no loss if another process writes now, or has written since this look
  /// read what is known: it may have forgotten a directory whose name this look did not list.
  void keep_listing() {
    if (listing_ == 0 || listing_ == known_listing(database_) || settled(listing_) == 0 || report_.removed != 0) return;
    database_.set_busy_wait(std::chrono::milliseconds(0));
    {
      Transaction now(database_);
      if (generation(database_) == generation_ && database_.data_version() == version_) {
        store::keep_listing(database_, listing_);
        (void)now.commit();
      }
    }
    database_.set_busy_wait(kBusyWait);
    database_.clear();
  }

  Database& database_;
  std::string root_;
  std::stop_token stop_;
  std::int64_t generation_ = 0;
  std::int64_t version_ = 0;  // data_version() when what is known was read
  bool made_anew_ = false;
  core::FileDescriptor root_file_;
  std::int64_t listing_ = 0;  // time_of_listing(), before the root was listed; 0: the next look lists it again
  std::int64_t begun_ =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  Texts texts_, listed_;  // each is filled by one thread
  std::optional<KnownDirectories> known_;
  std::vector<Changed> changed_;
  std::optional<RunReader> reader_;
  std::vector<DirectoryRow> folders_;
  std::vector<Work> work_;
  Refreshed report_;
};

}  // namespace

core::Result<Refreshed> refresh(Database& database, const std::string& root, std::stop_token stop) {
  constexpr int kLooks = 3;
  for (int looks = 1;; ++looks) {
    Look look(database, root, stop);
    auto refreshed = look.run();
    if (!look.made_anew() || looks == kLooks) return refreshed;
  }
}

}  // namespace troupe::store
