#include "actors/run/assembly.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "actors/protocol/proxy.hpp"
#include "actors/protocol/supervision.hpp"
#include "actors/requests/asking.hpp"
#include "actors/requests/deadlines.hpp"
#include "actors/requests/interruptible.hpp"
#include "data/fingerprint.hpp"
#include "nn/layout.hpp"
#include "nn/program/own_process.hpp"

namespace troupe::actors {

Assembly::Assembly(const SiteContext& context, Launch launch, std::stop_token stop)
    : context_(context),
      spec_(*context.spec),
      launch_(std::move(launch)),
      stop_(std::move(stop)),
      exchange_(exchange_plan(launch_.placement, *spec_.settings)),
      self_(*context.system) {}

Assembly::~Assembly() { halt(); }

core::Result<CoordinatorActor> Assembly::begin(const Beginning& beginning, const report::ConsoleOptions& console) {
  if (auto written = beginning.directory->write_plan(run_plan()); !written) return tl::unexpected(written.error());
  spawn_supervisors(beginning, console);
  begin_sites();
  start_.reset();
  return coordinator_;
}

core::Result<void> Assembly::make_sites(const Beginning& beginning) {
  start_ = std::make_shared<const StartState>(experiment::start_state(spec_, beginning.checkpoint.get()));
  if (launch_.placement.sites() > 1) {
    auto facts = probe(context_, beginning.plan);
    if (!facts) return tl::unexpected(facts.error());
    layout_ = facts->layout;
    made_plan_ = facts->plan;
  }
  if (!launch_.nodes.empty()) {
    auto data = data::fingerprint(spec_.source);
    if (!data) return tl::unexpected(data.error());
    data_ = *data;
  }
  if (auto opened = open_sites(beginning); !opened) return opened;
  if (auto prepared = prepare_sites(); !prepared) return prepared;
  if (auto asked = ask_for_mapping(); !asked) return asked;
  if (auto joined = join_devices(); !joined) return joined;
  auto chosen = choose_reductions(beginning);
  sum_without_mapping();
  return chosen;
}

/// Adds the node's name to an error.
core::Error Assembly::at(const SiteHandle& handle, core::Error error) const {
  if (handle.node)
    error.message =
        fmt::format("node {} ({}): {}", handle.node->name, handle.node->facts.host, one_line(error.message));
  return error;
}

core::Error Assembly::no_answer(const SiteHandle& handle, const std::string& what, const caf::error& error) const {
  if (stop_.stop_requested()) return core::interrupted_early();
  return at(handle, {core::Errc::peer_lost, fmt::format("{}: {}", what, reason_of(*context_.system, error))});
}

SiteOrder Assembly::order_for(const SiteHandle& handle, bool resumed) const {
  return {.version = launch_.version,
          .run = spec_.settings->run.name,
          .config = launch_.config,
          .site = handle.number,
          .workers = launch_.placement.workers_at(handle.number),
          .servers = launch_.placement.servers_at(handle.number),
          .plan = one_plan() ? made_plan_.json : std::string(),
          .layout = layout_->fingerprint(),
          .most_floats = most_floats(spec_, *layout_),
          .exchange = experiment::to_json(exchange_),
          .data = data_,
          .secret = launch_.secret,
          .between_hosts = launch_.between_hosts,
          .resumed = resumed,
          .sites_here = launch_.placement.sites_in(launch_.placement.processes[handle.number])};
}

namespace {

/// The checkpoint for the other sites. That of run.init has no file before the run directory is made.
core::Result<StartPayload> start_payload(const Beginning& beginning) {
  if (!beginning.checkpoint_file.empty()) return read_start(beginning.checkpoint_file);
  return experiment::encode(*beginning.checkpoint).map([](std::vector<std::byte> bytes) {
    return StartPayload{std::make_shared<const std::vector<std::byte>>(std::move(bytes))};
  });
}

}  // namespace

core::Result<void> Assembly::open_sites(const Beginning& beginning) {
  const auto& placement = launch_.placement;
  const bool resumed = beginning.checkpoint != nullptr;
  using Opening = decltype(self_->request(launch_.nodes[0].actor, kOpenDeadline, SiteOrder{}));
  std::vector<std::pair<std::uint32_t, Opening>> asked;
  SiteAddresses addresses;
  addresses.texts.resize(placement.sites());
  for (std::uint32_t site = 0; site < placement.sites(); ++site) {
    auto& handle = sites_.emplace_back(SiteHandle{.number = site});
    if (placement.processes[site] == Placement::kHere) continue;
    handle.node = &launch_.nodes[placement.processes[site] - 1];
    if (!handle.node->actor) continue;  // the rejoin manager looks for it
    handle.asked = context_.system->spawn(node_proxy, handle.node->actor);
    asked.emplace_back(site, self_->request(handle.asked, kOpenDeadline, order_for(handle, resumed)));
  }
  core::Result<void> result;
  for (auto& handle : sites_) {
    if (handle.node || !result) continue;
    SiteSetup setup{.site = handle.number,
                    .workers = placement.workers_at(handle.number),
                    .servers = placement.servers_at(handle.number),
                    .exchange = exchange_,
                    .options = launch_.options,
                    .plan = beginning.plan};
    if (!setup.plan && one_plan() && !made_plan_.json.empty()) setup.plan = made_plan_;  // as the other sites
    if (placement.sites() == 1) {
      for (std::uint32_t w = 0; w < spec_.workers; ++w) setup.workers.push_back(w);
      for (std::uint32_t s = 0; s < spec_.servers; ++s) setup.servers.push_back(s);
    } else {
      setup.most_floats = most_floats(spec_, *layout_);
      setup.fingerprint = layout_->fingerprint();
    }
    if (handle.number == 0 && resumed && !launch_.nodes.empty()) {
      auto file = start_payload(beginning);
      if (!file) return tl::unexpected(std::move(file.error()));
      setup.start = std::move(*file);
    }
    handle.here = std::make_unique<Site>(context_, std::move(setup));
    result = handle.here->open();
    addresses.texts[handle.number] = handle.here->address();
  }
  for (auto& [site, opening] : asked) {
    auto& handle = sites_[site];
    receive(
        opening, stop_,
        [&](const SiteOpened& opened, const OpenedSite& there) {
          if (opened.error.empty()) handle.there = context_.system->spawn(site_proxy, there.site);
          addresses.texts[handle.number] = opened.address;
          if (!opened.error.empty() && result) result = tl::unexpected(at(handle, {opened.code, opened.error}));
        },
        [&](const caf::error& error) {
          if (result) result = tl::unexpected(no_answer(handle, "made no site", error));
        });
  }
  if (!result || placement.sites() == 1) return result;
  for (auto& handle : sites_)
    if (handle.here) handle.here->meet(addresses);
  addresses_ = std::move(addresses);
  return {};
}

/// Whether the site reported all members that the placement gives it.
bool Assembly::is_whole(const SiteHandle& handle) const {
  const auto all = [](const auto& members, std::size_t count) {
    return members.size() == count && std::ranges::all_of(members, [](const auto& member) { return bool(member); });
  };
  const auto workers = launch_.placement.workers_at(handle.number).size();
  return all(handle.members.workers, workers) && all(handle.members.loaders, workers) &&
         all(handle.members.servers, launch_.placement.servers_at(handle.number).size());
}

core::Result<void> Assembly::prepare_sites() {
  using Preparing = decltype(self_->request(SiteActor{}, kNoDeadline, SiteAddresses{}));
  std::vector<std::pair<SiteHandle*, Preparing>> asked;  // each ends when nothing moves for kPrepareSilence
  for (auto& handle : sites_)
    if (handle.there) asked.emplace_back(&handle, self_->request(handle.there, kNoDeadline, addresses_));
  core::Result<void> result;
  for (auto& handle : sites_) {
    if (!handle.here || !result) continue;
    result = handle.here->prepare(start_);
    pinning_.push_back(handle.here->pinning());
    handle.members = handle.here->members();
    if (handle.here->layout()) layout_ = handle.here->layout();
    if (handle.here->plan() && made_plan_.json.empty()) made_plan_ = *handle.here->plan();
  }
  for (auto& [asked_handle, preparing] : asked) {
    SiteHandle* handle = asked_handle;  // for lambdas
    receive(
        preparing, Movement{sites_[0].here->moves(), kPrepareSilence}, stop_,  // it fetches the checkpoint from site 0
        [&](const SiteReady& ready, const SiteMembers& members) {
          handle->members = members;
          pinning_.push_back(one_line(ready.pinning));
          if (!ready.error.empty()) {
            if (result) result = tl::unexpected(at(*handle, {ready.code, ready.error}));
          } else if (!is_whole(*handle) && result) {
            result = tl::unexpected(at(*handle, {core::Errc::corrupt, "it did not say who its members are"}));
          }
        },
        [&](const caf::error& error) {
          if (result) result = tl::unexpected(no_answer(*handle, "did not get ready", error));
        });
  }
  // Frees the start state's bytes: newcomers get those of a newer checkpoint.
  if (!asked.empty()) self_->send(sites_[0].here->exchanger(), StartPayload{});
  return result;
}

/// The text of plan.json.
std::string Assembly::run_plan() const { return experiment::to_json({.backend = made_plan_, .exchange = exchange_}); }

void Assembly::begin_sites() {
  const auto& placement = launch_.placement;
  ActorDirectory actors{.coordinator = coordinator_,
                        .recorder = recorder_,
                        .evaluator = evaluator_,
                        .workers = std::vector<WorkerActor>(spec_.workers),
                        .loaders = std::vector<LoaderActor>(spec_.workers),
                        .servers = std::vector<ServerActor>(spec_.servers),
                        .membership_epoch = 0,
                        .worker_sites = placement.worker_sites,
                        .server_sites = placement.server_sites,
                        .exchanger = {},
                        .members = {},
                        .site_hosts = placement.hosts,
                        .exchange = experiment::to_json(exchange_)};
  for (const auto& handle : sites_) {
    const auto workers = placement.workers_at(handle.number);
    const auto servers = placement.servers_at(handle.number);
    const bool there = !handle.members.workers.empty();  // false: its node may join later
    for (std::size_t k = 0; there && k < workers.size(); ++k) {
      actors.workers[workers[k]] = handle.members.workers[k];
      actors.loaders[workers[k]] = handle.members.loaders[k];
    }
    for (std::size_t k = 0; k < servers.size(); ++k) actors.servers[servers[k]] = handle.members.servers[k];
  }
  for (const auto& handle : sites_) {
    if (handle.there)
      self_->send(handle.there, SiteDirectory{coordinator_,
                                              recorder_,
                                              actors.membership_epoch,
                                              actors.worker_sites,
                                              actors.server_sites,
                                              {},
                                              actors.site_hosts,
                                              actors.exchange});
    else if (handle.here && handle.number > 0)
      handle.here->begin(actors);
  }
  // The coordinator starts the training: it gets the directory last.
  self_->send(coordinator_, sites_[0].here->begin(actors));
}

core::Result<void> Assembly::finish(const RunEnd& end) {
  core::Result<void> result;
  auto asked =
      self_->request(recorder_, kNoDeadline, Finish{}, end);  // ends after kRecorderSilence without a disk call
  receive(
      asked, Movement{disk_->calls(), kRecorderSilence}, {},
      [&](const Finished& finished) {
        if (!finished.error.empty()) result = core::fail(core::Errc::io, finished.error);
      },
      [&](const caf::error& error) {
        result = core::fail(core::Errc::timeout, "recorder: " + context_.system->render(error));
      });
  return result;
}

core::Result<void> Assembly::end_actors(bool in_order) {
  const auto failure = halt(in_order);
  if (failure.empty()) return {};
  return core::fail(core::Errc::program, failure + "; the run itself is complete, and its results are saved");
}

std::string Assembly::halt(bool in_order) {
  std::string failure;
  const bool abandoned = stop_.stop_requested() && !coordinator_;
  std::size_t alive = 0;
  const auto dismiss = [&](const auto& actor) {
    if (!actor) return;
    self_->monitor(actor);
    self_->send(actor, Halt{in_order});
    ++alive;
  };
  over_.request_stop();
  dismiss(evaluator_);
  dismiss(rejoin_manager_);
  for (const auto& handle : sites_) {
    if (handle.asked && !(handle.there && in_order))
      self_->send_exit(handle.asked, caf::exit_reason::user_shutdown);  // also ends an open request
    if (handle.there && abandoned) {
      self_->send(handle.there, Halt{});
      self_->send_exit(handle.there, caf::exit_reason::user_shutdown);
    } else {
      dismiss(handle.there);
    }
  }
  bool at_once = true;
  const auto down = [&](const caf::down_msg& message) {
    --alive;
    if (failure.empty()) failure = program_failure_of(message.reason).value_or("");
    if (!failure.empty() || at_once || !in_order || !spec_.graph->is_program() || !is_gone(message.reason)) return;
    for (const auto& handle : sites_)
      if (handle.there && handle.there.address() == message.source)
        failure = at(handle, {core::Errc::program, "it was lost before its programs had ended"}).message;
  };
  // The end of a site that was lost in the run is known at once: its programs had nothing to save.
  static_cast<void>(await_ends(self_, alive, core::Duration::zero(), down));
  at_once = false;
  // All programs are told before any is waited for.
  for (const auto& handle : sites_)
    if (handle.here) handle.here->dismiss(in_order);
  for (const auto& handle : sites_) {
    if (!handle.here) continue;
    handle.here->halt(in_order);
    if (failure.empty()) failure = handle.here->program_failure();
  }
  const auto end_others = [&] {
    if (coordinator_) self_->send_exit(coordinator_, caf::exit_reason::user_shutdown);
    if (recorder_) self_->send_exit(recorder_, caf::exit_reason::user_shutdown);
    for (const auto& handle : sites_)
      if (handle.asked) self_->send_exit(handle.asked, caf::exit_reason::user_shutdown);
  };
  // A site ends with the coordinator and with the actor that ordered it, but not in order: programs would not save what they have.
  if (!in_order) end_others();
  const auto longest = kSiteHaltDeadline + nn::patience_at_end(spec_.settings->model, in_order);
  const bool all_ended = await_ends(self_, alive, longest, down);
  if (in_order) end_others();
  if (!all_ended)  // a site that waits for an answer that never comes does not halt
    for (const auto& handle : sites_)
      if (handle.there) self_->send_exit(handle.there, caf::exit_reason::kill);
  sites_.clear();
  evaluator_ = EvaluatorActor{};
  rejoin_manager_ = RejoinManagerActor{};
  coordinator_ = CoordinatorActor{};
  recorder_ = RecorderActor{};
  return failure;
}

}  // namespace troupe::actors
