#include "tests/hostile/center.hpp"

#include <algorithm>
#include <future>
#include <stdexcept>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/buffer.hpp"
#include "experiment/state/start_state.hpp"
#include "tests/transport/exchange/drive.hpp"
#include "transport/inproc/endpoint.hpp"

namespace troupe::hostile {

using actors::CallKind;
using exchange::Lend;
using exchange::testing::kPatience;
using strategies::Transfer;

namespace {

std::vector<std::string> settings_of(const Center::Options& options) {
  auto settings = options.settings;
  settings.push_back(fmt::format("cluster.workers={}", options.workers));
  settings.push_back(fmt::format("cluster.servers={}", options.server_sites.size()));
  settings.emplace_back("exchange.endpoint=" + options.endpoint);
  return settings;
}

}  // namespace

Center::Center(const Options& options)
    : run_(settings_of(options)),
      spec_(experiment::build_run_spec(run_.settings().value(), true).value()),
      queue_(transport::CompletionQueue::create(clock_).value()) {
  const actors::SiteContext context{&system_, &spec_, &tests::backend(), &memory_, &clock_};
  layout_ = actors::probe(context, {}).value().layout;
  actors::ExchangePlan exchange{.endpoint = options.endpoint, .server_sites = options.server_sites};
  for (std::uint32_t w = 0; w < options.workers; ++w) exchange.worker_sites.push_back(w + 1);
  transport::EndpointOptions endpoint{.hub = transport::make_inproc_hub(), .secret = "run"};
  const auto most = actors::most_floats(spec_, *layout_);
  std::vector<std::uint32_t> here;
  for (std::uint32_t shard = 0; shard < options.server_sites.size(); ++shard)
    if (options.server_sites[shard] == 0) here.push_back(shard);
  site_ = std::make_unique<actors::Site>(context, actors::SiteSetup{.servers = here,
                                                                    .exchange = exchange,
                                                                    .options = endpoint,
                                                                    .most_floats = most,
                                                                    .fingerprint = layout_->fingerprint()});
  if (const auto opened = site_->open(); !opened) throw std::runtime_error(opened.error().message);

  endpoint.completions = queue_;
  actors::SiteAddresses addresses{{site_->address()}};
  for (std::uint32_t w = 0; w < options.workers; ++w) {
    endpoint.name = fmt::format("site {}", w + 1);
    auto& raw = sites_.emplace_back();
    raw.endpoint = transport::make_endpoint(options.endpoint, endpoint).value();
    raw.operations = std::make_unique<exchange::OperationQueue>(*raw.endpoint);
    const auto connection = raw.endpoint->connect({site_->address()}).value();
    raw.center = connection.peer;
    establishing_.push_back(connection.established);
    addresses.texts.push_back(raw.endpoint->address().text);
    if (std::ranges::find(options.raw, w + 1) != options.raw.end()) continue;
    raw.calls = std::make_unique<exchange::Rpc>(
        *raw.endpoint, *raw.operations, core::host_kernels(), memory_, most, 1,
        [this, site = w + 1](exchange::Rpc::Incoming incoming) { on_call(site, std::move(incoming)); },
        [](transport::Peer, const core::Error&) {});
    raw.calls->listen(raw.center);
  }
  site_->meet(addresses);
  drive([this] { return establishing_.empty(); });
  const auto start = std::make_shared<const actors::StartState>(experiment::start_state(spec_, nullptr));
  if (const auto prepared = site_->prepare(start); !prepared) throw std::runtime_error(prepared.error().message);
  std::vector<actors::ServerActor> servers(options.server_sites.size());
  for (std::size_t k = 0; k < here.size(); ++k) servers[here[k]] = site_->members().servers[k];
  actors::ActorDirectory actors;
  actors.coordinator = caf::actor_cast<actors::CoordinatorActor>(self_);
  actors.recorder = caf::actor_cast<actors::RecorderActor>(self_);
  actors.workers.resize(options.workers);
  actors.loaders.resize(options.workers);
  actors.servers = std::move(servers);
  actors.worker_sites = exchange.worker_sites;
  actors.server_sites = exchange.server_sites;
  actors.members = options.members;
  actors.exchange = experiment::to_json(exchange);
  actors_ = site_->begin(std::move(actors));
}

Center::~Center() {
  for (auto& raw : sites_) raw.endpoint->close();
  poll();
  site_->halt();
}

std::size_t Center::shard_floats(strategies::ShardId shard) const {
  return core::slice_of(arena_floats(), shard, shards()).count;
}

actors::ShardMessage Center::request(strategies::WorkerId worker, Transfer kind, strategies::Step clock,
                                     strategies::ShardId shard) {
  return {shard, {.worker = worker, .exchange = clock, .kind = kind, .clock = clock, .epoch = 0.5, .lr = 0.1F}};
}

core::Result<std::string> Center::call(std::uint32_t from, const std::string& header, core::Span vector, Lend lend) {
  std::optional<core::Result<std::string>> answer;
  auto& raw = site(from);
  raw.calls->call(raw.center, {.header = header, .vector = vector, .lend = lend},
                  [&](const core::Result<std::string_view>& result) {
                    answer = result.map([](std::string_view text) { return std::string(text); });
                  });
  drive([&] { return answer.has_value(); });
  return answer.value_or(core::fail(core::Errc::timeout, "no answer"));
}

void Center::call_on(std::uint32_t from, const std::string& header, std::vector<float> vector, Lend lend, Wire wire) {
  const auto kept = std::make_shared<std::vector<float>>(std::move(vector));
  auto& raw = site(from);
  ++open_;
  raw.calls->call(raw.center,
                  {.header = header, .vector = *kept, .lend = lend, .half = wire.half, .rounding = wire.rounding},
                  [this, kept](const core::Result<std::string_view>&) { --open_; });
}

std::vector<float> Center::pull(strategies::WorkerId worker, strategies::ShardId shard) {
  std::vector<float> vector(shard_floats(shard));
  auto message = request(worker, Transfer::pull, ++exchanges_, shard);
  const auto answer = call(worker + 1, header(CallKind::shard, message), vector, Lend::write);
  EXPECT_TRUE(answer) << answer.error().message;
  return vector;
}

void Center::push(strategies::WorkerId worker, float value, strategies::Step clock) {
  ++exchanges_;
  for (strategies::ShardId shard = 0; shard < shards(); ++shard) {
    std::vector<float> vector(shard_floats(shard), value);
    auto message = request(worker, Transfer::push, clock, shard);
    message.request.exchange = exchanges_;
    message.request.clock = exchanges_;
    const auto answer = call(worker + 1, header(CallKind::shard, message), vector, Lend::read);
    EXPECT_TRUE(answer) << answer.error().message;
  }
}

void Center::lose(std::uint32_t number) {
  site(number).endpoint->close();
  actors::MembershipNews news{1, {}};
  for (strategies::WorkerId worker = 0; worker < actors_.workers.size(); ++worker)
    if (worker + 1 != number) news.workers.push_back(worker);
  for (const auto& server : site_->members().servers) self_->send(server, news);
  self_->send(site_->exchanger(), news);
  drive([this] { return open_ == 0; });  // its calls have ended
}

void Center::ask(const actors::ShardMessage& message) {
  const auto vector = std::make_shared<std::vector<float>>(shard_floats(message.shard), 1.F);
  self_->send(site_->exchanger(), message, actors::BorrowedView{*vector, vector});
}

core::Result<actors::SnapshotTaken> Center::snapshot(strategies::ShardId shard, std::uint64_t id) {
  using Taken = core::Result<actors::SnapshotTaken>;
  const auto vector = std::make_shared<std::vector<float>>(shard_floats(shard));
  const auto taken = std::make_shared<std::promise<Taken>>();
  auto answered = taken->get_future();
  system_.spawn([server = actors_.servers.at(shard), id, vector, taken](caf::event_based_actor* asks) {
    asks->request(server, kPatience, actors::SnapshotOrder{id, strategies::kCenter},
                  actors::BorrowedView{*vector, vector})
        .then([taken](const actors::SnapshotTaken& said) { taken->set_value(said); },
              [taken](const caf::error&) { taken->set_value(core::fail(core::Errc::corrupt, "refused")); });
  });
  while (answered.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) poll();
  return answered.get();
}

void Center::deliver(const std::vector<transport::Completion>& completions) {
  for (const auto& completion : completions) {
    if (std::erase(establishing_, completion.operation) > 0) continue;
    (void)std::ranges::any_of(sites_, [&](auto& raw) { return raw.operations->deliver(completion); });
  }
  for (auto& raw : sites_) raw.operations->flush();
}

void Center::poll() {
  std::vector<transport::Completion> completions;
  queue_->poll(completions);
  deliver(completions);
}

void Center::drive(const std::function<bool()>& done) {
  exchange::testing::drive(
      *queue_, clock_, [this](const auto& completions) { deliver(completions); }, done);
}

void Center::await(const std::function<bool()>& done) {
  const auto deadline = clock_.now() + kPatience;
  for (; !done(); poll())
    if (clock_.now() > deadline) throw std::runtime_error("nothing came of it");
}

const Center::Told& Center::told() {
  bool more = true;
  while (more) {
    self_->receive([&](const actors::RunError& run_error) { told_.troubles.push_back(run_error); },
                   [&](const actors::SiteLost& loss) { told_.losses.push_back(loss); },
                   [&](const actors::Note& note) { told_.notes.push_back(note.text); },
                   [](const actors::JournalRecords&) {}, caf::after(std::chrono::seconds(0)) >> [&] { more = false; });
  }
  return told_;
}

}  // namespace troupe::hostile
