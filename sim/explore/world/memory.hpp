/// A member's vectors, with a guard over lent slices: access to a lent slice throws, and so does a change of it by code
/// other than its holder's. One thread.
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
/// Fills with NaN: a read of unwritten memory spoils the result.
void poison(core::Span floats) noexcept;
[[nodiscard]] core::Buffer floats(std::size_t count);  ///< zeros

struct Range {
  std::size_t offset = 0;  // floats
  std::size_t count = 0;
};
/// Part `part` of `parts` of `total` floats: aligned, as equal as alignment allows, perhaps empty.
[[nodiscard]] Range cut(std::size_t total, std::size_t parts, std::size_t part) noexcept;

class Memory {
 public:
  explicit Memory(std::size_t size) : size_(size) {}
  void add(Slot slot);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Range all() const noexcept { return {0, size_}; }

  /// The slot's floats, for its owner; throws Violation when any of `range` is lent. Empty for a slot that was not added.
  [[nodiscard]] core::Span use(Slot slot, Range range);
  [[nodiscard]] core::Span use(Slot slot) { return use(slot, all()); }
  /// Read access after the run, lent or not.
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

/// in_place: the server works on the worker's memory. carried: a copy is sent, and the worker's memory is poisoned until it returns. Both
/// must give the same numbers.
enum class Carriage : std::uint8_t { in_place, carried };

/// A lent slice in transit. Every access checks that only its holder changed it.
class Parcel {
 public:
  Parcel(core::Span home, Carriage carriage, Transfer kind);
  /// For the server's kernels; call seal() afterwards.
  [[nodiscard]] core::Span open();
  void seal();
  /// At the worker: after a push the slice is as it was sent, else it has the server's version.
  void unpack();

 private:
  core::Span home_;
  Carriage carriage_;
  Transfer kind_;
  core::Buffer copy_;           // carried
  core::Buffer sent_;           // carried push: the worker's original
  core::Span contents_;         // home_ or copy_
  std::uint64_t checksum_ = 0;  // of contents_
  std::uint64_t home_checksum_ = 0;
};

}  // namespace troupe::explore
