// What workers have written to each other is waited for before anybody looks at what they hold: it is a part of the model.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"

namespace troupe::actors {

/// `absent`: somebody was lost meanwhile.
void CoordinatorBody::await_letters(const Next& next, const Next& absent) {
  if (!setup_.needs.peers) return next();
  ask_letters(next, absent, {letters_.arrived(), setup_.clock->now()});
}

/// `last`: what had arrived when the last one did, and when that was. A worker answers at the latest when it looks after itself, every
/// second, whatever is still on its way.
void CoordinatorBody::ask_letters(const Next& next, const Next& absent, const Arrivals& last) {
  if (ended_ || gives_way()) return;
  const auto left = std::make_shared<std::size_t>(members());  // 0: what still comes is of no interest
  for (const auto worker : member_list()) {
    ask<Letters>(
        site_of(worker), member_silence(), company_.workers[worker],
        [this, left, worker, next, absent, last](const Letters& letters) {
          if (*left == 0 || ended_) return;
          if (const auto refusal = MemberRules::check(letters, company_.workers.size())) {
            *left = 0;
            lose(worker, "it says of its letters what cannot be: " + *refusal);
            if (!ended_) absent();
            return;
          }
          if (is_member(worker)) letters_.heard(worker, letters);
          if (--*left == 0) judge_letters(next, absent, last);
        },
        [this, left, worker, absent](const caf::error& error) {
          if (std::exchange(*left, 0) > 0) missed(worker, error, absent);
        },
        LettersOrder{letters_.expected_by(worker)});
  }
}

void CoordinatorBody::judge_letters(const Next& next, const Next& absent, const Arrivals& last) {
  const auto missing = letters_.under_way();
  if (!missing) {
    if (auto whole = letters_.balance(); !whole) return fail(whole.error().code, whole.error().message);
    return next();
  }
  const Arrivals now{letters_.arrived(), setup_.clock->now()};
  if (now.letters > last.letters) return ask_letters(next, absent, now);
  const double patience = setup_.settings->exchange.deadline_s;
  if (core::seconds(now.at - std::max(last.at, moved_at_)) < patience) return ask_letters(next, absent, last);
  fail(core::Errc::timeout,
       fmt::format("what worker {} has written to worker {} has not arrived, and nothing has moved "
                   "for exchange.deadline_s = {:g}",
                   missing->first, missing->second, patience));
}

}  // namespace troupe::actors
