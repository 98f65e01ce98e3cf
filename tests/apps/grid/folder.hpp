/// The setting of tests of grids: a directory and a small configuration. One thread.
#pragma once

#include <string_view>

#include "tests/folder.hpp"

namespace troupe::grid {

using tests::Folder;

inline constexpr std::string_view kSmallBase =
    "[model]\nname = \"mlp\"\nwidths = [8]\n[data]\nname = \"glyphs\"\n[strategy]\nname = \"easgd\"\n";

}  // namespace troupe::grid
