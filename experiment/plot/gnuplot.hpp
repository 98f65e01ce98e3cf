/// Draws figures with the program gnuplot. Blocks until gnuplot ends, or until it is told to stop.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "experiment/plot/figure.hpp"

namespace troupe::plot {

/// Writes `parts` in order into directory/name, as nn::replace_file does.
using Publish = std::function<core::Result<void>(const std::string& directory, const std::string& name,
                                                 std::span<const std::span<const std::byte>> parts)>;

struct Output {
  std::string directory;             // created if missing
  std::vector<std::string> formats;  // of formats()
  bool keep = false;                 // keep scripts and data in <directory>/gnuplot
  Publish publish{};                 // how a whole picture gets into the directory; null: it is written there in place
  std::stop_token stop{};            // ends gnuplot
};

[[nodiscard]] const std::vector<std::string>& formats();  // "png", "svg"

/// Whether these are the bytes of a picture from its first to its last: gnuplot succeeds also where it could not write all of one.
[[nodiscard]] bool is_whole(const std::string& format, std::string_view bytes);

/// The whole script of a figure. `output`: directory of the pictures.
[[nodiscard]] std::string script_of(const Figure& figure, const std::vector<std::string>& formats,
                                    const std::string& output);

/// Paths of the pictures, figure by figure: each was drawn whole before it got its name. Errc::config: gnuplot is not installed. Errc::io,
/// no_space: files. Errc::internal: gnuplot refused a script; the message includes gnuplot's. Errc::interrupted: told to stop. Whatever
/// happens, the directory for temporary files is left as it was.
[[nodiscard]] core::Result<std::vector<std::string>> render(const std::vector<Figure>& figures, const Output& output);

}  // namespace troupe::plot
