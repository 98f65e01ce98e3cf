/// What a simulated run came to. Values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiment/reports.hpp"
#include "sim/gradients/gradients.hpp"
#include "sim/worker.hpp"

namespace troupe::sim {

/// What the company learned, where gradients were computed.
struct Learned {
  double train_loss = 0;  ///< mean over the last epoch's steps
  experiment::Score test{};
  std::string model_hash;
  std::vector<EpochPoint> epochs;
};

struct Outcome {
  std::optional<Learned> learned;
  std::vector<WorkerAccount> workers;  ///< by rank
  std::uint32_t epochs = 0;            ///< finished
  Duration trained{0};                 ///< virtual; pauses between epochs left out
  Duration wall{0};                    ///< virtual, all of it
  std::uint64_t events = 0;
  std::uint64_t network_bytes = 0;  ///< between hosts
  std::uint64_t lost = 0;           ///< workers, once for each time
  std::uint64_t returned = 0;
  double weight = 0;              ///< shares of the model that are left, where workers hold such
  double lost_weight = 0;         ///< of lost members of strategies with letters, and of letters to them
  double alone_images_per_s = 0;  ///< of worker 0, if it never exchanged anything: steps alone
  double ideal_images_per_s = 0;  ///< of all workers, if they never exchanged anything
  double busiest_card = 0;        ///< share of `trained` that the busiest network card was busy one way
  double busiest_server = 0;      ///< share of `trained` that the busiest server worked

  [[nodiscard]] std::uint64_t samples() const noexcept;
  [[nodiscard]] double images_per_s() const noexcept;
  [[nodiscard]] double speedup() const noexcept { return images_per_s() / alone_images_per_s; }
  [[nodiscard]] double efficiency() const noexcept { return images_per_s() / ideal_images_per_s; }
};

/// The figures of a real run's summary; its names are the caller's to fill in. A worker's row of waits is left empty in companies of
/// more than kMostInMatrix members: it would have a column for each of them.
inline constexpr std::size_t kMostInMatrix = 512;
[[nodiscard]] experiment::Summary summary_of(const Outcome& outcome, const Plan& plan);

/// One worker's waiting for one cause, over its whole life.
struct WaitEntry {
  strategies::WorkerId waiter = 0;
  strategies::Cause cause{};
  Duration time{0};
};
/// The longest waits of the company, longest first, at most `most`.
[[nodiscard]] std::vector<WaitEntry> longest_waits(const Outcome& outcome, std::size_t most);

}  // namespace troupe::sim
