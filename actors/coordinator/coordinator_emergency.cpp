// Emergency checkpoint: when members share every step and one is lost, the last step that all others have ended is saved.
#include <fmt/format.h>

#include "actors/coordinator/coordinator_body.hpp"

namespace troupe::actors {

/// REQUIRES Needs::whole_steps, and a remaining member.
void CoordinatorBody::begin_emergency_checkpoint(const std::string& why) {
  emergency_ = why;
  self_->send(actors_.recorder, Note{Note::Level::warning, why});
  setup_.book->pause();
  if (!busy_) look_for_newest();  // else the chain calls gives_way()
}

bool CoordinatorBody::gives_way() {
  if (!in_emergency() || newest_ || ended_) return false;
  look_for_newest();
  return true;
}

/// A message of the lost member may have reached only some of the others: they are at most one step apart.
void CoordinatorBody::look_for_newest() {
  if (ended_) return;
  if (training_) train_s_ += core::seconds(setup_.clock->now() - training_since_);
  training_ = false;
  busy_ = true;
  newest_.reset();
  const auto left = std::make_shared<std::uint32_t>(members());
  const auto most = std::make_shared<std::uint64_t>(0);
  const Next next = [this, left, most] {
    if (--*left > 0 || ended_) return;
    if (!newest_) return end_emergency("no survivor reported its last step");
    when_written([this, most] { save_newest(*most); });
  };
  for (const auto worker : member_list()) {
    ask<Updates>(
        site_of(worker), member_silence(), actors_.workers[worker],
        [this, worker, most, next](const Updates& updates) {
          if (is_member(worker) && rules_.may_have(worker, updates.steps) && (!newest_ || updates.steps > *most)) {
            newest_ = worker;
            *most = updates.steps;
          }
          next();
        },
        [this, worker, next](const caf::error& error) { missed(worker, error, next); }, UpdatesOrder{});
  }
}

/// `steps`: of this session, which newest_ has ended. If newest_ takes another step or is lost meanwhile, the search starts again.
void CoordinatorBody::save_newest(std::uint64_t steps) {
  const bool has_checkpoint = setup_.resumed || !newest_checkpoint_.empty();
  if (has_checkpoint && !save_failed_ && setup_.before.steps + steps * setup_.started.workers <= saved_at_step_)
    return end_emergency("the newest checkpoint has all that they did");
  const auto is_still = [this, steps] { return is_member(*newest_) && updates_ == steps; };
  const auto state = std::make_shared<Checkpoint>();
  const Next keep = [this, steps, state] {
    if (auto back = setup_.book->rewind(steps); !back) return end_emergency(back.error().message);
    progress_.level(steps, static_cast<std::uint64_t>(setup_.settings->batch(0)));
    for (std::uint32_t worker = 0; worker < setup_.started.workers; ++worker) steps_.ended(worker, steps);
    const auto checkpoint = book_keeping();
    checkpoint->vectors = std::move(state->vectors);
    checkpoint->vectors.emplace("", *model_);
    writes_emergency_checkpoint_ = true;
    write(checkpoint, false);
    when_written([this, checkpoint] {
      end_emergency(save_failed_ ? "what they held could not be saved"
                                 : fmt::format("step {}, the last that all had ended, is saved", checkpoint->step));
    });
  };
  take_model([this, state, is_still, keep] {
    if (!is_still()) return look_for_newest();
    take_state(state_prefixes(), state, [this, is_still, keep] { is_still() ? keep() : look_for_newest(); });
  });
}

void CoordinatorBody::end_emergency(const std::string& what) {
  fail(core::Errc::peer_lost, fmt::format("{}; {}; {}", emergency_, what, how_to_go_on()));
}

}  // namespace troupe::actors
