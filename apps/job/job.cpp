#include "apps/job/job.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/control/network.hpp"
#include "actors/deployment/node.hpp"
#include "actors/deployment/nodes.hpp"
#include "apps/backends.hpp"
#include "apps/launch/late_actors.hpp"
#include "transport/mpi/job.hpp"

namespace troupe::apps {
namespace {

using nlohmann::json;

// All ranks exist at the first message, and work between messages is short, except the run itself.
constexpr std::chrono::minutes kPatience{2};
constexpr std::chrono::seconds kFarewell{30};

transport::Job::GiveUp within(std::chrono::seconds patience) {
  return [until = std::chrono::steady_clock::now() + patience] { return std::chrono::steady_clock::now() > until; };
}

json to_json(const RankHost& host) {
  json addresses = json::array();
  for (const auto& own : host.addresses) addresses.push_back({own.address, own.network});
  return {{"name", host.name}, {"place", host.place}, {"addresses", std::move(addresses)}};
}

RankHost host_of(const json& said) {
  RankHost host{.name = said.at("name"), .place = said.at("place")};
  for (const auto& own : said.at("addresses")) host.addresses.push_back({own.at(0), own.at(1)});
  return host;
}

}  // namespace

/// The message of rank 0 to all ranks.
struct Job::Order {
  std::vector<std::string> addresses{};  // listening address by rank; none: the job is over
  security::RunIdentity identity{};      // empty on one host
  StageOrder stage{};
  std::vector<HostPart> parts{};  // by rank, if there are files to stage

