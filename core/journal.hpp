/// The journal: the events of a run in order, in a form that survives a crash. Append-only segments of checksummed records; format
/// in docs/formats/journal.md. On a file that was cut off, a reader stops at the last whole record.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::core {

/// The version that a writer writes. A reader accepts this version and all earlier ones.
inline constexpr std::uint32_t kJournalVersion = 2;

/// One record: its kind, which the writer's module defines, and its bytes.
struct JournalRecord {
  std::uint16_t kind = 0;
  std::vector<std::byte> payload;  // at most 16 MiB
};

/// Appends records to one segment file. Not thread-safe. Buffers up to 64 KiB; flush() writes the buffer to the system. After a
/// failed write every later call returns the same error and writes nothing.
class JournalWriter {
 public:
  /// Creates `path`, which must not exist.
  [[nodiscard]] static Result<JournalWriter> create(const std::string& path);
  JournalWriter(JournalWriter&&) noexcept;
  JournalWriter& operator=(JournalWriter&&) noexcept;
  ~JournalWriter();

  [[nodiscard]] Result<void> append(std::uint16_t kind, std::span<const std::byte> payload);
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] std::uint64_t bytes() const noexcept;  ///< appended so far, including the header

 private:
  struct State;
  explicit JournalWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// The whole records of a segment and how it ends. Damage before the end (a flipped bit, a wrong magic) is an Error of
/// read_journal.
struct JournalContents {
  std::vector<JournalRecord> records;
  bool cut_off = false;                     // the file ends inside a record
  std::uint32_t version = kJournalVersion;  // of the segment; the meaning of its records may depend on it
};

/// Reads all of `path`. Errc::corrupt names the offset of the first bad byte range; Errc::io means a failed read.
[[nodiscard]] Result<JournalContents> read_journal(const std::string& path);

}  // namespace troupe::core
