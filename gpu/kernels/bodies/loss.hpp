/// The loss in two launches: a block for each row, then one block that adds up the rows. The formulas are those of cpu/layers/loss.cpp; sums
/// run in a fixed order, but not in the CPU's, so that the last bits may differ. Block bodies (columns.hpp says what that is). Thread rule:
/// plain values.
#pragma once

#include "gpu/kernels/bodies/functions.hpp"
#include "gpu/kernels/kernel.hpp"

namespace troupe::gpu {

inline constexpr int kLossThreads = 128;
inline constexpr int kLossParts = 8;  // partial results that every thread adds up by itself
inline constexpr std::int64_t kTopClasses = 5;

template <class T>
struct LossRowsBody {
  static constexpr int kThreads = kLossThreads;
  static constexpr int kPhases = 5;
  struct Shared {
    float largest[kThreads];
    float exponentials[kThreads];
    std::int32_t ahead[kThreads];  // classes that rank before the label's
    double sum[kThreads];          // Σ z (cross-entropy), or the loss (squared error)
  };

  nn::Loss loss;
  const float* z;
  const std::int32_t* labels;
  const std::int64_t* samples;
  T* gradient;  // null: none
  LossSums* row_sums;
  std::int64_t rows;
  std::int64_t classes;
  double smoothing;
  float weight;
  const float* loss_scale;  // null: 1

  [[nodiscard]] std::int64_t blocks() const { return rows; }
  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t row, int thread, Shared& shared) const {
    const std::int32_t label = labels[row];
    const bool counted = row < *samples && label >= 0 && label < classes;
    if (!counted) {
      if (phase == 0) leave_out(row, thread, label);
      return;
    }
    const float* const mine = z + row * classes;
    if (phase == 0) look(mine, label, thread, shared);
    if (phase == 1) fold_look(thread, shared);
    if (phase == 2) exponentiate(mine, thread, shared);
    if (phase == 3) fold_exponentials(thread, shared);
    if (phase == 4) finish(row, mine, label, thread, shared);
  }

 private:
  TROUPE_HOST_DEVICE void leave_out(std::int64_t row, int thread, std::int32_t label) const {
    const bool bad = row < *samples && (label < 0 || label >= classes);
    if (thread == 0) row_sums[row] = {0, 0, 0, bad ? row : -1};
    if (gradient == nullptr) return;
    for (std::int64_t c = thread; c < classes; c += kThreads) gradient[row * classes + c] = rounded<T>(0.0f);
  }

