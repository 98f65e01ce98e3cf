/// What the program that evaluates prints. Its lines go to standard error at once, but not while the run's console writes there: then they wait
/// for the run's end. Thread-safe.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace troupe::apps {

class EvaluatorOutput {
 public:
  /// `shown` = false: with --quiet nothing is printed.
  explicit EvaluatorOutput(bool shown) noexcept : shown_(shown) {}
  ~EvaluatorOutput() { release(); }
  EvaluatorOutput(const EvaluatorOutput&) = delete;
  EvaluatorOutput& operator=(const EvaluatorOutput&) = delete;

  void line(const std::string& text);
  /// From now on lines wait.
  void hold();
  /// Prints what has waited.
  void release();

 private:
  static constexpr std::size_t kMostHeld = 1000;  // lines; the newest

  const bool shown_;
  std::mutex mutex_;  // guards the others
  bool holds_ = false;
  std::vector<std::string> held_;
};

}  // namespace troupe::apps
