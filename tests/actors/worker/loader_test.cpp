// A loader whose data set cannot be read: what it reports ends the run with the exit code of the cause. The test plays the coordinator.
#include "actors/worker/loader.hpp"

#include <functional>
#include <memory>
#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "actors/worker/decoder.hpp"
#include "tests/data/numbered_dataset.hpp"

namespace troupe::actors {
namespace {

using ::testing::HasSubstr;
using Reading = std::function<core::Result<std::int32_t>()>;

/// Reads every sample as `reading` says. Streamed: decoders read it.
class UnreadableDataset final : public data::NumberedDataset {
 public:
  UnreadableDataset(Reading reading, bool streamed)
      : NumberedDataset(8, {1, 2, 2}), reading_(std::move(reading)), streamed_(streamed) {}
  [[nodiscard]] core::Result<std::int32_t> read(std::int64_t, std::span<std::uint8_t>) const override {
    return reading_();
  }
  [[nodiscard]] bool streamed() const noexcept override { return streamed_; }

 private:
  Reading reading_;
  bool streamed_;
};

/// The error that a loader of such a data set reports.
RunError error_of(const Reading& reading, bool streamed) {
  constexpr std::chrono::seconds kPatience{60};
  const core::SteadyClock clock;
  SystemConfig config;
  caf::actor_system system{config};
  RunError found;
  {
    caf::scoped_actor self{system};
    const auto preprocess = data::Preprocess::create({}, {1, 2, 2}, {{0}, {1}, {}}).value();
    const auto builder = std::make_shared<const data::BatchBuilder>(
        std::make_shared<UnreadableDataset>(reading, streamed), preprocess, 1, data::Order::sequential);
    const auto decoders = spawn_decoders(system, {.builder = builder, .clock = &clock}, 1);
    EXPECT_EQ(decoders.size(), streamed ? 1u : 0u);
    const auto loads = system.spawn(
        loader, LoaderSetup{.builder = builder, .batch = 2, .batches_ahead = 1, .decoders = decoders, .clock = &clock});
    ActorDirectory actors;
    actors.coordinator = caf::actor_cast<CoordinatorActor>(self);
    actors.workers.push_back(caf::actor_cast<WorkerActor>(self));
    self->send(loads, actors);
    self->receive(
        [&](const LeaseRequest&) {
          self->send(loads, LeaseGrant{{{.count = 2}}, false});
        },
        caf::after(kPatience) >> [] { ADD_FAILURE() << "no lease is asked for"; });
    self->receive([&](const RunError& error) { found = error; },
                  caf::after(kPatience) >> [] { ADD_FAILURE() << "no error is reported"; });
    self->send(loads, Halt{});
    for (const auto& decoder : decoders) self->send_exit(decoder, caf::exit_reason::user_shutdown);
  }
  return found;
}

TEST(LoaderTest, AnErrorKeepsItsCode) {
  for (const auto code : {core::Errc::data, core::Errc::io, core::Errc::out_of_memory})
    for (const bool streamed : {false, true}) {
      const auto error = error_of([code] { return core::fail(code, "x.png: cannot be read"); }, streamed);
      EXPECT_EQ(error.code, code) << streamed;
      EXPECT_THAT(error.text, HasSubstr("x.png: cannot be read"));
    }
}

TEST(LoaderTest, BadAllocIsReportedAsOutOfMemory) {
  for (const bool streamed : {false, true}) {
    const auto error = error_of([]() -> core::Result<std::int32_t> { throw std::bad_alloc(); }, streamed);
    EXPECT_EQ(error.code, core::Errc::out_of_memory) << streamed;
    EXPECT_THAT(error.text, HasSubstr("memory ran out"));
  }
}

}  // namespace
}  // namespace troupe::actors
