/// Labels of several runs in one picture: what tells runs of one name apart. Reads config.toml of runs that have the same name.
#pragma once

#include <string>
#include <vector>

#include "experiment/plot/run_record.hpp"

namespace troupe::plot {

/// "easgd_tau=4" of "runs/20260102-030405-easgd_tau=4".
[[nodiscard]] std::string label_of(const std::string& directory);

/// Makes all labels different. Runs of one label get the strategy, if theirs differ, and the only option that differs, if there is one:
/// "mnist (bsp)", "mnist (easgd, tau=4)". Those that are still equal get their time in front, then a number behind.
void tell_apart(std::vector<RunRecord>& runs, const std::vector<std::string>& directories);

/// `label` as a part of a file's name: without blanks, brackets and slashes.
[[nodiscard]] std::string file_part(const std::string& label);

}  // namespace troupe::plot
