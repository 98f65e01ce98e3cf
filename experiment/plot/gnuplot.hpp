/// Draws figures with the program gnuplot. Blocks until gnuplot ends.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "experiment/plot/figure.hpp"

namespace troupe::plot {

struct Output {
  std::string directory;             // created if missing
  std::vector<std::string> formats;  // of formats()
  bool keep = false;                 // keep scripts and data in <directory>/gnuplot
};

[[nodiscard]] const std::vector<std::string>& formats();  // "png", "svg"

/// The whole script of a figure. `output`: directory of the pictures.
[[nodiscard]] std::string script_of(const Figure& figure, const std::vector<std::string>& formats,
                                    const std::string& output);

/// Paths of the pictures, figure by figure. Errc::config: gnuplot is not installed. Errc::io, no_space: files. Errc::internal: gnuplot
/// refused a script; the message includes gnuplot's.
[[nodiscard]] core::Result<std::vector<std::string>> render(const std::vector<Figure>& figures, const Output& output);

}  // namespace troupe::plot
