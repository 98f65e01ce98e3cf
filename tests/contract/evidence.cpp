#include "tests/contract/evidence.hpp"

namespace troupe::contract {

using namespace strategies;

namespace {

/// The spacing of floats of this size is 1/16: adding kCoarse to a number and subtracting it again rounds the number to sixteenths.
constexpr float kCoarse = 786432;
/// state ← state + g²; x stays unchanged (lr = 0).
constexpr core::OptimizerStep kSquare{.kind = core::OptimizerKind::adagrad, .lr = 0, .epsilon = 1};

void note(WorkerActions& then, Shards shards) { then.apply(optimize(kUnmoved, kScratch, kError, kSquare), shards); }

}  // namespace

float unit_of(float value) noexcept {
  const volatile float coarse = value + kCoarse;  // volatile: not folded away
  return coarse - kCoarse;
}

std::vector<Slot> with_evidence(std::vector<Slot> slots) {
  slots.insert(slots.end(), {kScratch, kUnmoved, kError, kUnit});
  return slots;
}

void begin_evidence(ServerActions& then) {
  then.apply(copy(server_state(0), kCenter));
  then.apply(fill(server_state(1), kCoarse));
  then.apply(axpy(server_state(0), 1, server_state(1)));
  then.apply(axpy(server_state(0), -1, server_state(1)));
  then.apply(copy(kCenter, server_state(0)));
}

void begin_evidence(WorkerActions& then) {
  then.apply(fill(kUnmoved, 0));
  then.apply(fill(kError, 0));
}

void unit_is_of(WorkerActions& then, Version version, Shards shard) {
  then.apply(scale(kUnit, 1 / static_cast<float>(version)), shard);
}

void unit_is_here(WorkerActions& then) {
  then.apply(fill(kScratch, kCoarse));
  then.apply(axpy(kUnit, 1, kScratch));
  then.apply(axpy(kUnit, -1, kScratch));
}

void fill_with(WorkerActions& then, Slot slot, double times, Shards shards) {
  then.apply(copy(slot, kUnit), shards);
  then.apply(scale(slot, static_cast<float>(times)), shards);
}

void fill_unit(WorkerActions& then, Slot slot, Shards shards) {
  then.apply(copy(slot, kUnit), shards);
  then.apply(axpy(slot, 1, kError), shards);
}

void expect(WorkerActions& then, Slot slot, double times, Shards shards) {
  then.apply(copy(kScratch, slot), shards);
  then.apply(axpy(kScratch, static_cast<float>(-times), kUnit), shards);
  note(then, shards);
}

void expect_unit(WorkerActions& then, Slot slot, Shards shards) {
  then.apply(difference(kScratch, slot, kUnit), shards);
  then.apply(axpy(kScratch, -1, kError), shards);
  note(then, shards);
}

void expect_same(WorkerActions& then, Slot slot, Slot other, Shards shards) {
  then.apply(difference(kScratch, slot, other), shards);
  note(then, shards);
}

}  // namespace troupe::contract
