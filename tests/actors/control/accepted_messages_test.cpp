// Each message between members that may be in different processes is in exactly one list: those that travel
// (actors/control/accepted_messages.cpp) or those of one process (below). A new message must be added to one of them.
#include "actors/control/accepted_messages.hpp"

#include <set>

#include <gtest/gtest.h>

#include "actors/control/system.hpp"
#include "tests/actors/control/wire_frames.hpp"

namespace troupe::actors {
namespace {

/// Sent within a process only: by a member to itself, between members that share memory, or between coordinator, recorder and launcher.
const std::set<std::string> kLocal{
    "told troupe::actors::StepOrder",        "told troupe::actors::StepEnd",
    "told troupe::actors::ShardAnswer",      "told troupe::actors::CollectiveDone",
    "told troupe::actors::CollectiveEnded",  "told troupe::actors::PeerCredit",
    "told troupe::actors::DeadlineReached",  "told troupe::actors::Tick",
    "told troupe::actors::BatchReturn",      "told troupe::actors::Interrupt",
    "told troupe::actors::JournalFull",      "told troupe::actors::StillEvaluating",
    "told troupe::actors::StillWriting",     "told troupe::actors::Arrived",
    "told troupe::actors::AwaitEnd",         "told troupe::actors::RunStarted",
    "told troupe::actors::SaveRequest",      "told troupe::actors::EpochReport",
    "told troupe::actors::EvaluationReport", "told troupe::actors::MemberReport",
    "told troupe::actors::LedgerReport",     "asked troupe::actors::Finish+troupe::actors::RunEnd",
};

/// A type that exists in one process only has no serial form or no type name (actors/protocol/message_types.hpp).
template <class Part>
constexpr bool kCanTravel = !caf::allowed_unsafe_message_type<Part>::value && requires {
  caf::type_name<Part>::value;
};

class WireLists : public ::testing::Test {
 protected:
  template <class... Signatures>
  void look_at(caf::typed_actor<Signatures...>*) {
    (look_at(Signatures{}), ...);
  }
  /// The entries of kLocal that some member's interface has.
  [[nodiscard]] const std::set<std::string>& met() const { return met_; }

 private:
  template <class... Parts>
  void look_at(caf::typed_mpi<caf::detail::type_list<Parts...>, caf::output_tuple<void>>) {
    expect_listed<Parts...>(MessageUse::notification, "told");
  }
  /// The answer to a message that does not travel does not travel either.
  template <class... Parts, class... Answers>
  void look_at(caf::typed_mpi<caf::detail::type_list<Parts...>, caf::output_tuple<Answers...>>) {
    if (expect_listed<Parts...>(MessageUse::request, "asked"))
      expect_listed<Answers...>(MessageUse::response, "answered");
  }

  /// Returns whether the message travels.
  template <class... Parts>
  bool expect_listed(MessageUse use, const char* how) {
    if constexpr ((kCanTravel<Parts> && ...)) {
      std::string name;
      for (const char* part : {caf::type_name<Parts>::value...}) name.append(name.empty() ? "" : "+").append(part);
      name = std::string(how) + " " + name;
      const auto bytes = testing::content(system_, Parts{}...);
      ValueReader reader(bytes);
      std::size_t stages = 0;
      std::vector<RemoteHandle> actors;
      const bool travels = reader.length(stages) && stages == 0 && is_wire_message(reader, use, actors);
      const bool local = kLocal.contains(name);
      EXPECT_TRUE(travels || local) << name << " is in neither list";
      EXPECT_FALSE(travels && local) << name << " is in both lists";
      if (local) met_.insert(name);
      return travels;
    } else {
      return false;
    }
  }

  SystemConfig config_;
  caf::actor_system system_{config_};
  std::set<std::string> met_;
};

TEST_F(WireLists, EveryMessageIsAcceptedOrLocal) {
  look_at(static_cast<WorkerActor*>(nullptr));
  look_at(static_cast<ServerActor*>(nullptr));
  look_at(static_cast<LoaderActor*>(nullptr));
  look_at(static_cast<CoordinatorActor*>(nullptr));
  look_at(static_cast<RecorderActor*>(nullptr));
  look_at(static_cast<SiteActor*>(nullptr));
  look_at(static_cast<NodeActor*>(nullptr));
  EXPECT_EQ(met(), kLocal) << "what nobody understands any more stands in the list";
}

}  // namespace
}  // namespace troupe::actors
