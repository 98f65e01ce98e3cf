// Every event in every state of the coordinator: where it goes. Each row is a state, each column an event. A cell is the state after the
// event; "=": the same state, and the coordinator has asked for something; ".": nothing that shows. The rows "training": a lease is under
// way; none is; worker 1 is lost; the strategy shares every step.
#include <functional>
#include <map>
#include <sstream>

#include "tests/strategies/coordination/recording_port.hpp"

namespace troupe::coordination {
namespace {

using State = Coordinator::State;
using Pause = Coordinator::Pause;

std::string name(Pause pause) {
  switch (pause) {
    case Pause::first_checkpoint: return "first";
    case Pause::boundary: return "boundary";
    case Pause::admission: return "admit";
    case Pause::segment: return "segment";
    case Pause::emergency: return "emergency";
    case Pause::end: return "end";
  }
  return {};
}

std::string state_of(const Coordinator& coordinator) {
  switch (coordinator.state()) {
    case State::starting: return "starting";
    case State::training: return "training";
    case State::ended: return "ended";
    case State::awaiting_disk: return name(coordinator.pause()) + "/disk";
    case State::performing: break;
  }
  return name(coordinator.pause()) + "/" + coordination::name(coordinator.task());
}

using Make = std::function<std::unique_ptr<TestedRun>()>;

std::unique_ptr<TestedRun> made(Kind kind) { return std::make_unique<TestedRun>(kind); }
std::unique_ptr<TestedRun> training(Kind kind) {
  auto run = made(kind);
  run->to_training();
  run->coordinator->requested(0, 1);  // a lease is granted, and has not ended
  run->port.take_calls();
  return run;
}
/// The first epoch has ended.
std::unique_ptr<TestedRun> epoch_end(Kind kind, Task task) {
  auto run = training(kind);
  run->finish_leases();
  run->train();
  run->until(task);
  return run;
}
std::unique_ptr<TestedRun> last_boundary(Task task) {
  auto run = training(Kind::on_demand);
  run->coordinator->interrupted();
  run->finish_leases();
  run->until(task);
  return run;
}
/// Worker 1 was lost, and a newcomer is there.
std::unique_ptr<TestedRun> admission(Kind kind, Task task) {
  auto run = training(kind);
  run->coordinator->lost(1, "gone");
  run->coordinator->arrived(1);
  run->finish_leases();
  run->train();
  while (run->coordinator->pause() != Pause::admission) run->proceed();
  run->until(task);
  return run;
}
std::unique_ptr<TestedRun> segment(Kind kind, Task task) {
  auto run = training(kind);
  run->coordinator->journal_full();
  run->finish_leases();
  while (run->coordinator->state() == State::training) run->step();
  run->until(task);
  return run;
}
std::unique_ptr<TestedRun> emergency() {
  auto run = training(Kind::shared);
  run->coordinator->requested(1, 1);
  run->finish_leases();
  run->coordinator->lost(1, "gone");
  return run;
}
std::unique_ptr<TestedRun> saves_newest(Task task) {
  auto run = emergency();
  run->answer({.number = run->port.last.number, .newest = 0, .steps = 1});
  if (task == Task::take_state) run->answer({.number = run->port.last.number, .newest = {}, .steps = 1});
  return run;
}
std::unique_ptr<TestedRun> then(std::unique_ptr<TestedRun> run, const std::function<void(TestedRun&)>& change) {
  change(*run);
  return run;
}
void proceed(TestedRun& run) { run.proceed(); }

const std::vector<Make>& states() {
  static const std::vector<Make> states{
      [] { return made(Kind::on_demand); },
      [] { return then(made(Kind::on_demand), [](auto& run) { run.coordinator->begin(run.initial_members); }); },
      [] {
        return then(made(Kind::on_demand), [](auto& run) {
          run.coordinator->begin(run.initial_members);
          run.until(Task::take_state);
        });
      },
      [] {
        return then(made(Kind::on_demand), [](auto& run) {
          run.coordinator->begin(run.initial_members);
          run.until(Task::take_state);
          run.answer();
        });
      },
      [] { return training(Kind::on_demand); },
      [] { return then(training(Kind::on_demand), [](auto& run) { run.finish_leases(); }); },
      [] {
        return then(training(Kind::on_demand), [](auto& run) {
          run.finish_leases();
          run.coordinator->lost(1, "gone");
        });
      },
      [] { return training(Kind::shared); },
      [] { return last_boundary(Task::dismiss_workers); },
      [] { return epoch_end(Kind::peers, Task::await_peer_messages); },
      [] { return epoch_end(Kind::on_demand, Task::take_model); },
      [] { return epoch_end(Kind::on_demand, Task::evaluate); },
      [] { return last_boundary(Task::take_state); },
      [] { return then(last_boundary(Task::take_state), proceed); },
      [] { return admission(Kind::in_step, Task::settle_workers); },
      [] { return admission(Kind::on_demand, Task::take_model); },
      [] { return admission(Kind::on_demand, Task::take_state); },
      [] { return then(admission(Kind::on_demand, Task::take_state), proceed); },
      [] { return admission(Kind::on_demand, Task::prepare_newcomer); },
      [] { return admission(Kind::on_demand, Task::begin_newcomer); },
      [] { return segment(Kind::on_demand, Task::settle_workers); },
      [] { return segment(Kind::peers, Task::await_peer_messages); },
      [] { return segment(Kind::peers, Task::take_model); },
      [] { return segment(Kind::on_demand, Task::take_members); },
      [] { return segment(Kind::on_demand, Task::collect_records); },
      [] { return segment(Kind::on_demand, Task::begin_segment); },
      [] { return last_boundary(Task::collect_records); },
      [] { return emergency(); },
      [] { return saves_newest(Task::take_model); },
      [] { return saves_newest(Task::take_state); },
      [] {
        return then(saves_newest(Task::take_state),
                    [](auto& run) { run.answer({.number = run.port.last.number, .newest = {}, .steps = 1}); });
      },
      [] { return then(training(Kind::on_demand), [](auto& run) {
             run.coordinator->fail({core::Errc::io, "no"});
           }); },
  };
  return states;
}

struct Event {
  const char* name;
  std::function<void(TestedRun&)> happens;
};
const std::vector<Event>& events() {
  static const std::vector<Event> events{
      {"requested", [](TestedRun& run) { run.coordinator->requested(0, 1); }},
      {"progressed", [](TestedRun& run) { run.finish_leases(); }},
      {"lost one", [](TestedRun& run) { run.coordinator->lost(1, "gone"); }},
      {"lost both", [](TestedRun& run) { run.coordinator->lost(1, "gone"), run.coordinator->lost(0, "gone"); }},
      {"disconnected", [](TestedRun& run) { run.coordinator->site_lost(1, 2, "silent"); }},
      {"failed",
       [](TestedRun& run) {
         run.coordinator->member_failed(1, {core::Errc::data, "no"});
       }},
      {"arrived", [](TestedRun& run) { run.coordinator->arrived(1); }},
      {"interrupted", [](TestedRun& run) { run.coordinator->interrupted(); }},
      {"journal full", [](TestedRun& run) { run.coordinator->journal_full(); }},
      {"ticked", [](TestedRun& run) { run.coordinator->ticked(); }},
      {"done", [](TestedRun& run) { run.answer(); }},
      {"again", [](TestedRun& run) { run.answer(TaskOutcome::interrupted); }},
      {"stale", [](TestedRun& run) { run.answer({.number = run.port.last.number - 1, .newest = {}}); }},
      {"written", [](TestedRun& run) { run.write(); }},
      {"not written", [](TestedRun& run) { run.coordinator->written(core::fail(core::Errc::no_space, "full")); }},
  };
  return events;
}

std::string table() {
  std::ostringstream table;
  table << "state";
  for (const auto& event : events()) table << " | " << event.name;
  table << '\n';
  for (const auto& make : states()) {
    table << state_of(*make()->coordinator);
    for (const auto& event : events()) {
      auto run = make();
      const auto before = state_of(*run->coordinator);
      const auto order = run->port.last.number;
      run->port.take_calls();
      event.happens(*run);
      const auto after = state_of(*run->coordinator);
      const bool same = after == before && run->port.last.number == order;
      table << " | " << (!same ? after : run->port.calls.empty() ? "." : "=");
    }
    table << '\n';
  }
  return table.str();
}

constexpr const char* kTable = R"(
state | requested | progressed | lost one | lost both | disconnected | failed | arrived | interrupted | journal full | ticked | done | again | stale | written | not written
starting | . | . | = | ended | . | ended | . | . | . | . | . | . | . | . | .
first/take_model | . | . | = | ended | = | ended | . | . | . | . | first/take_state | first/take_model | . | . | .
first/take_state | . | . | = | ended | = | ended | . | . | . | . | first/disk | first/take_model | . | . | .
first/disk | . | . | = | ended | = | ended | . | . | . | . | . | . | . | training | end/collect_records
training | = | . | = | ended | = | ended | . | . | . | . | . | . | . | . | .
training | = | . | = | ended | = | ended | . | boundary/dismiss_workers | segment/settle_workers | . | . | . | . | . | .
training | = | . | . | ended | . | ended | boundary/take_model | boundary/dismiss_workers | segment/settle_workers | . | . | . | . | . | .
training | = | . | emergency/find_newest | ended | emergency/find_newest | ended | . | . | . | . | . | . | . | . | .
boundary/dismiss_workers | . | . | = | ended | = | ended | . | . | . | . | boundary/take_model | boundary/take_model | . | . | .
boundary/await_peer_messages | . | . | = | ended | = | ended | . | . | . | . | boundary/take_model | boundary/await_peer_messages | . | . | .
boundary/take_model | . | . | = | ended | = | ended | . | . | . | . | boundary/evaluate | boundary/take_model | . | . | .
boundary/evaluate | . | . | = | ended | = | ended | . | . | . | . | training | boundary/take_model | . | . | .
boundary/take_state | . | . | = | ended | = | ended | . | . | . | . | boundary/disk | boundary/take_model | . | . | .
boundary/disk | . | . | = | ended | = | ended | . | . | . | . | . | . | . | end/collect_records | end/collect_records
admit/settle_workers | . | . | . | ended | . | ended | . | . | . | . | admit/take_model | admit/settle_workers | . | . | .
admit/take_model | . | . | . | ended | . | ended | . | . | . | . | admit/take_state | admit/take_model | . | . | .
admit/take_state | . | . | . | ended | . | ended | . | . | . | . | admit/disk | admit/take_model | . | . | .
admit/disk | . | . | . | ended | . | ended | . | . | . | . | . | . | . | admit/prepare_newcomer | training
admit/prepare_newcomer | . | . | . | ended | . | ended | . | boundary/dismiss_workers | . | . | admit/begin_newcomer | admit/take_model | . | . | .
admit/begin_newcomer | . | . | = | ended | = | ended | . | . | . | . | segment/settle_workers | training | . | . | .
segment/settle_workers | . | . | = | ended | = | ended | . | . | . | . | segment/take_members | segment/settle_workers | . | . | .
segment/await_peer_messages | . | . | = | ended | = | ended | . | . | . | . | segment/take_model | segment/settle_workers | . | . | .
segment/take_model | . | . | = | ended | = | ended | . | . | . | . | segment/take_members | segment/settle_workers | . | . | .
segment/take_members | . | . | = | ended | = | ended | . | . | . | . | segment/collect_records | segment/settle_workers | . | . | .
segment/collect_records | . | . | = | ended | = | ended | . | . | . | . | segment/begin_segment | segment/settle_workers | . | . | .
segment/begin_segment | . | . | = | ended | = | ended | . | . | . | . | training | segment/settle_workers | . | . | .
end/collect_records | . | . | = | ended | = | ended | . | . | . | . | ended | ended | . | . | .
emergency/find_newest | . | . | . | ended | . | . | . | . | . | . | ended | emergency/find_newest | . | . | .
emergency/take_model | . | . | . | ended | . | . | . | . | . | . | emergency/find_newest | emergency/find_newest | . | . | .
emergency/take_state | . | . | . | ended | . | . | . | . | . | . | emergency/find_newest | emergency/find_newest | . | . | .
emergency/disk | . | . | . | = | . | . | . | . | . | . | . | . | . | ended | ended
ended | . | . | . | . | . | . | . | . | . | . | . | . | . | . | .
)";

TEST(CoordinatorTable, EveryEventInEveryStateLeadsToTheTablesState) { EXPECT_EQ("\n" + table(), kTable); }

}  // namespace
}  // namespace troupe::coordination
