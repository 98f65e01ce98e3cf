#include "experiment/state/local_rank.hpp"

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

TEST(LocalRank, CountsTheWorkersOfAHostThatNameTheSameDevice) {
  Settings settings;
  settings.cluster.devices = {"cuda", "cpu", "cuda"};  // then again: cuda, cpu, cuda
  const auto ranks = [&](const ExchangePlan& exchange) {
    std::vector<int> all;
    for (std::uint32_t worker = 0; worker < 6; ++worker) all.push_back(local_rank(settings, exchange, worker));
    return all;
  };
  EXPECT_EQ(ranks({}), (std::vector<int>{0, 0, 1, 2, 1, 3}));
  ExchangePlan apart;
  apart.worker_sites = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(ranks(apart), (std::vector<int>{0, 0, 1, 2, 1, 3})) << "without numbers of hosts all sites are on one";
  apart.site_hosts = {7, 7, 7, 8, 8, 8};
  EXPECT_EQ(ranks(apart), (std::vector<int>{0, 0, 1, 0, 0, 1}));
}

}  // namespace
}  // namespace troupe::experiment
