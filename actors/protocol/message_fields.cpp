#include "actors/protocol/message_fields.hpp"

namespace troupe::actors {

namespace {

/// What is said between processes beside messages, and what is meant by them (transport/exchange/calls.hpp, what a wire rounds): a number to
/// raise whenever a process of the day before would take it for something else.
constexpr std::uint64_t kConventions = 2;

using Ids = caf::id_block::troupe;

template <caf::type_id_t kOffset>
using MessageAt = typename caf::type_by_id<Ids::begin + kOffset>::type;

template <caf::type_id_t... kOffset>
constexpr std::uint64_t hash_all(std::integer_sequence<caf::type_id_t, kOffset...>) {
  static_assert((fields::Inspected<MessageAt<kOffset>> && ...), "a message is an aggregate that inspect() knows");
  static_assert((wholly_visited<MessageAt<kOffset>>() && ...));
  auto hash = fields::mix(0, kConventions);
  ((hash = fields::mix(hash, fields::type_hash<MessageAt<kOffset>>())), ...);
  return hash;
}

// By these two a node of any version is recognised, and refused in words: they stay as they are.
static_assert(fields::type_hash<NodeQuery>() == 17297112865214009034U &&
                  fields::type_hash<NodeFacts>() == 9176448861853245061U,
              "a node of another version could not say its version any more");

constexpr auto kFingerprint = hash_all(std::make_integer_sequence<caf::type_id_t, Ids::end - Ids::begin>{});

}  // namespace

std::uint64_t message_fingerprint() { return kFingerprint; }

}  // namespace troupe::actors
