/// Reads CAF's binary form of values and checks every length. CAF 0.17 allocates a vector of bytes at whatever length the input states, and
/// reads nested messages to any depth. Here no value is longer than the received bytes. Plain values.
#pragma once

#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <caf/all.hpp>

namespace troupe::actors {

class ValueReader {
 public:
  explicit ValueReader(std::span<const char> bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }
  [[nodiscard]] bool skip(std::size_t count) noexcept;
  template <std::unsigned_integral T>
  [[nodiscard]] bool number(T& value) noexcept {
    if (rest_.size() < sizeof(T)) return false;
    value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value = static_cast<T>(std::uint64_t{value} << 8 | static_cast<std::uint8_t>(rest_[i]));
    rest_ = rest_.subspan(sizeof(T));
    return true;
  }
  /// The length of a sequence. False if it exceeds the remaining bytes: each element takes at least one byte.
  [[nodiscard]] bool length(std::size_t& count) noexcept;
  [[nodiscard]] bool text(std::string& value);
  /// A node id, as its bytes on the wire; empty: no node.
  [[nodiscard]] bool node(std::string& value);
  /// Skips an error whose context is empty or one string. Any other context could be a message that holds errors again.
  [[nodiscard]] bool plain_error();
  /// "@<>+a+b": the types of a message; they stand before the values.
  [[nodiscard]] bool signature(std::string& names);

 private:
  std::span<const char> rest_;
};

/// An actor in a message. Id 0: none.
struct RemoteHandle {
  caf::actor_id id = 0;
  std::string node;  // as ValueReader::node
};

/// Reads values through their inspect(), as CAF's own reader does, and collects the actors. The values must not be used afterwards:
/// floating-point numbers and sequences of bytes are skipped.
class ValueWalker {
 public:
  using result_type = bool;
  static constexpr bool reads_state = false;
  static constexpr bool writes_state = true;

  ValueWalker(ValueReader& reader, std::vector<RemoteHandle>& actors) noexcept : reader_(reader), actors_(actors) {}

  template <class... Ts>
  bool operator()(Ts&&... values) {
    return (walk(values) && ...);
  }

 private:
  template <class T>
  bool walk(T& value) {
    if constexpr (std::is_base_of_v<caf::meta::annotation, std::remove_cv_t<T>>) {
      return true;
    } else if constexpr (std::is_floating_point_v<T>) {
      return reader_.skip(sizeof(T));
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> number{};
      return walk(number) && (value = static_cast<T>(number), true);
    } else if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t number = 0;
      return reader_.number(number) && (value = number != 0, true);
    } else if constexpr (std::is_integral_v<T>) {
      std::make_unsigned_t<T> number{};
      return reader_.number(number) && (value = static_cast<T>(number), true);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return reader_.text(value);
    } else if constexpr (caf::is_actor_handle<T>::value) {
      RemoteHandle handle;
      if (!reader_.number(handle.id) || !reader_.node(handle.node)) return false;
      actors_.push_back(std::move(handle));
      return true;
    } else if constexpr (requires { typename T::value_type; }) {
      return walk_sequence(value);
    } else {
      return inspect(*this, value);
    }
  }
  template <class T>
  bool walk_sequence(T& values) {
    std::size_t count = 0;
    if (!reader_.length(count)) return false;
    if constexpr (sizeof(typename T::value_type) == 1) return reader_.skip(count);
    for (std::size_t i = 0; i < count; ++i) {
      typename T::value_type one{};
      if (!walk(one)) return false;
      values.insert(values.end(), std::move(one));
    }
    return true;
  }

  ValueReader& reader_;
  std::vector<RemoteHandle>& actors_;
};

}  // namespace troupe::actors
