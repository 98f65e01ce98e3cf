#include "bench/rank.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "core/kernels.hpp"

namespace troupe::bench {
namespace {

constexpr auto kLookAgain = std::chrono::milliseconds{5};
constexpr std::uint32_t kBarriers = 1U << 23;  // exchange numbers from here on belong to barriers

}  // namespace

void declare(CLI::App& app, RankOptions& options) {
  app.add_option("--rank", options.rank, "this process's")->envname("OMPI_COMM_WORLD_RANK");
  app.add_option("--ranks", options.ranks, "how many there are")
      ->envname("OMPI_COMM_WORLD_SIZE")
      ->check(CLI::Range(1, 1024));
  app.add_option("--folder", options.folder, "an empty folder that all ranks see: here they find each other")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--endpoint", options.endpoint, "shm, tcp, ucx or mpi")->capture_default_str();
  app.add_option("--algorithm", options.algorithm, "how the sum is formed")
      ->check(CLI::IsMember({"ar", "asa", "asa16", "ring", "hierarchical", "shm"}))
      ->capture_default_str();
  app.add_option("--half", options.half, "asa16: what floats are rounded to")
      ->check(CLI::IsMember({"fp16", "bf16"}))
      ->capture_default_str();
  app.add_option("--hosts", options.hosts, "hierarchical: a number per rank, equal for ranks of one host")
      ->delimiter(',');
  app.add_option("--parameters", options.floats, "floats of each rank")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 36))
      ->capture_default_str();
  app.add_option("--chunk", options.chunks.floats, "floats of a chunk, a multiple of 16")->capture_default_str();
  app.add_option("--window", options.chunks.window, "chunks under way per peer and phase")->capture_default_str();
  app.add_option("--ucx-transports", options.ucx_transports, "as UCX_TLS, e.g. tcp,self");
  app.add_option("--listen", options.tcp.listen, "tcp: HOST:PORT")->capture_default_str();
  app.add_option("--ca", options.tcp.tls.ca, "tcp: the authority's certificate");
  app.add_option("--cert", options.tcp.tls.certificate, "tcp: this rank's certificate");
  app.add_option("--key", options.tcp.tls.key, "tcp: and its key");
}

core::Result<std::unique_ptr<Rank>> Rank::meet(RankOptions options) {
  std::unique_ptr<Rank> rank(new Rank(std::move(options)));
  if (auto opened = rank->open(); !opened) return tl::unexpected(opened.error());
  if (auto connected = rank->connect(); !connected) return tl::unexpected(connected.error());
  if (auto all = rank->barrier(); !all) return tl::unexpected(all.error());
  return rank;
}

Rank::~Rank() {
  if (endpoint_) close();
}

void Rank::close() {
  endpoint_->close();
  deliver();
}

bool Rank::deliver() {
  std::vector<transport::Completion> completions;
  queue_->poll(completions);
  for (const auto& completion : completions) operations_->deliver(completion);
  operations_->flush();
  return !completions.empty();
}

core::Result<void> Rank::open() {
  if (options_.rank >= options_.ranks) return core::fail(core::Errc::usage, "--rank must be below --ranks");
  if (!options_.hosts.empty() && options_.hosts.size() != options_.ranks)
    return core::fail(core::Errc::usage, "--hosts needs a number per rank");
  auto queue = transport::CompletionQueue::create(clock_);
  if (!queue) return tl::unexpected(queue.error());
  queue_ = std::move(*queue);
  transport::EndpointOptions wanted;
  wanted.name = fmt::format("rank {}", options_.rank);
  wanted.completions = queue_;
  wanted.ucx_transports = options_.ucx_transports;
  wanted.secret = "a benchmark";
  wanted.tcp = options_.tcp;
  auto endpoint = transport::make_endpoint(options_.endpoint, wanted);
  if (!endpoint) return tl::unexpected(endpoint.error());
  endpoint_ = std::move(*endpoint);
  operations_ = std::make_unique<exchange::OperationQueue>(*endpoint_);

  if (endpoint_->capabilities().maps_peer_memory) arenas_ = exchange::Arenas::create(endpoint_);
  if (options_.algorithm == "shm" && !arenas_)
    return core::fail(core::Errc::usage, "--algorithm shm needs an endpoint that maps memory: --endpoint shm");
  if (options_.algorithm == "ar" && !exchange::has_library(*operations_, options_.ranks))
    return core::fail(core::Errc::usage, "--algorithm ar needs a library that sums over all ranks: --endpoint mpi");
  core::Allocator& memory = arenas_ ? *arenas_ : static_cast<core::Allocator&>(host_memory_);
  auto vector = core::Buffer::allocate(memory, core::align_floats(options_.floats));
  if (!vector) return tl::unexpected(vector.error());
  vector_ = std::move(*vector);
  return {};
}

core::Result<void> Rank::write(const std::string& what, const std::string& text) const {
  const auto path = options_.folder / fmt::format("{}-{}", what, options_.rank);
  auto part = path;
  part += ".part";
  std::ofstream out(part);
  out << text << std::flush;
  if (!out) return core::fail(core::Errc::io, fmt::format("cannot write {}", part.string()));
  out.close();
  std::error_code error;
  std::filesystem::rename(part, path, error);  // atomic: readers see the complete file
  if (error) return core::fail(core::Errc::io, fmt::format("cannot write {}: {}", path.string(), error.message()));
  return {};
}

