#include "apps/launch/evaluator_output.hpp"

#include <fmt/format.h>

#include "apps/output.hpp"

namespace troupe::apps {

void EvaluatorOutput::line(const std::string& text) {
  if (!shown_) return;
  const std::scoped_lock lock(mutex_);
  if (!holds_) return tell(fmt::format("evaluator: {}\n", text));
  if (held_.size() == kMostHeld) held_.erase(held_.begin());
  held_.push_back(text);
}

void EvaluatorOutput::hold() {
  const std::scoped_lock lock(mutex_);
  holds_ = true;
}

void EvaluatorOutput::release() {
  const std::scoped_lock lock(mutex_);
  holds_ = false;
  for (const auto& text : held_) tell(fmt::format("evaluator: {}\n", text));
  held_.clear();
}

}  // namespace troupe::apps
