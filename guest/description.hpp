/// What a program of the user's is: the tensors that it trains, and how it wants to be trained. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "nn/graph.hpp"

namespace troupe::guest {

/// What a HELLO frame says.
struct Introduction {
  std::string token;
  std::vector<nn::GivenTensor> tensors;     // parameters with elements, in the order of their places in the vectors
  std::vector<nn::GivenTensor> statistics;  // running statistics (batch normalisation), the same
  /// For each tensor that the guest named: its number in `tensors` (`statistics`); -1: it has no elements, and no place.
  std::vector<int> places, statistics_places;
  std::string program;         // a fingerprint of what must be equal on all workers; empty: the guest tells none
  bool has_optimizer = false;  // false: the program updates its parameters itself before it says DONE
  bool mirrors = false;        // its values are elsewhere (a GPU): the vectors are copies of them
};
/// What a PLAN frame says: the training that the program describes.
struct TrainingPlan {
  std::int64_t samples = 0;  // of the training data
  std::int64_t batch = 0;    // samples per worker and step
  std::int64_t epochs = 1;
};

/// Errc::data: it is no HELLO of this version of the protocol; the message says what is wrong.
[[nodiscard]] core::Result<Introduction> parse_hello(std::string_view json);
/// Errc::data. A plan has at least one sample, a batch of at least one and at most `samples`, and one epoch or more.
[[nodiscard]] core::Result<TrainingPlan> parse_plan(std::string_view json);

}  // namespace troupe::guest
