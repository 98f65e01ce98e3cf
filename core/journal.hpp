/// The journal: what happened, in order, in a form that survives a crash. Append-only segments of checksummed records;
/// format in docs/formats/journal.md. A reader stops cleanly at the last whole record of a cut-off file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace troupe::core {

/// What a writer writes; a reader takes this and all before it.
inline constexpr std::uint32_t kJournalVersion = 2;

/// One record: a kind that the writer's module defines, and its bytes.
struct JournalRecord {
  std::uint16_t kind = 0;
  std::vector<std::byte> payload;  // at most 16 MiB
};

/// Appends records to one segment file. Not thread-safe. Buffers up to 64 KiB; flush() hands everything to the system.
/// After a failed write the writer stays failed: every later call returns the same error and writes nothing.
class JournalWriter {
 public:
  /// Creates `path`, which must not exist.
  [[nodiscard]] static Result<JournalWriter> create(const std::string& path);
  JournalWriter(JournalWriter&&) noexcept;
  JournalWriter& operator=(JournalWriter&&) noexcept;
  ~JournalWriter();

  [[nodiscard]] Result<void> append(std::uint16_t kind, std::span<const std::byte> payload);
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] std::uint64_t bytes() const noexcept;  ///< appended so far, header included

 private:
  struct State;
  explicit JournalWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// What reading a segment gave: whole records, and why it ended.
/// Damage before the end (a flipped bit, a wrong magic) is an Error of read_journal, not a short result.
struct JournalContents {
  std::vector<JournalRecord> records;
  bool cut_off = false;                     // the file ends inside a record
  std::uint32_t version = kJournalVersion;  // of the segment: what its records mean may depend on it
};

/// Reads all of `path`. Errc::corrupt names the offset of the first bad byte range; Errc::io a failed read.
[[nodiscard]] Result<JournalContents> read_journal(const std::string& path);

}  // namespace troupe::core
