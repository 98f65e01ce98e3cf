/// Draws figures with gnuplot, the program. Blocks until it has ended.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "experiment/plot/figure.hpp"

namespace troupe::plot {

struct Output {
  std::string directory;             // made when missing
  std::vector<std::string> formats;  // of kFormats
  bool keep = false;                 // leave scripts and data in <directory>/gnuplot
};

[[nodiscard]] const std::vector<std::string>& formats();  // "png", "svg"

/// The whole script of a figure: `output` is the directory of the pictures.
[[nodiscard]] std::string script_of(const Figure& figure, const std::vector<std::string>& formats,
                                    const std::string& output);

/// Paths of the pictures, figure by figure. Errc::config: gnuplot is not installed. Errc::io, no_space: files. Errc::internal:
/// gnuplot refused a script; its words are in the message.
[[nodiscard]] core::Result<std::vector<std::string>> render(const std::vector<Figure>& figures, const Output& output);

}  // namespace troupe::plot
