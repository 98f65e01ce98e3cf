/// The envelope of a call (transport/exchange/rpc.hpp), as it is on the wire. Internal to exchange/ and its tests. Plain values.
///
///     0 magic · 4 type · 5 lend · 6 half · 7 code · 8 id · 12 header_size · 16 floats · 24 rounding · 25 mapped · 26 reserved · 40 header [216]
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/kernels.hpp"
#include "transport/exchange/arenas.hpp"
#include "transport/exchange/on_wire.hpp"
#include "transport/exchange/rpc.hpp"

namespace troupe::exchange {

/// The wire form is the memory form: both ends are little-endian (the program supports no other hosts).
struct Envelope {
  static constexpr std::uint32_t kMagic = 0x32435254;  // "TRC2": the protocol version
  static constexpr std::uint8_t kNoHalf = 0xff;
  /// Shard number in the tags of all envelopes and their vectors: no collective uses it.
  static constexpr std::uint16_t kShard = transport::kMaxShard;

  /// `farewell`: the sender has unmapped the receiver's memory and will not map it again. The receiver must answer with its own farewell.
  enum class Type : std::uint8_t { call, answer, run_error, offer, farewell };

  std::uint32_t magic = kMagic;
  Type type = Type::call;
  Lend lend = Lend::nothing;
  std::uint8_t half = kNoHalf;
  std::uint8_t code = 0;  // of a run_error: core::Errc
  std::uint32_t id = 0;
  std::uint32_t header_size = 0;
  std::uint64_t floats = 0;
  core::Rounding rounding = core::Rounding::both;  // of an answer: `change` where its vector is one
  std::uint8_t mapped = 0;  // of a call: 1 where the vector's place in a mapped arena travels instead of its floats
  std::uint8_t reserved[14] = {};
  char header[kMostHeader] = {};

  [[nodiscard]] std::string_view text() const { return {header, header_size}; }
  void set(std::string_view text) {
    header_size = static_cast<std::uint32_t>(std::min(text.size(), kMostHeader));
    if (header_size > 0) std::memcpy(header, text.data(), header_size);  // an empty text may have no address
  }
  [[nodiscard]] WireFormat format() const {
    return {half == kNoHalf ? std::nullopt : std::optional(static_cast<core::HalfKind>(half)), rounding};
  }
  [[nodiscard]] bool reads() const { return lend == Lend::read || lend == Lend::both; }
  [[nodiscard]] bool writes() const { return lend == Lend::write || lend == Lend::both; }
  /// Of the memory that the callee needs for the vector.
  [[nodiscard]] std::size_t floats_counted() const {
    if (mapped != 0) return 0;
    return format().returns_change() ? 2 * floats : floats;
  }
  [[nodiscard]] bool plausible(std::size_t most_floats) const {
    return magic == kMagic && type <= Type::farewell && lend <= Lend::both && header_size <= kMostHeader &&
           (half == kNoHalf || half <= static_cast<std::uint8_t>(core::HalfKind::bf16)) && floats <= most_floats &&
           (floats == 0 || lend != Lend::nothing) && rounding <= core::Rounding::none &&
           (rounding != core::Rounding::change || lend == Lend::both || type != Type::call) &&
           (type != Type::offer || (lend == Lend::nothing && header_size == sizeof(ArenaPlace))) &&
           (type != Type::farewell || (lend == Lend::nothing && header_size == 0)) &&
           (mapped == 0 ||
            (mapped == 1 && type == Type::call && floats > 0 && !format().rounds_there() && !format().rounds_back())) &&
           code <= static_cast<std::uint8_t>(core::kLastErrc);
  }
};
static_assert(sizeof(Envelope) == 256 && sizeof(ArenaPlace) == kMostHeader);

}  // namespace troupe::exchange
