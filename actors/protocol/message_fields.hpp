/// Counts the fields of a message and the fields that its inspect() visits. If the two differ, message_fields.cpp does not compile: the
/// field would be lost on the way to another process. Everything is computed at compile time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "actors/protocol/handles.hpp"

namespace troupe::actors {

namespace fields {

template <class T>
inline constexpr bool kOptional = false;
template <class T>
inline constexpr bool kOptional<std::optional<T>> = true;

/// Converts to a field of any type, in an initialiser that is never executed. An optional field takes its value type.
template <class Aggregate>
struct AnyField {
  template <class T>
  requires(!std::is_same_v<T, Aggregate> && !kOptional<T>) operator T() const;  // NOLINT(google-explicit-constructor)
};

template <class T, std::size_t... kIndex>
constexpr bool takes(std::index_sequence<kIndex...>) {
  return requires { T{((void)kIndex, AnyField<T>{})...}; };
}

template <class T, std::size_t kSoFar = 0>
constexpr std::size_t count() {
  static_assert(kSoFar < 100, "an aggregate with so many fields cannot be counted");
  if constexpr (takes<T>(std::make_index_sequence<kSoFar + 1>{}))
    return count<T, kSoFar + 1>();
  else
    return kSoFar;
}

/// Declared, never defined, never read: gives inspectors that look only at types the fields of `T`.
template <class T>
extern T unread;

template <class T>
inline constexpr bool kVector = false;
template <class T>
inline constexpr bool kVector<std::vector<T>> = true;

template <class T>
inline constexpr bool kMaybe = false;
template <class T>
inline constexpr bool kMaybe<Maybe<T>> = true;

struct Counter {
  using result_type = std::size_t;
  static constexpr bool reads_state = true;
  template <class... Ts>
  constexpr std::size_t operator()(const caf::meta::type_name_t&, Ts&&...) const {
    return sizeof...(Ts);
  }
};

/// A struct with an inspect() of its own; it may be only a field of messages.
template <class T>
concept Inspected = std::is_aggregate_v<T> && !kMaybe<T> && requires(Counter & f, T& x) {
  inspect(f, x);
};

}  // namespace fields

/// Number of fields of an aggregate without bases and arrays.
template <class T>
requires std::is_aggregate_v<T>
inline constexpr std::size_t kFieldCount = fields::count<T>();

template <fields::Inspected T>
constexpr std::size_t visited_count() {
  fields::Counter counter;
  return inspect(counter, fields::unread<T>);
}

/// Whether inspect() visits every field of `T` and of all structs in it.
template <class T>
constexpr bool wholly_visited();

namespace fields {

struct Checker {
  using result_type = bool;
  static constexpr bool reads_state = true;
  template <class... Ts>
  constexpr bool operator()(const caf::meta::type_name_t&, Ts&&...) const {
    return (wholly_visited<std::remove_cvref_t<Ts>>() && ...);
  }
};

}  // namespace fields

template <class T>
constexpr bool wholly_visited() {
  if constexpr (fields::kVector<T>) {
    return wholly_visited<typename T::value_type>();
  } else if constexpr (fields::Inspected<T>) {
    static_assert(kFieldCount<T> == visited_count<T>(),
                  "inspect() leaves a field of this struct out: it would be lost");
    fields::Checker checker;
    return inspect(checker, fields::unread<T>);
  } else {
    return true;
  }
}

// ---- one hash of all messages

namespace fields {

constexpr std::uint64_t mix(std::uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t number) {
  for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (number >> (8 * byte) & 0xff)) * 0x100000001b3;
  return hash;
}

template <class T>
constexpr std::uint64_t type_hash();

struct Hasher {
  using result_type = std::uint64_t;
  static constexpr bool reads_state = true;
  template <class... Ts>
  constexpr std::uint64_t operator()(const caf::meta::type_name_t& name, Ts&&...) const {
    std::uint64_t hash = mix(0xcbf29ce484222325, std::string_view(name.value));
    ((hash = mix(hash, type_hash<std::remove_cvref_t<Ts>>())), ...);
    return hash;
  }
};

template <class T>
constexpr std::uint64_t type_hash() {
  if constexpr (kVector<T>) {
    return mix(type_hash<typename T::value_type>(), "vector");
  } else if constexpr (Inspected<T>) {
    Hasher hasher;
    return inspect(hasher, unread<T>);
  } else if constexpr (std::is_enum_v<T>) {
    return mix(type_hash<std::underlying_type_t<T>>(), "enum");
  } else if constexpr (std::is_arithmetic_v<T>) {
    return mix(std::is_floating_point_v<T> ? 2 : std::is_signed_v<T> ? 1 : 0, sizeof(T));
  } else if constexpr (kMaybe<T>) {
    return mix(type_hash<std::remove_cvref_t<decltype(*std::declval<T>().value)>>(), "maybe");
  } else if constexpr (std::is_same_v<T, std::string>) {
    return mix(0, "text");
  } else if constexpr (std::is_same_v<T, core::Duration>) {
    return mix(0, "duration");
  } else {
    static_assert(
        requires { typename T::signatures; }, "a field of a type that has no name here");
    return mix(0, "actor");  // CAF itself compares the messages that an actor accepts
  }
}

}  // namespace fields

/// FNV-1a of the names of all messages and the types of their fields, in order. Two processes with equal values understand each other's
/// messages. Limit: two swapped fields of one type give the same value.
[[nodiscard]] std::uint64_t message_fingerprint();

}  // namespace troupe::actors
