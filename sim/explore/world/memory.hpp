/// A member's vectors, with a guard over what is lent: whoever touches a lent slice, or returns it altered by someone else,
/// is found out by an exception. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <vector>

#include "core/buffer.hpp"
#include "core/kernels.hpp"
#include "sim/explore/world/words.hpp"

namespace troupe::explore {

/// A rule of the hosts' contract was broken.
class Violation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[nodiscard]] std::uint64_t checksum(core::ConstSpan floats) noexcept;
/// Fills with NaN: whoever reads what nobody wrote, spoils the result.
void poison(core::Span floats) noexcept;
[[nodiscard]] core::Buffer floats(std::size_t count);  ///< zeros

struct Range {
  std::size_t offset = 0;  // floats
  std::size_t count = 0;
};
/// Part `part` of `parts` of `total` floats: aligned, as equal as that allows, perhaps empty.
[[nodiscard]] Range cut(std::size_t total, std::size_t parts, std::size_t part) noexcept;

class Memory {
 public:
  explicit Memory(std::size_t size) : size_(size) {}
  void add(Slot slot);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Range all() const noexcept { return {0, size_}; }

  /// The slot's floats for its owner; a Violation when any of `range` is lent. Empty for a slot that was not added.
  [[nodiscard]] core::Span use(Slot slot, Range range);
  [[nodiscard]] core::Span use(Slot slot) { return use(slot, all()); }
  /// For a look after the run, whoever has it.
  [[nodiscard]] core::ConstSpan peek(Slot slot) const;

  [[nodiscard]] core::Span lend(Slot slot, Range range);
  void give_back(Slot slot, Range range);

 private:
  struct Loan {
    Slot slot;
    Range range;
  };
  [[nodiscard]] bool lent(Slot slot, Range range) const noexcept;
  std::size_t size_;
  std::map<Slot, core::Buffer> slots_;
  std::vector<Loan> loans_;
};

/// in_place: the server works on the worker's memory. carried: a copy travels, and the worker's is poisoned until it is back.
/// Both must give the same numbers.
enum class Carriage : std::uint8_t { in_place, carried };

/// A lent slice on its way. Every look at it checks that nobody but its holder changed it since the last.
class Parcel {
 public:
  Parcel(core::Span home, Carriage carriage, Transfer kind);
  /// For the server's kernels; sealed again by seal().
  [[nodiscard]] core::Span open();
  void seal();
  /// At the worker: what a push carried stays as it was sent, else the server's version is in the slice.
  void unpack();

 private:
  core::Span home_;
  Carriage carriage_;
  Transfer kind_;
  core::Buffer copy_;           // carried
  core::Buffer sent_;           // carried push: what the worker gets back
  core::Span contents_;         // home_ or copy_
  std::uint64_t checksum_ = 0;  // of contents_
  std::uint64_t home_checksum_ = 0;
};

}  // namespace troupe::explore
