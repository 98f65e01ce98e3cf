#include "experiment/plot/fonts.hpp"

#include <algorithm>
#include <system_error>

#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/io.hpp>
#include <boost/process/pipe.hpp>
#include <boost/process/search_path.hpp>
#include <fmt/format.h>

#include "experiment/plot/figure.hpp"

namespace troupe::plot {
namespace {

namespace bp = boost::process;

constexpr char32_t kLatinEnd = 0x250;  // the font that gnuplot is told to use has all before

/// Joiners, marks of direction, selectors of a variant: they have no picture of their own.
bool is_invisible(char32_t c) {
  return (c >= 0x200B && c <= 0x200F) || c == 0x2060 || (c >= 0xFE00 && c <= 0xFE0F) || (c >= 0xE0000 && c <= 0xE0FFF);
}

bool any_font_has(char32_t character) {
  const auto program = bp::search_path("fc-list");
  if (program.empty()) return false;
  std::error_code error;
  bp::ipstream out;
  bp::child child(program, bp::args({fmt::format(":charset={:x}", static_cast<std::uint32_t>(character)), "family"}),
                  bp::std_in<bp::null, bp::std_out> out, bp::std_err > bp::null, error);
  if (error) return false;
  std::string line;
  bool found = false;
  while (std::getline(out, line)) found = found || !line.empty();
  child.wait(error);
  return found;
}

}  // namespace

bool InstalledFonts::have(char32_t character) {
  if (character < kLatinEnd) return true;
  const auto [known, is_new] = known_.try_emplace(character, false);
  if (is_new) known->second = any_font_has(character);
  return known->second;
}

bool can_draw(Fonts& fonts, std::string_view text) {
  return std::ranges::all_of(code_points(text), [&](char32_t c) { return is_invisible(c) || fonts.have(c); });
}

std::string explanation(const ReplacedName& replaced) {
  return fmt::format("no installed font has all characters of {}: pictures call it \"{}\"", replaced.name,
                     replaced.shown);
}

std::vector<ReplacedName> replace_labels(std::vector<RunRecord>& runs, Fonts& fonts) {
  std::vector<ReplacedName> replaced;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (can_draw(fonts, runs[i].label)) continue;
    replaced.push_back({runs[i].label, fmt::format("run {}", i + 1)});
    runs[i].label = replaced.back().shown;
  }
  return replaced;
}

std::vector<ReplacedName> replace_labels(GridRecord& grid, Fonts& fonts) {
  std::vector<ReplacedName> replaced;
  const auto check = [&](const std::string& name, const std::string& number) {
    if (can_draw(fonts, name)) return;
    if (grid.replaced.emplace(name, number).second) replaced.push_back({name, number});
  };
  check(grid.name, "grid");
  for (std::size_t i = 0; i < grid.series.size(); ++i) check(grid.series[i], fmt::format("configuration {}", i + 1));
  for (const auto& key : grid.keys)
    for (std::size_t i = 0; i < key.values.size(); ++i) check(key.values[i], fmt::format("value {}", i + 1));
  return replaced;
}

}  // namespace troupe::plot
