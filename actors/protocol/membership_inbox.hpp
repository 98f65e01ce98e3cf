/// News of the membership, which may reach a member before it has heard of the company, and by several ways in any order. What
/// holds is the newest. Plain value; one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "actors/protocol/site_messages.hpp"

namespace troupe::actors {

class MembershipInbox {
 public:
  /// True: it holds from now on. False: newer news are known, or the member has not begun and will hear of it then.
  [[nodiscard]] bool take(const MembershipNews& news);
  /// The member begins with a membership of this epoch. Newer news that came before: they hold from now on.
  [[nodiscard]] std::optional<MembershipNews> begin(std::uint64_t epoch);

 private:
  std::optional<std::uint64_t> epoch_;   // that holds; none: it has not begun
  std::optional<MembershipNews> early_;  // the newest that came before
};

}  // namespace troupe::actors
