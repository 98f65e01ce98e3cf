#include "cpu/neurons/error_rows.hpp"

#include <array>
#include <cstddef>

namespace troupe::cpu {
namespace {

template <class Through>
void error_rows(core::ConstSpan y, core::Span dy, core::Span sums, const Through& through) {
  constexpr std::size_t kLanes = 16;  // partial sums, which the compiler can keep in vectors
  const std::size_t batch = dy.size() / sums.size();
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const float* const from = y.data() + row * batch;
    float* const to = dy.data() + row * batch;
    std::array<float, kLanes> lanes{};
    std::size_t i = 0;
    for (; i + kLanes <= batch; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        lanes[lane] += to[i + lane] = through(from[i + lane], to[i + lane]);
    float sum = 0;
    for (; i < batch; ++i) sum += to[i] = through(from[i], to[i]);
    for (const float lane : lanes) sum += lane;
    sums[row] = sum;
  }
}

}  // namespace

void error_rows_backward(std::optional<nn::Activation> activation, core::ConstSpan y, core::Span dy, core::Span sums) {
  if (sums.empty()) return;
  if (!activation) return error_rows(y, dy, sums, [](float, float error) { return error; });
  switch (*activation) {
    case nn::Activation::relu:
      return error_rows(y, dy, sums, [](float out, float error) { return out > 0 ? error : 0.0f; });
    case nn::Activation::sigmoid:
      return error_rows(y, dy, sums, [](float out, float error) { return error * out * (1.0f - out); });
    case nn::Activation::tanh:
      return error_rows(y, dy, sums, [](float out, float error) { return error * (1.0f - out * out); });
  }
}

}  // namespace troupe::cpu
