/// Membership news of one member. News may arrive before the member's ActorDirectory, over several paths, in any order. The newest epoch
/// holds. A value; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "actors/protocol/site_messages.hpp"

namespace troupe::actors {

class MembershipInbox {
 public:
  /// True: `news` holds from now on. False: newer news are known, or the member has not begun; then begin() returns them.
  [[nodiscard]] bool take(const MembershipNews& news);
  /// The member begins with the membership of this epoch. Returns newer news that arrived earlier; they hold from now on.
  [[nodiscard]] std::optional<MembershipNews> begin(std::uint64_t epoch);

 private:
  std::optional<std::uint64_t> epoch_;   // the epoch that holds; none: the member has not begun
  std::optional<MembershipNews> early_;  // the newest news received before begin()
};

}  // namespace troupe::actors
