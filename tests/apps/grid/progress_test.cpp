#include "apps/grid/progress.hpp"

#include <cstdio>

#include <gtest/gtest.h>

namespace troupe::grid {
namespace {

TEST(GridProgressTest, TheLastLineOfProgressSaysHowFarARunIs) {
  const std::string begun = "demo: bsp on glyphs, mlp (5 parameters), 2 workers\nrun directory runs/demo\n";
  EXPECT_EQ(progress_of(""), "");
  EXPECT_EQ(progress_of(begun), "");
  const auto trains = begun + "epoch 1/3   50 %  step 50  100 images/s  loss 0.0431  lr 0.1  0:15 to the end\n";
  EXPECT_EQ(progress_of(trains), "epoch 1/3, 50 %, loss 0.0431");
  EXPECT_EQ(progress_of(trains + "warning: the disk is slow\n"), "epoch 1/3, 50 %, loss 0.0431");
  EXPECT_EQ(progress_of(trains + "epoch 1/3  loss 0.0400, test 0.05  accuracy 97.80 %  100 images/s  1:07\n"),
            "epoch 1/3, loss 0.0400, test 0.05, accuracy 97.80 %");
  EXPECT_EQ(progress_of("epoch 2/3  100 %  step 5"), "epoch 2/3, 100 %");
}

/// An exception would end the grid, and that kills the runs under way without a checkpoint.
TEST(GridProgressTest, LinesThatCannotBeWrittenAreDropped) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  std::setvbuf(full, nullptr, _IONBF, 0);  // as standard error
  Progress progress(ProgressMode::plain, full);
  EXPECT_NO_THROW(progress.line("stopping: runs under way save a checkpoint"));
  std::fclose(full);
}

}  // namespace
}  // namespace troupe::grid
