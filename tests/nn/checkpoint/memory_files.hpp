/// A FileSystem in memory that fails on request. A crash loses unsynced data, as a disk may.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "nn/checkpoint/file_system.hpp"

namespace troupe::nn {

class MemoryFiles final : public FileSystem {
 public:
  /// Call number n (from 1) from now on fails with `error_number`; with `and_all_after` so does every later one, as if the
  /// process were dead. A failing write leaves half of its bytes behind.
  void fail_at(int n, int error_number, bool and_all_after);
  void heal() { fail_at(0, 0, false); }
  [[nodiscard]] bool failed() const noexcept { return failed_; }  ///< since fail_at
  /// Runs before each call, with its name: imitates another process at that moment. Calls inside the hook run no hook.
  void set_hook(std::function<void(const std::string& call)> hook) { hook_ = std::move(hook); }
  void set_capacity(std::size_t bytes) { capacity_ = bytes; }  ///< of all files together; a write beyond it: ENOSPC

  /// Power loss: `random` decides which unsynced data the disk keeps. Open files are closed.
  void crash(core::Random& random);

  /// Rules that a writer broke: a sync or rename of a file whose sync had failed, a write to a closed file.
  [[nodiscard]] const std::vector<std::string>& violations() const noexcept { return violations_; }
  /// "sync a/b.tmp", …, since clear_log.
  [[nodiscard]] const std::vector<std::string>& log() const noexcept { return log_; }
  void clear_log() { log_.clear(); }
  [[nodiscard]] std::vector<std::byte>& bytes(const std::string& path) { return entries_.at(path)->bytes; }
  [[nodiscard]] bool exists(const std::string& path) const { return entries_.contains(path); }
  [[nodiscard]] std::size_t open_files() const noexcept { return open_.size(); }

  core::Result<int> create(const std::string& path) override;
  core::Result<void> write(int file, Bytes bytes, const std::string& path) override;
  core::Result<void> sync(int file, const std::string& path) override;
  core::Result<void> close(int file, const std::string& path) override;
  core::Result<void> copy(const std::string& from, const std::string& to, const std::function<void()>& moved) override;
  core::Result<void> rename(const std::string& from, const std::string& to) override;
  core::Result<void> sync_directory(const std::string& path) override;
  core::Result<void> remove(const std::string& path) override;
  core::Result<void> create_directories(const std::string& path) override;
  core::Result<std::vector<std::string>> list(const std::string& path) override;
  core::Result<std::vector<std::byte>> read(const std::string& path) override;

 private:
  struct File {
    std::vector<std::byte> bytes;
    std::vector<std::byte> synced;
    bool sync_failed = false;
  };
  using Entries = std::map<std::string, std::shared_ptr<File>>;

  core::Result<void> enter(const std::string& call, const std::string& path);  // counts, logs, and fails when due
  [[nodiscard]] std::size_t used() const;

  Entries entries_;       // what a program sees
  Entries safe_entries_;  // what survives a crash
  std::map<int, std::shared_ptr<File>> open_;
  int next_file_ = 3;
  std::optional<std::size_t> capacity_;
  std::function<void(const std::string& call)> hook_;
  int calls_ = 0;
  int fail_call_ = 0;
  int error_number_ = 0;
  bool and_all_after_ = false;
  bool failed_ = false;
  std::vector<std::string> violations_;
  std::vector<std::string> log_;
};

}  // namespace troupe::nn