  /// "Not greater" ranks NaN first.
  TROUPE_HOST_DEVICE void look(const float* mine, std::int32_t label, int thread, Shared& shared) const {
    const float target = mine[label];
    float largest = mine[0];
    std::int32_t ahead = 0;
    double sum = 0;
    for (std::int64_t c = thread; c < classes; c += kThreads) {
      const float value = mine[c];
      largest = value > largest ? value : largest;
      if (c < label) ahead += target > value ? 0 : 1;
      if (c > label) ahead += target >= value ? 0 : 1;
      if (loss == nn::Loss::squared_error) {
        const float difference = value - (c == label ? 1.0f : 0.0f);
        sum += 0.5 * static_cast<double>(difference) * static_cast<double>(difference);
      } else {
        sum += static_cast<double>(value);
      }
    }
    shared.largest[thread] = largest;
    shared.ahead[thread] = ahead;
    shared.sum[thread] = sum;
  }
  TROUPE_HOST_DEVICE static void fold_look(int thread, Shared& shared) {
    if (thread >= kLossParts) return;
    for (int other = thread + kLossParts; other < kThreads; other += kLossParts) {
      if (shared.largest[other] > shared.largest[thread]) shared.largest[thread] = shared.largest[other];
      shared.ahead[thread] += shared.ahead[other];
      shared.sum[thread] += shared.sum[other];
    }
  }
  [[nodiscard]] TROUPE_HOST_DEVICE static float largest_of(const Shared& shared) {
    float largest = shared.largest[0];
    for (int part = 1; part < kLossParts; ++part) largest = larger(largest, shared.largest[part]);
    return largest;
  }
  TROUPE_HOST_DEVICE void exponentiate(const float* mine, int thread, Shared& shared) const {
    if (loss == nn::Loss::squared_error) return;
    const float largest = largest_of(shared);
    float sum = 0;
    for (std::int64_t c = thread; c < classes; c += kThreads) sum += exp_negative(mine[c] - largest);
    shared.exponentials[thread] = sum;
  }
  TROUPE_HOST_DEVICE void fold_exponentials(int thread, Shared& shared) const {
    if (loss == nn::Loss::squared_error || thread >= kLossParts) return;
    for (int other = thread + kLossParts; other < kThreads; other += kLossParts)
      shared.exponentials[thread] += shared.exponentials[other];
  }
  TROUPE_HOST_DEVICE void finish(std::int64_t row, const float* mine, std::int32_t label, int thread,
                                 const Shared& shared) const {
    const float largest = largest_of(shared);
    float exponentials = 0;
    if (loss != nn::Loss::squared_error)
      for (int part = 0; part < kLossParts; ++part) exponentials += shared.exponentials[part];
    if (thread == 0) row_sums[row] = sums_of(mine[label], largest, exponentials, shared);
    if (gradient == nullptr) return;
    const auto all = static_cast<float>(rows);
    const float scale = loss == nn::Loss::squared_error ? 1.0f / all : 1.0f / (exponentials * all);
    const auto share = static_cast<float>(smoothing / static_cast<double>(classes * rows));
    const float hit = static_cast<float>(1 - smoothing) / all;
    const float factor = loss_scale == nullptr ? weight : weight * *loss_scale;
    for (std::int64_t c = thread; c < classes; c += kThreads) {
      float slope = 0;
      if (loss == nn::Loss::squared_error) {
        slope = (mine[c] - (c == label ? 1.0f : 0.0f)) * scale;
      } else {
        slope = exp_negative(mine[c] - largest) * scale - share;
        if (c == label) slope -= hit;
      }
      gradient[row * classes + c] = rounded<T>(slope * factor);
    }
  }
  [[nodiscard]] TROUPE_HOST_DEVICE LossSums sums_of(float target, float largest, float exponentials,
                                                    const Shared& shared) const {
    std::int64_t ahead = 0;
    double sum = 0;
    for (int part = 0; part < kLossParts; ++part) {
      ahead += shared.ahead[part];
      sum += shared.sum[part];
    }
    LossSums result{sum, 0, 0, -1};
    if (target == target) {
      result.top1 = ahead == 0 ? 1 : 0;
      result.top5 = ahead < kTopClasses && classes >= kTopClasses ? 1 : 0;
    }
    if (loss == nn::Loss::squared_error) return result;
    double smoothed = static_cast<double>(target);
    if (smoothing > 0) smoothed = (1 - smoothing) * smoothed + smoothing * sum / static_cast<double>(classes);
    result.loss = ::log(static_cast<double>(exponentials)) + (static_cast<double>(largest) - smoothed);
    return result;
  }
};

/// LossSums without initial values: shared memory has none.
struct LossParts {
  double loss;
  std::int64_t top1;
  std::int64_t top5;
  std::int64_t bad_label;
};

/// One block.
struct LossTotalBody {
  static constexpr int kThreads = kLossThreads;
  static constexpr int kPhases = 3;
  struct Shared {
    LossParts sums[kThreads];
  };

  const LossSums* row_sums;
  const std::int64_t* samples;
  std::int64_t rows;
  LossSums* sums;

  [[nodiscard]] std::int64_t blocks() const { return 1; }
  TROUPE_HOST_DEVICE void phase(int phase, std::int64_t /*block*/, int thread, Shared& shared) const {
    const std::int64_t counted = smaller(rows, *samples);
    if (phase == 0) {
      LossParts mine{0, 0, 0, -1};
      for (std::int64_t row = thread; row < counted; row += kThreads) add(mine, parts_of(row_sums[row]));
      shared.sums[thread] = mine;
    } else if (phase == 1) {
      if (thread >= kLossParts) return;
      for (int other = thread + kLossParts; other < kThreads; other += kLossParts)
        add(shared.sums[thread], shared.sums[other]);
    } else if (thread == 0) {
      LossParts total = shared.sums[0];
      for (int part = 1; part < kLossParts; ++part) add(total, shared.sums[part]);
      if (counted > 0) total.loss /= static_cast<double>(counted);
      *sums = {total.loss, total.top1, total.top5, total.bad_label};
    }
  }

 private:
  [[nodiscard]] TROUPE_HOST_DEVICE static LossParts parts_of(const LossSums& row) {
    return {row.loss, row.top1, row.top5, row.bad_label};
  }
  TROUPE_HOST_DEVICE static void add(LossParts& to, const LossParts& from) {
    to.loss += from.loss;
    to.top1 += from.top1;
    to.top5 += from.top5;
    const bool earlier = from.bad_label >= 0 && (to.bad_label < 0 || from.bad_label < to.bad_label);
    if (earlier) to.bad_label = from.bad_label;
  }
};

}  // namespace troupe::gpu
