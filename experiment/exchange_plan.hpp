/// How the members of one session exchange vectors: which members share memory, which endpoint connects the others, what is rounded for
/// transfer, and the order of sums. Chosen once, before the first step, and written into plan.json (docs/formats/plan.md): a replay needs
/// it for the same bits. Plain values.
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
#include "nn/backend.hpp"
#include "nn/layout.hpp"
#include "transport/exchange/collectives/choice.hpp"
#include "transport/exchange/packing.hpp"

namespace troupe::experiment {

struct ExchangePlan {
  std::string endpoint{};                        // its name; empty: all members are at one site and exchange in place
  std::optional<core::HalfKind> wire{};          // of calls between sites, and of asa16; none: float32
  bool rounds_masters = false;                   // rounds every vector and ignores core::Rounding: as version 0.1 did
  std::vector<std::uint32_t> worker_sites{};     // by rank
  std::vector<std::uint32_t> server_sites{};     // by shard
  std::vector<std::uint32_t> site_hosts{};       // by site, numbers that identify hosts; empty: all on one host
  bool packed = false;                           // arenas are sent without their padding
  bool on_devices = false;                       // vectors are in device memory where a site can (vector_memory.hpp)
  bool mapped = false;                           // and processes of one host map each other's
  std::vector<exchange::Choice> reductions{{}};  // by length as sent; ascending, the last one for all greater lengths
  std::vector<exchange::Timing> measured{};      // the measurements behind the choice; empty: none

  [[nodiscard]] bool in_place() const noexcept { return endpoint.empty(); }
  /// Whether two sites are on one host; whether all are, and whether another one is on this site's.
  [[nodiscard]] bool on_one_host(std::uint32_t site, std::uint32_t other) const;
  [[nodiscard]] bool on_one_host() const;
  [[nodiscard]] bool has_neighbours(std::uint32_t site) const;
  [[nodiscard]] exchange::Algorithm reduction(std::size_t floats, core::Rounding rounding = core::Rounding::both) const;
  /// The largest usable gradient that the wire format can represent.
  [[nodiscard]] float largest_usable() const noexcept;
  /// Whether a vector is rounded on its way there, or back.
  [[nodiscard]] bool rounds_there(core::Rounding rounding) const noexcept {
    return wire && (rounds_masters || rounding == core::Rounding::both);
  }
  [[nodiscard]] bool rounds_back(core::Rounding rounding) const noexcept {
    return wire && (rounds_masters || rounding != core::Rounding::none);
  }
  /// The format of asa16.
  [[nodiscard]] core::HalfKind half() const noexcept { return wire.value_or(core::HalfKind::fp16); }
  bool operator==(const ExchangePlan&) const = default;
};

/// The floats of such arenas that are sent where a plan says `packed`.
[[nodiscard]] std::shared_ptr<const exchange::Packing> packing_of(const nn::Layout& layout);

/// The version of the arithmetic: it grows when the same choices give other numbers.
///   1   version 0.1: a 16-bit wire rounds every vector; bsp with combine = "weights" averages x itself
///   2   a 16-bit wire rounds only differences; bsp averages the steps made from the common x
///   3   workers that step together tell their programs one position; a parameter without a gradient on all workers is not stepped;
///       a resume takes one worker's optimizer state where all must be equal, and of servers all but the average whatever train.ema is now;
///       without train.ema it goes on from what was trained
inline constexpr int kArithmetic = 3;
inline constexpr int kRoundArithmetic = 3;   // rounds, and missing gradients
inline constexpr int kResumeArithmetic = 3;  // what members take over from a checkpoint (state/start_state.hpp)

/// plan.json: all choices of a session that its numbers depend on.
struct RunPlan {
  nn::Plan backend;
  ExchangePlan exchange{};
  int arithmetic = kArithmetic;
};

/// The backend's object with the key "exchange" added; in place: unchanged. Equal plans have equal text.
[[nodiscard]] std::string to_json(const RunPlan& plan);
/// Parses to_json()'s text; texts of older programs lack the key. Errc::corrupt, naming `origin` and the field.
[[nodiscard]] core::Result<RunPlan> parse_plan(std::string_view text, const std::string& origin);

/// The text of one plan alone, for other sites; empty where all members exchange in place.
[[nodiscard]] std::string to_json(const ExchangePlan& plan);
[[nodiscard]] core::Result<ExchangePlan> parse_exchange(std::string_view text, const std::string& origin);

}  // namespace troupe::experiment
