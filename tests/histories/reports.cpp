#include "tests/histories/reports.hpp"

#include <cmath>
#include <set>

#include <fmt/format.h>

namespace troupe::histories {

std::vector<std::string> check_reports(const std::vector<Reported>& sessions, std::uint32_t epochs) {
  std::vector<std::string> wrong;
  std::set<std::uint32_t> course;
  for (std::size_t k = 0; k < sessions.size(); ++k) {
    const auto& session = sessions[k];
    std::erase_if(course, [&](std::uint32_t epoch) { return epoch > session.from; });
    std::uint64_t steps = 0;
    for (const auto& line : session.epochs) {
      const auto name = fmt::format("metrics.jsonl, session {}, epoch {}", k + 1, line.epoch);
      if (!course.insert(line.epoch).second) wrong.push_back(name + ": it was reported before");
      if (line.steps < steps) wrong.push_back(name + fmt::format(": {} steps after {}", line.steps, steps));
      steps = line.steps;
      if (!line.train_loss || !(*line.train_loss > 0) || !std::isfinite(*line.train_loss))
        wrong.push_back(
            name + fmt::format(": training loss {}", line.train_loss ? fmt::format("{:g}", *line.train_loss) : "null"));
      if (!line.test_loss || !(*line.test_loss > 0)) wrong.push_back(name + ": no test loss");
    }
  }
  for (std::uint32_t epoch = 1; epoch <= epochs; ++epoch)
    if (!course.contains(epoch)) wrong.push_back(fmt::format("metrics.jsonl: epoch {} is not reported", epoch));
  if (!course.empty() && *course.rbegin() > epochs)
    wrong.push_back(fmt::format("metrics.jsonl: epoch {} is reported, and {} are done", *course.rbegin(), epochs));
  return wrong;
}

}  // namespace troupe::histories
