#include "apps/job_environment.hpp"

#include <map>

#include <gtest/gtest.h>

namespace troupe::apps {
namespace {

std::optional<JobEnvironment> under(const std::map<std::string, std::string>& variables) {
  return job_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(JobEnvironment, RankAndSizeComeFromTheLauncher) {
  const auto mpirun = under({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"SLURM_PROCID", "0"}});
  ASSERT_TRUE(mpirun);
  EXPECT_EQ(mpirun->launcher, "mpirun");
  EXPECT_EQ(mpirun->rank, 3U);
  EXPECT_EQ(mpirun->size, 4U);
  EXPECT_TRUE(under({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  EXPECT_EQ(under({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}})->launcher, "srun");
  EXPECT_EQ(under({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}})->rank, 1U);
}

TEST(JobEnvironment, OneProcessIsNoJob) {
  EXPECT_FALSE(under({}));
  EXPECT_FALSE(under({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}));  // a batch script
  EXPECT_FALSE(under({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}));
  EXPECT_FALSE(under({{"OMPI_COMM_WORLD_SIZE", "4"}}));
  EXPECT_FALSE(under({{"OMPI_COMM_WORLD_SIZE", "four"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  EXPECT_FALSE(under({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "2"}}));
}

}  // namespace
}  // namespace troupe::apps
