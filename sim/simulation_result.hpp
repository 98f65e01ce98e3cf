/// The result of a simulated run. Values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/reports.hpp"
#include "sim/exchange/gradients.hpp"
#include "sim/worker.hpp"

namespace troupe::sim {

/// Training result, where gradients were computed.
struct Learned {
  double train_loss = 0;  ///< mean over the last epoch's steps
  experiment::Score test{};
  std::string model_hash;
  std::vector<EpochPoint> epochs;
};

struct SimulationResult {
  std::optional<Learned> learned;
  std::vector<WorkerAccount> workers;  ///< by rank
  std::uint32_t epochs = 0;            ///< finished
  std::string stopped_by{};            ///< as experiment::Summary::stopped_by
  Duration trained{0};                 ///< virtual, without pauses between epochs
  Duration wall{0};                    ///< virtual, with pauses
  std::uint64_t events = 0;
  std::uint64_t network_bytes = 0;  ///< between hosts
  std::uint64_t lost = 0;           ///< workers; each loss counts
  std::uint64_t returned = 0;
  double weight = 0;              ///< sum of the living workers' shares of the model
  double lost_weight = 0;         ///< strategies with peer messages: of lost members and of messages to them
  double alone_images_per_s = 0;  ///< of worker 0 without any exchange
  double ideal_images_per_s = 0;  ///< of all workers without any exchange
  double busiest_card =
      0;  ///< share of `trained` that the busiest network card was busy in one direction, with collectives
  double busiest_server = 0;  ///< share of `trained` that the busiest server worked

  [[nodiscard]] std::uint64_t samples() const noexcept;
  [[nodiscard]] double images_per_s() const noexcept;
  [[nodiscard]] double speedup() const noexcept { return images_per_s() / alone_images_per_s; }
  [[nodiscard]] double efficiency() const noexcept { return images_per_s() / ideal_images_per_s; }
};

/// The figures of a real run's summary. The caller fills in the names. With more than kMostInMatrix members a worker's row of waits stays
/// empty: it would have one column per member.
inline constexpr std::size_t kMostInMatrix = 512;
[[nodiscard]] experiment::Summary summary_of(const SimulationResult& result, const SimulatedRun& run);

/// One worker's total wait for one cause.
struct WaitEntry {
  strategies::WorkerId waiter = 0;
  strategies::Cause cause{};
  Duration time{0};
};
/// The longest waits of the run, longest first, at most `most`.
[[nodiscard]] std::vector<WaitEntry> longest_waits(const SimulationResult& result, std::size_t most);

}  // namespace troupe::sim
