/// The data sets that a service knows by a name of the user's: which reader (data.name) and which path on this host,
/// `<run.dir>/.service/datasets.json`. Files of a path stay where they are; those of an upload are in datasets/ beside this file. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "data/dataset.hpp"

namespace troupe::service {

struct DatasetEntry {
  std::string name;
  std::string kind;         // data.name
  std::string path;         // data.path; empty for data that the program draws
  std::int64_t resize = 0;  // data.resize: pictures need it; 0: as the default says
  std::string folder{};     // of an upload, below DatasetRegistry::folder(): `path` follows from it; empty: none
  bool operator==(const DatasetEntry&) const = default;
};

class DatasetRegistry {
 public:
  static constexpr std::size_t kMostDatasets = 1000;

  /// Reads the file, if it is there. Errc::corrupt, io.
  [[nodiscard]] static core::Result<std::unique_ptr<DatasetRegistry>> open(std::string file);

  /// Of uploads, absolute; it need not be there.
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  /// By name.
  [[nodiscard]] std::vector<DatasetEntry> list() const;
  [[nodiscard]] std::optional<DatasetEntry> find(std::string_view name) const;
  /// What can be said of an entry before its files are there. Errc::config: as add().
  [[nodiscard]] core::Result<void> check(const DatasetEntry& entry) const;
  /// Errc::config: a name that is taken or is none, an unknown kind, or a path that is not there; io, no_space: it could not be stored.
  [[nodiscard]] core::Result<void> add(const DatasetEntry& entry);
  /// False: it is not known. Errc::io, no_space.
  [[nodiscard]] core::Result<bool> remove(const std::string& name);

 private:
  using Entries = std::map<std::string, DatasetEntry, std::less<>>;
  explicit DatasetRegistry(std::string file);
  core::Result<void> write(const Entries& entries) const;

  std::string file_, folder_;
  mutable std::mutex mutex_;  // guards entries_
  Entries entries_;
};

/// What a data set has.
struct DatasetFacts {
  std::vector<std::string> classes;  // names, or numbers where they have none
  std::int64_t train = 0, test = 0;  // samples
  std::int64_t channels = 0, height = 0, width = 0;
};

/// Opens both splits: may take long, and memory. Errors: the readers', which name the file.
[[nodiscard]] core::Result<DatasetFacts> inspect(const DatasetEntry& entry);

/// A split with its first `limit` samples; 0: all. Errors as inspect().
[[nodiscard]] core::Result<std::shared_ptr<const data::Dataset>> open_split(const DatasetEntry& entry,
                                                                            data::Split split, std::int64_t limit);

}  // namespace troupe::service
