// A real node and a real coordinator, over TLS. A hostile member of their run sends arbitrary messages to the coordinator, the recorder and
// the centre. The run continues with the other member.
#include <thread>

#include <fmt/format.h>

#include "actors/control/network.hpp"
#include "actors/deployment/nodes.hpp"
#include "tests/hostile/budget.hpp"
#include "tests/nodes/nodes_fixture.hpp"
#include "tests/transport/tcp/certificates.hpp"
#include "tests/wait.hpp"
#include "transport/completion_queue.hpp"
#include "transport/registry/endpoint_registry.hpp"

namespace troupe::hostile {
namespace {

using namespace actors;
using nodes::Process;
using transport::testing::good_certificate;

class HostileMembers : public nodes::NodesFixture {};

/// A fake node: it accepts all orders, and its worker does nothing. The test sends messages in its name.
struct FakeMember {
  caf::actor_system& system;
  std::string address;  // of its data endpoint
  std::mutex mutex{};
  std::optional<SiteDirectory> actors{};
  std::string secret{};
  std::vector<std::string> addresses{};

  WorkerActor::behavior_type worker(WorkerActor::pointer self) {
    return {[](const Prepare&) -> caf::result<Prepared, ReplicaFacts> { return caf::sec::unexpected_message; },
            [](const ReplicaStart&) { return ReplicaLoaded{}; },
            [](const actors::ActorDirectory&) {},
            [](const BatchReady&, const BorrowedBatch&) {},
            [](const StepOrder&) {},
            [](const StepEnd&) {},
            [](const ShardAnswer&) {},
            [](const CollectiveOffer&, const BorrowedView&) {},
            [](const CollectiveDone&) {},
            [](const CollectiveEnded&) {},
            [](const PeerMessage&, const BorrowedView&) {},
            [](const PeerCredit&) {},
            [](const SnapshotOrder&, const BorrowedView&) -> caf::result<SnapshotTaken> {
              return caf::sec::unexpected_message;
            },
            [](const DeadlineReached&) {},
            [](const Dismissal&) { return Dismissed{}; },
            [](const UpdatesOrder&) { return Updates{~std::uint64_t{0}}; },
            [](const SettleOrder&) { return Settled{}; },
            [](const StateOrder&) {
              return MemberState{std::string(1000, '\xff'), ~std::uint64_t{0}, {{77, -1}}, {}};
            },
            [](const PeerMessageCountsOrder&) { return PeerMessageCounts{.weight = -1}; },
            [](const MembershipNews&) {},
            [](const TransferNews&) {},
            [](const Tick&) {},
            [self](const Halt&) { self->quit(); }};
  }
  SiteActor::behavior_type site(SiteActor::pointer self) {
    return {
        [](const SiteOrder&) { return SiteOpened{}; },
        [](const CompileOrder&) { return SiteReady{}; },
        [this, self](const SiteAddresses& all) -> caf::result<SiteReady, SiteMembers> {
          const std::lock_guard lock(mutex);
          addresses = all.texts;
          SiteMembers members;
          members.workers.push_back(self->spawn<caf::linked>([this](WorkerActor::pointer w) { return worker(w); }));
          members.loaders.push_back(self->spawn<caf::linked>([](LoaderActor::pointer l) -> LoaderActor::behavior_type {
            return {[](const actors::ActorDirectory&) {}, [](const LeaseGrant&) {}, [](const BatchReturn&) {},
                    [l](const Halt&) { l->quit(); }};
          }));
          return {SiteReady{}, members};
        },
        [this](const SiteDirectory& told) {
          const std::lock_guard lock(mutex);
          actors = told;
          return SiteBegun{};
        },
        [](const MeasureOrder& order) {
          return Measured{std::vector<double>(order.floats.size() * order.algorithms.size(), 1), {}, {}};
        },
        [self](const Halt&) { self->quit(); }};
  }
  NodeActor::behavior_type node(NodeActor::pointer self) {
    return {[](const NodeQuery&) {
              NodeFacts facts = own_facts(actors::spoken_version(TROUPE_TEST_VERSION), "127.0.0.1");
              facts.endpoints = {"tcp"};
              return facts;
            },
            [](const GpuQuery&) { return GpuReport{}; },
            [this, self](const SiteOrder& order) -> caf::result<SiteOpened, OpenedSite> {
              {
                const std::lock_guard lock(mutex);
                secret = order.secret;
              }
              return {SiteOpened{.address = address},
                      OpenedSite{self->spawn<caf::linked>([this](SiteActor::pointer s) { return site(s); })}};
            }};
  }
};

TEST_F(HostileMembers, ALyingMemberIsLostAndTheOthersGoOn) {
  Dice dice("HostileMembers");
  start_nodes(1, good_certificate());
  const NetworkOptions options{.tls = good_certificate()};
  NetworkConfig config(options);
  caf::actor_system system(config);
  auto network = Network::create(system, options).value();
  core::SteadyClock clock;
  const auto queue = transport::CompletionQueue::create(clock).value();
  auto endpoint =
      transport::make_endpoint(
          "tcp", {.name = "hostile", .completions = queue, .tcp = {.listen = "127.0.0.1:0", .tls = good_certificate()}})
          .value();
  FakeMember fake{.system = system, .address = endpoint->address().text};
  const auto actor = system.spawn([&fake](NodeActor::pointer self) { return fake.node(self); });
  const auto port = network->publish(actor, {"127.0.0.1", 0}).value();
  // Runs however the test ends: an actor system waits for its actors.
  const std::shared_ptr<void> leave(nullptr, [&](void*) {
    endpoint->close();
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  });

  // Two workers: one at the real node, one at the fake one. The run lasts until the attack is over, however late that begins.
  auto command = train(with({"strategy.name=easgd", "cluster.workers=2", "exchange.endpoint=tcp",
                             "cluster.synthetic_step_ms=15", "run.epochs=100000"}));
  for (auto& argument : command)
    if (argument == names()) argument += fmt::format(",127.0.0.1:{}", port);
  Process run(command);
  ASSERT_TRUE(run.says("go over tcp")) << run.err();
  std::optional<SiteDirectory> actors{};
  const bool ended_or_known = tests::eventually([&] {
    const std::lock_guard lock(fake.mutex);
    actors = fake.actors;
    return actors || !run.runs();
  });
  ASSERT_TRUE(ended_or_known && actors) << run.err();

  // The data plane: the member is admitted as its own site, and sends arbitrary data.
  const auto center = endpoint->connect({fake.addresses[0]});
  const auto count = messages(7);
  caf::scoped_actor self(system);
  std::vector<std::vector<std::byte>> kept;
  for (std::uint64_t said = 0; said < count && run.runs(); ++said) {
    switch (dice.below(7)) {
      case 0:
        self->send(actors->coordinator, LeaseRequest{dice.number<std::uint32_t>(), dice.number<std::uint32_t>()});
        break;
      case 1: {
        WorkerProgress progress{.worker = static_cast<std::uint32_t>(dice.below(3)),
                                .steps = dice.number<std::uint64_t>(),
                                .samples = dice.number<std::uint64_t>(),
                                .loss = dice.finite(),
                                .loss_sum = dice.finite(),
                                .wait_s = dice.finite()};
        progress.staleness.resize(dice.below(2000), dice.bits());
        progress.waits.resize(dice.below(2000), dice.finite());
        progress.done.resize(dice.below(2000), dice.bits());
        if (dice.one_in(4))
          self->send(actors->recorder, progress);
        else
          self->send(actors->coordinator, progress);
        break;
      }
      case 2: {
        std::uint32_t site = dice.number<std::uint32_t>();
        if (site == 2) site = 1;  // its own site: an error there is accepted, and ends the run
        self->send(actors->coordinator, RunError{static_cast<core::Errc>(dice.number<std::uint32_t>()),
                                                 std::string(dice.below(5000), '\n'), site});
        break;
      }
      case 3:
        self->send(actors->coordinator,
                   SiteLost{static_cast<std::uint32_t>(dice.below(2)), dice.number<std::uint32_t>(), "\x1b[2J"});
        break;
      case 4: {
        JournalRecords records;
        records.kinds.resize(dice.below(20), dice.number<std::uint16_t>());
        records.sizes.resize(dice.below(20), dice.number<std::uint32_t>());
        records.bytes.resize(dice.below(3000), static_cast<char>(dice.bits()));
        self->send(actors->recorder, records);
        break;
      }
      case 5: self->send(caf::actor_cast<caf::actor>(actors->recorder), LeaseRequest{1, 1}); break;
      default: {
        if (!center || said < count / 2) break;
        kept.emplace_back(dice.below(600), static_cast<std::byte>(dice.bits()));
        (void)endpoint->send(center->peer,
                             transport::make_tag({.run = 1,
                                                  .exchange = 0,
                                                  .kind = static_cast<transport::TagKind>(dice.below(7)),
                                                  .shard = transport::kMaxShard}),
                             {kept.back().data(), kept.back().size()});
        if (kept.size() > 400) {
          endpoint->close();  // frees the lent memory
          kept.clear();
        }
      }
    }
    if (said % 256 == 0) std::this_thread::yield();
  }
  EXPECT_TRUE(run.says("epoch 2/")) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130) << run.err();
  EXPECT_GE(summary(run)["samples"], 2400) << run.err();  // whatever the hostile member reports of itself
  // Refused message by message, or lost for a transfer that does not fit: whichever comes first.
  EXPECT_TRUE(run.err().find("was refused") != std::string::npos || run.err().find(" is lost: ") != std::string::npos)
      << run.err();
  EXPECT_EQ(run.err().find('\x1b'), std::string::npos);
  EXPECT_LT(nodes::count(run.err(), "\n"), 100U) << run.err();
}

}  // namespace
}  // namespace troupe::hostile
