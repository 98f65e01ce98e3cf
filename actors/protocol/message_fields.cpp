#include "actors/protocol/message_fields.hpp"

namespace troupe::actors {

namespace {

/// What processes exchange besides messages, and its meaning (transport/exchange/rpc.hpp, what a wire rounds). Increment it whenever an
/// older build would misread the data.
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

// A node of any version is recognised by these two messages and refused with a clear error: they must not change.
static_assert(fields::type_hash<NodeQuery>() == 17297112865214009034U &&
                  fields::type_hash<NodeFacts>() == 9176448861853245061U,
              "a node of another version could not say its version any more");

constexpr auto kFingerprint = hash_all(std::make_integer_sequence<caf::type_id_t, Ids::end - Ids::begin>{});

}  // namespace

std::uint64_t message_fingerprint() { return kFingerprint; }

}  // namespace troupe::actors
