/// Forecasts of runs, computed one after the other on a thread of their own, and kept for a while. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "service/forecast/run_forecast.hpp"

namespace troupe::service {

class Forecasts {
 public:
  static constexpr std::size_t kMostKept = 64, kMostWaiting = 16;
  /// A forecast that is older is computed again, if the run has written more.
  static constexpr std::chrono::seconds kFresh{10};

  explicit Forecasts(std::string directory, const ForecastLimits& limits = {});
  ~Forecasts();
  Forecasts(const Forecasts&) = delete;
  Forecasts& operator=(const Forecasts&) = delete;

  struct Found {
    std::shared_ptr<const core::Result<nlohmann::ordered_json>>
        result;            // null: it is being computed for the first time
    bool pending = false;  // a newer one is being computed
  };
  /// Does not wait. Errc::timeout: kMostWaiting others wait already.
  [[nodiscard]] core::Result<Found> ask(const ForecastQuestion& question);

  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Kept {
    std::shared_ptr<const core::Result<nlohmann::ordered_json>> result{};
    Clock::time_point computed{}, asked{};
    bool waits = false;
  };
  void compute(const std::stop_token& stop);
  void forget_oldest();

  const std::string directory_;
  const ForecastLimits limits_;
  std::mutex mutex_;
  std::condition_variable_any work_;
  std::map<ForecastQuestion, Kept> kept_;
  std::deque<ForecastQuestion> waiting_;
  std::jthread thread_;  // begins with the first question
};

}  // namespace troupe::service
