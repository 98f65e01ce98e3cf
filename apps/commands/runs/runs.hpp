/// The subcommands of `troupe runs`, one file each beside this one. Thread rule: the main thread.
#pragma once

#include "apps/command.hpp"

namespace troupe::apps {

[[nodiscard]] Command runs_compare();
[[nodiscard]] Command runs_export();
[[nodiscard]] Command runs_list();
[[nodiscard]] Command runs_note();  // tag.cpp
[[nodiscard]] Command runs_rebuild();
[[nodiscard]] Command runs_rm();
[[nodiscard]] Command runs_show();
[[nodiscard]] Command runs_tag();

}  // namespace troupe::apps
