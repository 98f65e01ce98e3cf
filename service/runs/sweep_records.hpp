/// The records of sweeps in the directory of runs (sweep.json, docs/formats/grid.md). No link is followed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "experiment/sweep/record.hpp"
#include "service/http/message.hpp"

namespace troupe::service {

/// The record of the sweep `name` in `directory`; none: it is no sweep. Errc::io, corrupt. Any thread.
[[nodiscard]] core::Result<std::optional<sweep::Record>> sweep_record(const std::string& directory,
                                                                      const std::string& name);

/// "running" only while a process holds the sweep's lock: a killed sweep cannot say so. `recorded`: what its record says. Any thread.
[[nodiscard]] std::string sweep_state(const std::string& directory, const std::string& name,
                                      const std::string& recorded);

/// What a list of sweeps shows of each. A record is read again only when its file has changed. Thread rule: one thread at a time.
class SweepOverviews {
 public:
  explicit SweepOverviews(std::string directory) : directory_(std::move(directory)) {}

  /// The sweeps among `names`, and the records that cannot be read. Forgets what is not among them.
  struct List {
    Json sweeps = Json::array(), problems = Json::array();
  };
  [[nodiscard]] List list(const std::vector<std::string>& names);
  /// Records that were read since the beginning.
  [[nodiscard]] std::uint64_t read() const noexcept { return read_; }

 private:
  struct File {
    std::uint64_t inode = 0;
    std::int64_t size = 0, modified = 0;
    bool operator==(const File&) const = default;
  };
  struct Known {
    File file;
    bool settled = false;  // its time was some time ago: a change changes it
    Json overview{};       // without its state
    std::string state{};   // as recorded
    std::string problem{};
  };
  [[nodiscard]] std::optional<File> file_of(int root, const std::string& name) const;
  [[nodiscard]] Known known_of(const std::string& name, const File& file);

  std::string directory_;
  std::map<std::string, Known> known_{};
  std::uint64_t read_ = 0;
};

}  // namespace troupe::service
