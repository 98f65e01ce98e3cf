#include "experiment/directory/run_records.hpp"

#include <gtest/gtest.h>

namespace troupe::experiment {
namespace {

constexpr data::Lease kLease{7, 2, 640, 64, 2.25};

TEST(RunRecords, RoundTripAndRefuseOthers) {
  const LeaseGranted granted{3, kLease};
  const auto lease = encode(granted);
  EXPECT_EQ(*decode_lease(lease), granted);
  auto slower = granted;
  slower.lease.lr_factor = 0.125;
  const auto with_factor = encode(slower);
  EXPECT_EQ(*decode_lease(with_factor), slower);
  EXPECT_NE(with_factor.kind, lease.kind);
  const SnapshotRecord taken{true, 4, strategies::server_state(1), 0x0123456789abcdef};
  const auto snapshot = encode(taken);
  EXPECT_EQ(*decode_snapshot(snapshot), taken);
  const PlanRecord plan{0xfedcba9876543210};
  EXPECT_EQ(*decode_plan(encode(plan)), plan);
  EXPECT_EQ(*decode_absent(encode(AbsentRecord{5})), AbsentRecord{5});
  const LostRecord lost{2, true, {{7, 2, 640, 64}, {9, 2, 1200, 13}}};
  EXPECT_EQ(*decode_lost(encode(lost)), lost);
  const LostRecord idle{1, false, {}};
  EXPECT_EQ(*decode_lost(encode(idle)), idle);
  auto short_of_a_lease = encode(lost);
  short_of_a_lease.payload.resize(short_of_a_lease.payload.size() - 28);
  EXPECT_EQ(decode_lost(short_of_a_lease).error().code, core::Errc::corrupt);
  EXPECT_FALSE(decode_lost(encode(AbsentRecord{5})));
  EXPECT_FALSE(decode_absent(encode(plan)));
  EXPECT_FALSE(decode_plan(lease));
  EXPECT_FALSE(decode_lease(snapshot));
  EXPECT_FALSE(decode_snapshot(lease));
  auto cut = snapshot;
  cut.payload.pop_back();
  EXPECT_EQ(decode_snapshot(cut).error().code, core::Errc::corrupt);
  auto unknown = snapshot;
  unknown.payload[5] = std::byte{200};  // the slot's kind
  EXPECT_FALSE(decode_snapshot(unknown));
}

}  // namespace
}  // namespace troupe::experiment
