#include "actors/worker/program_output.hpp"

#include <cstdio>

namespace troupe::actors {

void ProgramOutput::to(const RecorderActor& recorder, const WorkerActor& worker) {
  const std::scoped_lock lock(mutex_);
  recorder_ = recorder;
  worker_ = worker;
  for (auto& note : kept_) caf::send_as(caf::actor_cast<caf::actor>(worker_), recorder_, std::move(note));
  kept_.clear();
}

void ProgramOutput::close() {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  recorder_ = RecorderActor{};
  worker_ = WorkerActor{};
}

void ProgramOutput::line(std::string line) {
  Note note{Note::Level::info, std::move(line)};
  const std::scoped_lock lock(mutex_);
  if (closed_)
    std::fputs((note.text + "\n").c_str(), stderr);
  else if (recorder_)
    caf::send_as(caf::actor_cast<caf::actor>(worker_), recorder_, std::move(note));
  else if (kept_.size() < kMostKept)
    kept_.push_back(std::move(note));
}

}  // namespace troupe::actors
