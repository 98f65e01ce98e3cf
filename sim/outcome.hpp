/// What a simulated run came to. Values.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "sim/worker.hpp"

namespace troupe::sim {

struct Outcome {
  std::vector<WorkerAccount> workers;  ///< by rank
  std::uint32_t epochs = 0;            ///< finished
  Duration trained{0};                 ///< virtual; pauses between epochs left out
  Duration wall{0};                    ///< virtual, all of it
  std::uint64_t events = 0;
  std::uint64_t network_bytes = 0;  ///< between hosts
  double alone_images_per_s = 0;    ///< of worker 0, if it never exchanged anything: steps alone
  double ideal_images_per_s = 0;    ///< of all workers, if they never exchanged anything
  double busiest_card = 0;          ///< share of `trained` that the busiest network card was busy one way
  double busiest_server = 0;        ///< share of `trained` that the busiest server worked

  [[nodiscard]] std::uint64_t samples() const noexcept;
  [[nodiscard]] double images_per_s() const noexcept;
};

}  // namespace troupe::sim
