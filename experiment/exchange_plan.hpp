/// How the members of one session exchange vectors: which of them share memory, what carries vectors between the others, what is
/// rounded on the way, and in which order sums are formed. Chosen once, before the first step, by whoever puts the company together, and
/// written into plan.json (docs/formats/plan.md): without it nobody could come to the same bits again. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/half.hpp"
#include "transport/exchange/collectives/choice.hpp"
#include "transport/exchange/packing.hpp"
#include "nn/backend.hpp"
#include "nn/layout.hpp"

namespace troupe::experiment {

struct ExchangePlan {
  std::string endpoint{};                // "tcp"; empty: everybody is at one site, and exchanges in place
  std::optional<core::HalfKind> wire{};  // of calls between sites, and of asa16; none: float32
  bool rounds_masters = false;           // it rounds every vector, whatever core::Rounding says: as version 0.1 did
  std::vector<std::uint32_t> worker_sites{};     // by rank
  std::vector<std::uint32_t> server_sites{};     // by shard
  std::vector<std::uint32_t> site_hosts{};       // by site, any numbers that tell hosts apart; empty: all on one
  bool packed = false;                           // arenas travel without their padding
  std::vector<exchange::Choice> reductions{{}};  // of vectors as they travel; ascending, the last one for all lengths
  std::vector<exchange::Timing> measured{};      // that they were chosen by; empty: nothing was

  [[nodiscard]] bool in_place() const noexcept { return endpoint.empty(); }
  [[nodiscard]] exchange::Algorithm reduction(std::size_t floats, core::Rounding rounding = core::Rounding::both) const;
  /// The largest gradient that training has a use for, and its way to the others has a number for.
  [[nodiscard]] float largest_usable() const noexcept;
  /// Whether a vector that travels is rounded on its way there, or back.
  [[nodiscard]] bool rounds_there(core::Rounding rounding) const noexcept {
    return wire && (rounds_masters || rounding == core::Rounding::both);
  }
  [[nodiscard]] bool rounds_back(core::Rounding rounding) const noexcept {
    return wire && (rounds_masters || rounding != core::Rounding::none);
  }
  /// What asa16 rounds to.
  [[nodiscard]] core::HalfKind half() const noexcept { return wire.value_or(core::HalfKind::fp16); }
  bool operator==(const ExchangePlan&) const = default;
};

/// Which floats of arenas laid out like this travel where a plan says `packed`.
[[nodiscard]] std::shared_ptr<const exchange::Packing> packing_of(const nn::Layout& layout);

/// What a session computes, apart from all choices: a number that grows when the same choices come to other numbers.
///   1   version 0.1: a wire of 16 bits rounds every vector; bsp with combine = "weights" averages x itself
///   2   a wire of 16 bits rounds differences alone; bsp averages the steps that were made from the common x
inline constexpr int kArithmetic = 2;

/// plan.json: everything that a session chose and its numbers depend on.
struct RunPlan {
  nn::Plan backend;
  ExchangePlan exchange{};
  int arithmetic = kArithmetic;
};

/// The backend's object with the key "exchange" beside what it chose; in place: as it is. The same plan is always the same text.
[[nodiscard]] std::string to_json(const RunPlan& plan);
/// `text` as to_json() made it, now or in an older program, which had no such key. Errc::corrupt, naming `origin` and the field.
[[nodiscard]] core::Result<RunPlan> parse_plan(std::string_view text, const std::string& origin);

/// One plan's text alone, for sites elsewhere; empty where everything is in place.
[[nodiscard]] std::string to_json(const ExchangePlan& plan);
[[nodiscard]] core::Result<ExchangePlan> parse_exchange(std::string_view text, const std::string& origin);

}  // namespace troupe::experiment
