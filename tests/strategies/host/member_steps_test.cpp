#include "strategies/host/member_steps.hpp"

#include <gtest/gtest.h>

namespace troupe::strategies {
namespace {

constexpr bool kInStep = true;
constexpr bool kOnDemand = false;
const std::vector<WorkerId> kAll{0, 1, 2};
const std::vector<WorkerId> kFirstTwo{0, 1};

TEST(MemberSteps, FoundingMembersStandWhereTheyBegin) {
  const MemberSteps anew({0, 0, 0});
  EXPECT_EQ(anew.of_newcomer(kInStep, kAll), 0U);
  const MemberSteps goes_on({40, 40, 40});
  EXPECT_EQ(goes_on.all(), (std::vector<Step>{40, 40, 40}));
  EXPECT_EQ(goes_on.of_newcomer(kInStep, kFirstTwo), 40U);
}

TEST(MemberSteps, StepsEndedCountFromThere) {
  MemberSteps steps({40, 40, 40});
  for (const auto worker : kAll) steps.ended(worker, 7);
  EXPECT_EQ(steps.of(1), 47U);
  for (const auto worker : kAll) steps.ended(worker, 9);  // a sum, not a difference
  EXPECT_EQ(steps.of(1), 49U);
  EXPECT_EQ(steps.of_newcomer(kInStep, kFirstTwo), 49U);
  EXPECT_EQ(steps.of_newcomer(kOnDemand, kFirstTwo), 49U);
}

TEST(MemberSteps, OnDemandNewcomerBeginsWithTheLeastMember) {
  MemberSteps steps({0, 0, 0});
  steps.ended(0, 12);
  steps.ended(1, 30);
  steps.ended(2, 5);  // lost: not counted
  EXPECT_EQ(steps.of_newcomer(kOnDemand, kFirstTwo), 12U);
}

// Two newcomers of the same moment start at the others' step, one after the other, whatever their predecessors did.
TEST(MemberSteps, NewcomersOfOneMomentBeginAtOneStep) {
  MemberSteps steps({0, 0, 0});
  steps.ended(0, 20);
  steps.ended(1, 3);
  steps.ended(2, 90);
  const auto first = steps.of_newcomer(kInStep, std::vector<WorkerId>{0});
  EXPECT_EQ(first, 20U);
  steps.joined(1, first);
  EXPECT_EQ(steps.of_newcomer(kInStep, kFirstTwo), 20U);
  steps.joined(2, 20);
  EXPECT_EQ(steps.all(), (std::vector<Step>{20, 20, 20}));
  steps.ended(2, 1);  // from its own host
  EXPECT_EQ(steps.of(2), 21U);
}

TEST(MemberSteps, WithoutMembersANewcomerBeginsAtTheBeginning) {
  EXPECT_EQ(newcomer_step(kInStep, {}), 0U);
  EXPECT_EQ(MemberSteps({5, 5}).of_newcomer(kOnDemand, {}), 0U);
}

}  // namespace
}  // namespace troupe::strategies
