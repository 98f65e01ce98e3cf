/// Reads a segment of the journal record by record: also one that is being written, or is larger than memory. Implemented in core/journal.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/journal.hpp"

namespace troupe::core {

/// A segment record by record, in memory of one record: also of a file that is being written. One thread.
class JournalScanner {
 public:
  /// Takes the open file; `name` is for messages. Errors as read_journal(). A header that is not whole yet has no records.
  [[nodiscard]] static Result<JournalScanner> open(int file, std::string name);
  JournalScanner(JournalScanner&& other) noexcept;
  JournalScanner& operator=(JournalScanner&&) = delete;
  ~JournalScanner();

  /// The next record; false: no more whole ones, now. Errc::corrupt, io.
  [[nodiscard]] Result<bool> next(JournalRecord& record);
  /// Goes on at the record of this number, which begins at the byte `offset`: as offset() told when it was the next one. A record that is not there is
  /// told by next().
  void seek(std::uint64_t offset, std::uint64_t number);
  /// Bytes before the next record.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

 private:
  JournalScanner(int file, std::string name) : file_(file), name_(std::move(name)) {}
  /// Whether so many bytes from offset_ on are in buffer_.
  [[nodiscard]] Result<bool> fill(std::size_t bytes);

  int file_ = -1;
  std::string name_;
  std::vector<std::byte> buffer_;  // from begin_ on
  std::size_t begin_ = 0;          // in buffer_, of offset_
  std::uint64_t offset_ = 0, sequence_ = 0;
};

}  // namespace troupe::core
