/// A rule's state as one line of text, for its state() and restore(): "read_clock=3;summed=1;". Numbers come back bit for bit. Pure
/// functions.
///
///     std::string SspWorker::state() const { return write_state({{"read_clock", read_clock_}, {"summed", summed_}}); }
///     core::Result<void> SspWorker::restore(const std::string& text) {
///       return read_state(text, {{"read_clock", &read_clock_}, {"summed", &summed_}});
///     }
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.hpp"
#include "strategies/host/types.hpp"

namespace troupe::strategies {

/// The types of a rule's state. Text holds the state of a rule inside another rule.
using StateValue =
    std::variant<bool, std::uint64_t, double, std::string, std::vector<WorkerId>, std::map<std::uint32_t, Step>>;
/// A named value to write, and a named target to read into.
struct StateField {
  std::string_view name;
  StateValue value;
};
struct StateTarget {
  std::string_view name;
  std::variant<bool*, std::uint64_t*, double*, std::string*, std::vector<WorkerId>*, std::map<std::uint32_t, Step>*> to;
};

[[nodiscard]] std::string write_state(std::initializer_list<StateField> fields);
/// The same fields in the same order. If `text` is not from write_state() with these fields: Errc::corrupt, and no field is
/// changed.
[[nodiscard]] core::Result<void> read_state(std::string_view text, std::initializer_list<StateTarget> fields);

}  // namespace troupe::strategies
