// Every message arrives as it was sent, field by field, and so do the waiting times of a reply. The test finds the fields by structured
// bindings (fields.hpp), independently of the encoder: a field that the encoder omits differs.
#include <cmath>

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <gtest/gtest.h>

#include "actors/run/assembly.hpp"
#include "core/random.hpp"
#include "experiment/directory/run_records.hpp"
#include "tests/actors/protocol/fields.hpp"

namespace troupe::actors {
namespace {

/// Draws values of any type that a message has.
class Draw {
 public:
  Draw(std::uint64_t seed, caf::actor_system& system) : random_(seed, core::Purpose::strategy, 0) {
    for (int i = 0; i < 2; ++i) actors_.push_back(system.spawn([] { return caf::behavior{[](int) {}}; }));
  }
  ~Draw() {
    for (const auto& actor : actors_) caf::anon_send_exit(actor, caf::exit_reason::kill);
  }
  Draw(const Draw&) = delete;
  Draw& operator=(const Draw&) = delete;

  template <class T>
  void fill(T& x) {
    if constexpr (std::is_same_v<T, bool>) {
      x = random_.below(2) == 1;
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> value{};
      fill(value);
      x = static_cast<T>(value);
    } else if constexpr (std::is_integral_v<T>) {
      x = static_cast<T>(std::uint64_t{random_.bits()} << 32 | random_.bits());
    } else if constexpr (std::is_floating_point_v<T>) {
      x = static_cast<T>(std::ldexp(random_.uniform() - 0.5, static_cast<int>(random_.below(200)) - 100));
    } else if constexpr (std::is_same_v<T, std::string>) {
      x.resize(random_.below(40));
      for (char& c : x) c = static_cast<char>(random_.below(256));
    } else if constexpr (std::is_same_v<T, core::Duration>) {
      x = core::Duration{random_.bits()};
    } else if constexpr (fields::kVector<T>) {
      x.resize(random_.below(4));
      for (auto& element : x) fill(element);
    } else if constexpr (fields::kOptional<T>) {
      x.reset();
      if (random_.below(2) == 1) fill(x.emplace());
    } else if constexpr (requires { typename T::signatures; }) {
      if (const auto which = random_.below(3); which < 2) x = caf::actor_cast<T>(actors_[which]);
    } else {
      std::apply([this](auto&... field) { (fill(field), ...); }, tests::fields_of(x));
    }
  }

 private:
  core::Random random_;
  std::vector<caf::actor> actors_;
};

class Messages : public ::testing::Test {
 protected:
  template <class T>
  [[nodiscard]] T arrived(T sent) {
    std::vector<char> bytes;
    caf::binary_serializer sink(system_, bytes);
    EXPECT_FALSE(sink(sent)) << typeid(T).name();
    T here{};
    caf::binary_deserializer source(system_, bytes);
    EXPECT_FALSE(source(here)) << typeid(T).name();
    EXPECT_EQ(source.remaining(), 0U) << typeid(T).name();
    return here;
  }

  template <class T>
  void expect_every_field_arrives(Draw& draw) {
    T sent{};
    draw.fill(sent);
    EXPECT_TRUE(arrived(sent) == sent) << typeid(T).name();
  }

  SystemConfig config_;
  caf::actor_system system_{config_};
};

/// Loops over the whole type-id block, so a new message cannot be forgotten.
TEST_F(Messages, EveryFieldArrivesAsItWasSent) {
  using Ids = caf::id_block::troupe;
  const auto check = [this]<caf::type_id_t... kOffset>(Draw & draw, std::integer_sequence<caf::type_id_t, kOffset...>) {
    (expect_every_field_arrives<typename caf::type_by_id<Ids::begin + kOffset>::type>(draw), ...);
  };
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Draw draw(seed, system_);
    check(draw, std::make_integer_sequence<caf::type_id_t, Ids::end - Ids::begin>{});
    if (HasFailure()) return;
  }
}

TEST_F(Messages, ReplyCarriesTheCauseOfItsWait) {
  strategies::ShardReply reply{.request = 1, .worker = 2, .shard = 3, .exchange = 4};
  reply.queued = core::Duration{8};
  reply.held = core::Duration{9};
  reply.last = 0;  // worker 0, not "none"
  const auto here = arrived(ShardAnswer{reply}).reply;
  EXPECT_EQ(here.queued, reply.queued);
  EXPECT_EQ(here.held, reply.held);
  EXPECT_EQ(here.last, reply.last);
  reply.last.reset();
  EXPECT_EQ(arrived(ShardAnswer{reply}).reply.last, std::nullopt);
}

TEST_F(Messages, FieldCountsAreThoseOfTheStructs) {
  struct Four {
    int number;
    std::optional<strategies::WorkerId> may_be;
    std::vector<std::string> texts;
    strategies::Request nested;
  };
  static_assert(kFieldCount<Four> == 4);
  static_assert(kFieldCount<Tick> == 0 && kFieldCount<PeerCredit> == 1);
  static_assert(kFieldCount<strategies::ShardReply> == 12 && visited_count<strategies::ShardReply>() == 12);
  Four four{};
  EXPECT_EQ(&std::get<3>(tests::fields_of(four)), &four.nested);
}

TEST_F(Messages, TheVersionChangesWithTheMessages) {
  EXPECT_EQ(spoken_version("1.2.3"), spoken_version("1.2.3"));
  EXPECT_TRUE(spoken_version("1.2.3").starts_with("1.2.3, protocol "));
  static_assert(fields::type_hash<RunError>() != fields::type_hash<Vacancy>());
  static_assert(fields::type_hash<std::vector<double>>() != fields::type_hash<std::vector<float>>());
}

}  // namespace
}  // namespace troupe::actors
