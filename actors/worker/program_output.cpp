#include "actors/worker/program_output.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "core/text/plural.hpp"

namespace troupe::actors {

namespace {

constexpr core::Duration kPause = std::chrono::seconds(1);  // without a line: the flood is over

}  // namespace

void ProgramOutput::to(const RecorderActor& recorder, const WorkerActor& worker) {
  const std::scoped_lock lock(mutex_);
  recorder_ = recorder;
  worker_ = worker;
  for (auto& note : kept_) caf::send_as(caf::actor_cast<caf::actor>(worker_), recorder_, std::move(note));
  kept_.clear();
}

void ProgramOutput::close() {
  const std::scoped_lock lock(mutex_);
  if (closed_) return;
  closed_ = true;  // nothing that comes later is heard by the recorder of a run that has ended
  tell_left_out();
  recorder_ = RecorderActor{};
  worker_ = WorkerActor{};
}

void ProgramOutput::line(const std::string& line) {
  const std::scoped_lock lock(mutex_);
  if (const auto now = clock_.now(); !closed_ && !bucket_.take(now)) {
    ++left_out_;
    dropped_at_ = now;
    return;
  }
  tell_left_out();
  tell(fmt::format("{}: {}", worker_name_, line));
}

void ProgramOutput::tell_left_out_if_quiet() {
  const std::scoped_lock lock(mutex_);
  if (!closed_ && clock_.now() - dropped_at_ > kPause) tell_left_out();
}

void ProgramOutput::tell(std::string text) {
  Note note{.level = Note::Level::info, .text = std::move(text), .of_program = true};
  if (closed_)
    std::fputs((note.text + "\n").c_str(), stderr);
  else if (recorder_)
    caf::send_as(caf::actor_cast<caf::actor>(worker_), recorder_, std::move(note));
  else
    kept_.push_back(std::move(note));
}

void ProgramOutput::tell_left_out() {
  if (const auto count = std::exchange(left_out_, 0); count > 0)
    tell(fmt::format("{} of {}'s program {} left out: it prints more than {} a second", core::counted(count, "line"),
                     worker_name_, count == 1 ? "is" : "are", kProgramLinesPerSecond));
}

}  // namespace troupe::actors
