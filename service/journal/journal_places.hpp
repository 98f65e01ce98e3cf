/// Where records of journals begin, remembered while pages of them are read, so that a page late in a segment costs no pass over all before it.
/// Bounded: of kMostFiles segments, and of each at most kMostEntries counts. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::service {

/// A file that no other one becomes.
struct JournalFile {
  std::uint64_t device = 0, inode = 0;
  std::int64_t born = 0;  // ns since 1970
  bool operator==(const JournalFile&) const = default;
};

/// The state of a reader before a record.
struct JournalPlace {
  static constexpr std::int64_t kNoStep = -1;
  std::int64_t record = 0;                                     // its number in the segment
  std::uint64_t offset = 0;                                    // bytes before it
  std::int64_t highest_step = kNoStep;                         // of all events before it
  std::map<std::string, std::uint64_t, std::less<>> counts{};  // events before it, by member
};

class JournalPlaces {
 public:
  static constexpr std::size_t kMostFiles = 8, kMostPlaces = 1024, kMostEntries = 65'536;

  /// `every`: records between two places, at first. It doubles where there would be too many.
  explicit JournalPlaces(std::int64_t every = 2048) : every_(every) {}

  /// None: the file system does not tell when a file was made.
  [[nodiscard]] static std::optional<JournalFile> file_of(int descriptor);

  /// The last place that is known, not after the record `from`, and before all events of `step` and later ones; else the segment's begin.
  [[nodiscard]] JournalPlace before(const JournalFile& file, std::int64_t from,
                                    const std::optional<std::int64_t>& step);
  /// Keeps the place if it is one to keep: cheap otherwise.
  void remember(const JournalFile& file, const JournalPlace& place);
  void forget(const JournalFile& file);
  /// How many places of the file are remembered.
  [[nodiscard]] std::size_t known(const JournalFile& file);

 private:
  struct Known {
    JournalFile file;
    std::int64_t every = 0;
    std::size_t entries = 0;  // counts of all places
    std::vector<JournalPlace> places{};
  };
  [[nodiscard]] Known* find(const JournalFile& file);
  static void thin(Known& known);

  const std::int64_t every_;
  std::mutex mutex_;
  std::list<Known> files_{};  // the one used last first
};

}  // namespace troupe::service
