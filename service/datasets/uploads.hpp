/// Data sets whose files users have sent: each has a folder of its own in `<run.dir>/.service/datasets`. An upload is known under its name when
/// all of it is there and can be opened, and not before: a file without a name takes the bytes, a folder that the registry does not know
/// the files. What a removal or a crash leaves there is removed by tidy().
/// Thread-safe; an Upload: one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/file_descriptor.hpp"
#include "service/datasets/dataset_registry.hpp"

namespace troupe::service {

struct UploadLimits {
  std::uint64_t bytes =
      std::uint64_t{4} << 30;  // of what is sent; its files may have kUnpacked times as many; 0: no uploads
  std::size_t at_once = 4;
  std::chrono::minutes unpacking{30};
};

class Uploads {
 public:
  static constexpr std::uint64_t kUnpacked = 4;

  class Upload {
   public:
    /// Its name and its place are free afterwards, and its files gone unless it is registered: may take long.
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;

    /// Errc::no_space, io.
    [[nodiscard]] core::Result<void> write(std::string_view piece);
    /// Unpacks what came, opens it and registers it. Takes long. Errc::config: as DatasetRegistry::add; data: it is no archive, or its
    /// files are not of this kind; no_space; io; timeout; interrupted.
    [[nodiscard]] core::Result<DatasetEntry> finish(const std::stop_token& stop);

   private:
    friend Uploads;
    Upload(Uploads& uploads, DatasetEntry entry, core::FileDescriptor file);
    core::Result<DatasetEntry> unpack_and_open(const std::stop_token& stop);
    core::Result<void> look_at_disk() const;

    Uploads& uploads_;
    DatasetEntry entry_;
    core::FileDescriptor file_;
    std::uint64_t written_ = 0, next_look_ = 0;
    std::string root_{};  // the folder of its files, while they are its own
  };

  /// `registry` and its folder outlive it. Makes nothing until the first upload.
  Uploads(DatasetRegistry& registry, UploadLimits limits) : registry_(registry), limits_(limits) {}

  /// Begins one: of `wanted` the name, kind and resize. `bytes`: how many are to come, if that is known. It must end before this. Errc::config: as
  /// DatasetRegistry::add, or a kind that has no files to send; usage: the name is taken, or being uploaded; no_space; timeout: others have to end
  /// first; io.
  [[nodiscard]] core::Result<std::unique_ptr<Upload>> begin(const DatasetEntry& wanted,
                                                            std::optional<std::uint64_t> bytes);
  /// Removes what is neither registered nor being uploaded, of all that is in the folder. May take long.
  void tidy(const std::stop_token& stop);
  [[nodiscard]] const UploadLimits& limits() const noexcept { return limits_; }

 private:
  core::Result<void> make_folder() const;
  [[nodiscard]] bool is_used(const std::string& folder) const;

  DatasetRegistry& registry_;
  const UploadLimits limits_;
  mutable std::mutex mutex_;       // guards the two below
  std::set<std::string> names_;    // being uploaded
  std::set<std::string> folders_;  // being filled
};

}  // namespace troupe::service