core::Result<std::string> Rank::read(const std::string& what, std::size_t rank) const {
  const auto path = options_.folder / fmt::format("{}-{}", what, rank);
  const auto deadline = clock_.now() + options_.patience;
  for (std::error_code error; !std::filesystem::exists(path, error);) {
    if (error) return core::fail(core::Errc::io, fmt::format("cannot look for {}: {}", path.string(), error.message()));
    if (clock_.now() > deadline)
      return core::fail(core::Errc::timeout, fmt::format("rank {} has not written {}", rank, path.string()));
    std::this_thread::sleep_for(kLookAgain);
  }
  std::ifstream in(path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

core::Result<void> Rank::connect() {
  if (auto written = write("address", endpoint_->address().text); !written) return written;
  group_ = {.rank = options_.rank, .peers = std::vector<transport::Peer>(options_.ranks), .hosts = options_.hosts};
  std::vector<transport::OperationId> establishing;
  for (std::size_t rank = 0; rank < options_.ranks; ++rank) {
    if (rank == options_.rank) continue;
    const auto address = read("address", rank);
    if (!address) return tl::unexpected(address.error());
    const auto connection = endpoint_->connect({*address});
    if (!connection) return tl::unexpected(connection.error());
    group_.peers[rank] = connection->peer;
    establishing.push_back(connection->established);
  }
  const auto deadline = transport::after(clock_, options_.patience);
  while (!establishing.empty()) {
    std::vector<transport::Completion> completions;
    if (auto waited = queue_->wait(completions, deadline); !waited) return waited;
    for (const auto& completion : completions) {
      if (completion.outcome != transport::Outcome::done) return tl::unexpected(completion.error);
      std::erase(establishing, completion.operation);
    }
  }
  return {};
}

exchange::CollectiveTask Rank::task() const {
  return {.algorithm = exchange::algorithm_of(options_.algorithm),
          .half = options_.half == "bf16" ? core::HalfKind::bf16 : core::HalfKind::fp16,
          .scale = 1.0F / static_cast<float>(options_.ranks),
          .chunks = options_.chunks};
}

std::unique_ptr<exchange::Collective> Rank::make_mean(core::Slice part, std::uint32_t exchange, std::uint16_t shard,
                                                      exchange::Collective::Done done) {
  auto wanted = task();
  wanted.vector = vector_.view().subspan(part.offset, part.count);
  wanted.tag = {.run = 1, .exchange = exchange, .shard = shard};
  wanted.arenas = arenas_.get();
  wanted.scratch = &scratch_;
  return exchange::make_collective(*operations_, core::host_kernels(), group_, std::move(wanted), std::move(done));
}

core::Result<void> Rank::drive(const std::function<bool()>& done, int fd) {
  for (auto deadline = clock_.now() + options_.patience;; deadline = clock_.now() + options_.patience) {
    const bool some = deliver();
    if (done()) return {};
    if (some) continue;
    pollfd watched[2] = {{queue_->fd(), POLLIN, 0}, {fd, POLLIN, 0}};  // poll ignores a negative descriptor
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock_.now()).count();
    const int ready = ::poll(watched, 2, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0 || (ready < 0 && errno == EINTR)) continue;
    const int error = errno;
    close();  // lent memory returns before the caller frees it
    return ready == 0 ? core::fail(core::Errc::timeout, "an exchange of the benchmark makes no progress")
                      : tl::unexpected(core::from_errno(error, "wait for", "completions"));
  }
}

core::Result<void> Rank::mean(core::Slice part, std::uint32_t exchange) {
  std::optional<core::Result<void>> ended;
  const auto collective = make_mean(part, exchange, 0, [&](core::Result<void> result) { ended = std::move(result); });
  collective->start();
  if (auto driven = drive([&] { return ended.has_value(); }); !driven) return driven;
  return *ended;
}

core::Result<void> Rank::barrier() {
  std::size_t open = 0;
  core::Result<void> result;
  const auto ended = [&](exchange::OperationQueue::Ticket, const transport::Completion& completion) {
    --open;
    if (completion.outcome != transport::Outcome::done) result = tl::unexpected(completion.error);
  };
  const auto tag = transport::make_tag(
      {.run = 1, .exchange = kBarriers + barriers_++ % kBarriers, .kind = transport::TagKind::signal});
  for (std::size_t rank = 0; rank < options_.ranks; ++rank) {
    if (rank == options_.rank) continue;
    open += 2;
    operations_->receive(group_.peers[rank], tag, {}, ended);
    operations_->send(group_.peers[rank], tag, {}, ended);
  }
  if (auto driven = drive([&] { return open == 0; }); !driven) return driven;
  return result;
}

std::uint64_t Rank::bytes_sent() const {
  std::uint64_t bytes = 0;
  for (std::size_t rank = 0; rank < options_.ranks; ++rank)
    if (rank != options_.rank) bytes += endpoint_->traffic(group_.peers[rank]).bytes_sent;
  return bytes;
}

std::uint64_t Rank::bytes_of_mean(std::size_t floats) const {
  return exchange::collective_bytes(task(), group_, floats);
}

}  // namespace troupe::bench
