/// Requests that may take long because bytes have to move: no deadline for the answer, one for silence (silence.hpp). A proxy that ends
/// (actors/protocol/proxy.hpp) answers with the reason at once. Another actor of this process that ends answers what is in its mailbox, but not
/// the requests that it has begun: their askers wait for the silence, or monitor it (answers.hpp).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <caf/all.hpp>

#include "actors/requests/silence.hpp"

namespace troupe::actors {

/// For a request that something else ends: every use states what.
inline constexpr auto kNoDeadline = caf::infinite;

/// Calls `answered` with the answer, or `refused` with the error: caf::sec::request_timeout when no source of `sources` has moved for
/// `silence`. Exactly one of them is called, once; a later answer is ignored. `silences` belongs to the actor and lives as long.
template <class... Answers, class Self, class Member, class Answered, class... Messages>
// NOLINTNEXTLINE(performance-unnecessary-value-param): `sources` is moved on, which clang-tidy does not see in a template
void ask_until_silent(Self self, SilenceDeadlines& silences, std::vector<SilenceDeadlines::Source> sources,
                      core::Duration silence, const Member& member, Answered answered,
                      const std::function<void(const caf::error&)>& refused, Messages&&... messages) {
  const auto wait = silences.begin(std::move(sources), silence, [refused] { refused(caf::sec::request_timeout); });
  // The answer ends it, or the member's end; the wait above ends after `silence`.
  self->request(member, kNoDeadline, std::forward<Messages>(messages)...)
      .then(
          [&silences, wait, answered = std::move(answered)](const Answers&... answers) {
            if (silences.end(wait)) answered(answers...);
          },
          [&silences, wait, refused](const caf::error& error) {
            if (silences.end(wait)) refused(error);
          });
}

}  // namespace troupe::actors
