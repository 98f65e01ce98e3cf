#include "actors/helping.hpp"

namespace troupe::actors {

HelpingUnit::~HelpingUnit() {
  if (kept_) to_pool(kept_);
}

void HelpingUnit::exec_later(caf::resumable* job) {
  if (!keeping_) return to_pool(job);
  if (kept_) to_pool(kept_);
  kept_ = job;
}

void HelpingUnit::help() {
  if (!kept_) return;
  auto* const job = std::exchange(kept_, nullptr);
  switch (job->resume(this, 1)) {
    case caf::resumable::resume_later: to_pool(job); break;
    default: caf::intrusive_ptr_release(job);
  }
}

}  // namespace troupe::actors