  [[nodiscard]] std::string text() const {
    auto said = json{
        {"addresses", addresses}, {"ca", identity.ca}, {"certificate", identity.certificate}, {"key", identity.key}};
    said["stage"] = {{"directory", stage.directory}, {"files", stage.files}, {"parts", json::array()}};
    for (const auto& part : parts) said["stage"]["parts"].push_back({part.rank, part.ranks});
    return said.dump(-1, ' ', true);
  }
  [[nodiscard]] static Order of(const std::string& text) {
    const auto said = json::parse(text);
    const auto& stage = said.at("stage");
    Order order{.addresses = said.at("addresses"),
                .identity = {.ca = said.at("ca"), .certificate = said.at("certificate"), .key = said.at("key")},
                .stage = {.directory = stage.at("directory"), .files = stage.at("files")}};
    for (const auto& part : stage.at("parts")) order.parts.push_back({part.at(0), part.at(1)});
    return order;
  }
};

core::Result<std::unique_ptr<Job>> Job::join(const JobEnvironment& environment) {
  const auto started = fmt::format("{} has started {} ranks", environment.launcher, environment.size);
  auto joined = transport::join_job();
  if (!joined) return core::fail(joined.error().code, fmt::format("{}, and {}", started, joined.error().message));
  std::unique_ptr<Job> job(new Job(std::move(*joined), environment.launcher));
  if (job->size() != environment.size || job->rank() != environment.rank) {
    return core::fail(core::Errc::config,
                      fmt::format("{}, and MPI here is rank {} of {}: start it with the mpirun of the Open MPI that "
                                  "this was built with, or with srun --mpi=pmix",
                                  started, job->rank(), job->size()));
  }
  if (auto met = job->meet(); !met) return tl::unexpected(met.error());
  return job;
}

Job::~Job() {
  if (!over_) job_->abandon();
}

core::Result<void> Job::meet() {
  const auto facts = actors::own_facts(actors::spoken_version(TROUPE_VERSION), {});
  const RankHost own{.name = facts.host, .place = facts.shared_memory_domain, .addresses = own_addresses()};
  const auto said = job_->gather(to_json(own).dump(), within(kPatience));
  if (!said) return tl::unexpected(said.error());
  for (const auto& text : *said) hosts_.push_back(host_of(json::parse(text)));
  return {};
}

std::size_t Job::ranks_here() const {
  return static_cast<std::size_t>(std::ranges::count(hosts_, hosts_.front().place, &RankHost::place));
}

core::Result<void> Job::read_together(const Order& order) {
  if (order.stage.files.empty()) return {};
  const auto& part = order.parts.at(rank());
  if (part.rank == 0) {
    const std::scoped_lock lock(copies_mutex_);
    copies_ = order.stage.directory;
  }
  auto staged = StagedFiles::read(*job_, order.stage, part, kPatience);
  if (!staged) return tl::unexpected(std::move(staged.error()));
  staged_.emplace(std::move(*staged));
  return {};
}

void Job::remove_copies() {
  const std::scoped_lock lock(copies_mutex_);
  std::error_code ignored;
  if (!copies_.empty()) std::filesystem::remove_all(copies_, ignored);
}

core::Result<Job::Nodes> Job::recruit(const StageOrder& stage) {
  auto addresses = choose_addresses(hosts_);
  if (!addresses) return tl::unexpected(addresses.error());
  Order order{.addresses = std::move(*addresses), .stage = stage};
  for (std::size_t r = 0; r < hosts_.size() && !stage.files.empty(); ++r) {
    const auto place = [&](const RankHost& host) { return host.place == hosts_[r].place; };
    const auto before = static_cast<std::ptrdiff_t>(r);
    order.parts.push_back(
        {.rank = static_cast<std::size_t>(std::count_if(hosts_.begin(), hosts_.begin() + before, place)),
         .ranks = static_cast<std::size_t>(std::ranges::count_if(hosts_, place))});
  }
  Nodes nodes;
  if (!in_one_place(hosts_)) {
    // One certificate for all ranks: one user's processes of one program. It has every address: a host may connect from any of them.
    std::vector<std::string> names;
    for (const auto& host : hosts_)
      for (const auto& own : host.addresses) names.push_back(own.address);
    auto identity = security::make_run_identity(names, std::time(nullptr));
    if (!identity) return tl::unexpected(identity.error());
    order.identity = std::move(*identity);
    auto files = security::MemoryFiles::create(order.identity);
    if (!files) return tl::unexpected(files.error());
    certificates_ = std::make_unique<security::MemoryFiles>(std::move(*files));
    nodes.tls = certificates_->files();
  }
  if (auto said = job_->broadcast(order.text(), within(kPatience)); !said) return tl::unexpected(said.error());
  const auto staged = read_together(order);
  const auto answers = job_->gather("{}", within(kPatience));  // also after an error here: the others wait for it
  if (!answers) return tl::unexpected(answers.error());
  if (!staged) return tl::unexpected(staged.error());
  for (std::size_t r = 1; r < answers->size(); ++r) {
    const auto answer = json::parse((*answers)[r]);
    if (answer.contains("error"))
      return core::fail(static_cast<core::Errc>(answer.at("code").get<int>()),
                        fmt::format("rank {} ({}): {}", r, hosts_[r].name, answer.at("error").get<std::string>()));
    nodes.names.push_back(fmt::format("{}:{}", transport::bracketed(order.addresses[r]), answer.at("port").get<int>()));
  }
  return nodes;
}

void Job::dismiss(const core::Result<void>& outcome) {
  // With a lost or blocked rank, MPI would wait for that rank.
  const bool whole =
      outcome || (outcome.error().code != core::Errc::peer_lost && outcome.error().code != core::Errc::timeout);
  over_ = whole && job_->broadcast(Order{}.text(), within(kFarewell)).has_value();
}

core::Result<void> Job::serve() {
  // No deadline: rank 0 reads its configuration first. If rank 0 ends, the launcher ends the waiting ranks.
  const auto order = job_->broadcast({}, [] { return false; });
  if (!order) return tl::unexpected(order.error());
  if (const auto first = Order::of(*order); !first.addresses.empty())
    if (auto served = be_node(first); !served) return served;
  over_ = true;
  return {};
}

core::Result<void> Job::be_node(const Order& order) {
  const auto& host = order.addresses.at(rank());
  actors::NetworkOptions options;
  core::Result<void> ready = read_together(order);
  if (!order.identity.ca.empty()) {
    auto files = security::MemoryFiles::create(order.identity);
    if (!files) {
      if (ready) ready = tl::unexpected(files.error());
    } else {
      certificates_ = std::make_unique<security::MemoryFiles>(std::move(*files));
      options.tls = certificates_->files();
    }
  }
  actors::NetworkConfig config(options);
  caf::actor_system system(config);
  const actors::ActorsWait last(system, [] { end_without_late_actors(); });
  auto network = actors::Network::create(system, options);
  if (!network && ready) ready = tl::unexpected(network.error());
  const auto node = system.spawn(  // as in `troupe node`: not detached
      actors::node, actors::NodeSetup{.version = actors::spoken_version(TROUPE_VERSION),
                                      .data_host = host,
                                      .tls = options.tls,
                                      .contexts = std::make_shared<actors::RunContextCache>(
                                          [](const experiment::Settings& settings) { return make_backend(settings); },
                                          staged_ ? order.stage.directory : ""),
                                      .log = [](const std::string&) {},  // only rank 0 writes output
                                      .gone =
                                          [this](bool lost) {
                                            // After the run's end rank 0 sends a last message, but not after it has lost a rank.
                                            const auto now = std::chrono::steady_clock::now();
                                            give_up_ = lost ? now : now + kFarewell;
                                          }});
  json answer;
  if (ready) {
    if (const auto port = (*network)->publish(node, {host, 0}))
      answer["port"] = *port;
    else
      ready = tl::unexpected(port.error());
  }
  if (!ready) answer = {{"error", ready.error().message}, {"code", static_cast<int>(ready.error().code)}};
  auto over = job_->gather(answer.dump(), within(kPatience)).and_then([&](const auto&) {
    return job_->broadcast({}, [this] { return std::chrono::steady_clock::now() >= give_up_.load(); });
  });
  caf::anon_send_exit(node, caf::exit_reason::user_shutdown);
  if (over) return {};
  return core::fail(core::Errc::peer_lost, fmt::format("rank {} has lost rank 0", rank()));
}

}  // namespace troupe::apps
