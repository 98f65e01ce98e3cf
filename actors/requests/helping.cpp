#include "actors/requests/helping.hpp"

namespace troupe::actors {

HelpingUnit::~HelpingUnit() { leave(); }

void HelpingUnit::exec_later(caf::resumable* job) {
  if (!keeping_) return to_pool(job);
  leave();
  kept_ = job;
  messages_ = 0;
}

void HelpingUnit::leave() {
  if (kept_) to_pool(std::exchange(kept_, nullptr));
}

void HelpingUnit::help() {
  if (!kept_) return;
  auto* const job = std::exchange(kept_, nullptr);
  switch (job->resume(this, messages_)) {
    case caf::resumable::resume_later: to_pool(job); break;
    default: caf::intrusive_ptr_release(job);
  }
}

}  // namespace troupe::actors
