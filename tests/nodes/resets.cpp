#include "tests/nodes/resets.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "tests/nodes/process.hpp"

namespace troupe::nodes {

namespace {

std::vector<std::string> ss(const std::vector<std::string>& within, const std::vector<std::string>& words) {
  auto command = within;
  command.emplace_back("ss");
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

}  // namespace

std::size_t reset_data(pid_t process, const std::vector<std::uint16_t>& control,
                       const std::vector<std::string>& within) {
  Process list(ss(within, {"-Htnp", "state", "established"}));
  if (list.wait() != 0) return 0;
  const auto controls = [&](const std::string& end) {
    return std::ranges::any_of(control, [&](auto port) { return end.ends_with(fmt::format(":{}", port)); });
  };
  std::size_t reset = 0;
  std::istringstream lines(list.out());
  for (std::string line; std::getline(lines, line);) {
    if (line.find(fmt::format("pid={},", process)) == std::string::npos) continue;
    std::istringstream words(line);
    std::string queued, unsent, here, there;
    words >> queued >> unsent >> here >> there;
    if (controls(here) || controls(there)) continue;
    Process kill(ss(within, {"-KHtn", "src", here, "dst", there}));
    if (kill.wait() == 0 && !kill.out().empty()) ++reset;
  }
  return reset;
}

}  // namespace troupe::nodes
