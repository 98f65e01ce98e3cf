// The shm endpoint against peers that break its protocol (transport/shm/protocol/frame.hpp): they are refused or lost, the error names
// them, and other peers are not affected.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "core/random.hpp"
#include "tests/transport/endpoint_contract.hpp"
#include "transport/mapped_memory.hpp"
#include "transport/shm/endpoint.hpp"
#include "transport/shm/memory/copy.hpp"
#include "transport/shm/protocol/socket.hpp"

namespace troupe::transport::testing {
namespace {

constexpr core::Duration kProtocolPatience = std::chrono::seconds{60};

/// Writes frames by hand. Its own address has no listener: the fake dials, and the endpoint under test accepts.
class FakePeer {
 public:
  explicit FakePeer(const Endpoint& endpoint) : remote_(*ShmAddress::parse(endpoint.address().text)) {
    self_ = {random_shm_token().value(), random_shm_token().value(), "fake"};
    socket_ = shm_dial(remote_.socket_name()).value();
  }
  [[nodiscard]] Address address() const { return {self_.text()}; }
  [[nodiscard]] ShmIntroduction introduction() const {
    return {.secret_of_receiver = remote_.secret,
            .id_of_sender = self_.id,
            .secret_of_sender = self_.secret,
            .messages = 8};
  }
  void say(const ShmHeader& header, std::span<const std::byte> payload = {}, int descriptor = -1) {
    EXPECT_NE(send_frame(socket_.get(), header, payload, descriptor), ShmWrite::full);
  }
  void hello(const ShmIntroduction& introduction, ShmFrameKind kind = ShmFrameKind::hello) {
    say({.kind = kind}, std::as_bytes(std::span(&introduction, 1)));
  }
  void say_raw(std::span<const std::byte> bytes) { ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  /// The next frame's kind; nothing once the endpoint has closed the connection.
  std::optional<ShmFrameKind> hear() {
    if (!wait_readable(socket_.get(), kProtocolPatience)) throw std::runtime_error("the endpoint says nothing");
    (void)inbox_.receive(socket_.get(), 1);
    if (inbox_.frames().empty()) return std::nullopt;
    return inbox_.frames()[0].header.kind;
  }
  void expect_refused() {
    while (hear()) {
    }
  }

 private:
  ShmAddress remote_;
  ShmAddress self_;
  core::FileDescriptor socket_;
  ShmInbox inbox_;
};

class ShmProtocol : public ::testing::Test {
 protected:
  static EndpointKind kind() { return {"shm", {}}; }
  static EndpointOptions options(bool reads) { return {.name = "test", .shm_reads_peers = reads}; }

  /// Connects the fake; posts a receive, which fails with the fake's name when it is lost.
  OperationId admit(FakePeer& fake, Party& party) {
    fake.hello(fake.introduction());
    const Connection connection = party->connect(fake.address()).value();
    EXPECT_EQ(fake.hear(), ShmFrameKind::welcome);
    party.expect_done(connection.established, 0);
    peer_ = connection.peer;
    return party.receive(peer_, tag(1), view(sentinel_));
  }

  core::SteadyClock clock_;
  Party party_{kind(), options(true), clock_};
  Peer peer_{};
  Bytes sentinel_ = Bytes(10);
};

TEST_F(ShmProtocol, UnknownPeersAreRefusedAndMembersStillMeet) {
  const Bytes garbage = pattern(5000, 1);
  for (const std::size_t size : {1U, 39U, 40U, 41U, 5000U}) {
    FakePeer fake(*party_);
    fake.say_raw(std::span(garbage).first(size));
    fake.expect_refused();
  }
  for (const int wrong : {0, 1, 2}) {
    FakePeer fake(*party_);
    ShmIntroduction introduction = fake.introduction();
    if (wrong == 0) introduction.secret_of_receiver[15] ^= std::byte{1};
    if (wrong == 2)
      fake.say({.kind = ShmFrameKind::hello}, garbage);
    else
      fake.hello(introduction, wrong == 1 ? ShmFrameKind::welcome : ShmFrameKind::hello);
    fake.expect_refused();
  }
  Party other{kind(), options(true), clock_};
  const Connection a = party_->connect(other->address()).value();
  const Connection b = other->connect(party_->address()).value();
  party_.expect_done(a.established, 0);
  other.expect_done(b.established, 0);
}

TEST_F(ShmProtocol, AnUnknownPeerGetsNoArena) {
  FakePeer fake(*party_);
  ShmIntroduction introduction = fake.introduction();
  introduction.secret_of_receiver[0] ^= std::byte{128};
  fake.say({.kind = ShmFrameKind::attach}, std::as_bytes(std::span(&introduction, 1)));
  fake.expect_refused();
}

TEST_F(ShmProtocol, AConnectionWithAnotherMembersNameIsNotAnswered) {
  FakePeer fake(*party_), named(*party_);
  ShmIntroduction introduction = fake.introduction();
  introduction.secret_of_sender[0] ^= std::byte{1};  // the id of an introduced peer, without its secret
  fake.hello(introduction);
  const auto connection = party_->connect(fake.address());
  ASSERT_FALSE(connection);  // the endpoint dials the fake, which does not listen
  EXPECT_EQ(connection.error().code, core::Errc::peer_lost);
}

TEST_F(ShmProtocol, SpeakingBeforeTheWelcomeIsRefused) {
  FakePeer fake(*party_);
  fake.hello(fake.introduction());
  fake.say({.kind = ShmFrameKind::message, .id = 1});
  fake.expect_refused();
}

TEST_F(ShmProtocol, InvalidFramesLoseThePeer) {
  using enum ShmFrameKind;
  const Bytes payload = pattern(100, 1);
  const std::uint64_t t = 1;
  struct Case {
    std::vector<ShmHeader> headers;
    bool with_payload = false;
  };
  const std::vector<Case> cases = {
      {{{.kind = ShmFrameKind{0}}}},
      {{{.kind = ShmFrameKind{99}}}},
      {{{.kind = hello}}},
      {{{.kind = welcome}}},
      {{{.kind = arena}}},
      {{{.kind = message, .id = 0, .tag = t}}},
      {{{.kind = message, .id = 1, .tag = t}, {.kind = message, .id = 1, .tag = t}}},
      {{{.kind = message, .id = 1, .tag = t, .size = 99}}, true},
      {{{.kind = message, .id = 1, .tag = t, .size = 101}}, true},
      {{{.kind = message, .id = 1, .tag = t, .size = ~std::uint64_t{0}}}, true},
      {{{.kind = offer, .id = 1, .tag = t, .size = 8192}}},
      {{{.kind = offer, .id = 1, .tag = t, .size = std::uint64_t{1} << 63}}},
      {{{.kind = offer, .id = 1, .tag = t, .size = 10'000}}, true},
      {{{.kind = pull, .id = 1}}},
      {{{.kind = done, .id = 1}}},
      {{{.kind = cancelled, .id = 1}}},
      {{{.kind = ShmFrameKind::free, .address = 0}}},
      {{{.kind = ShmFrameKind::free, .address = 64}}},
      {{{.kind = chunk, .id = 1, .size = 1}}},
      {{{.kind = bounce, .size = kShmWindowBytes}}},  // without a descriptor
      {{{.kind = message, .id = 1},
        {.kind = message, .id = 2},
        {.kind = message, .id = 3},
        {.kind = message, .id = 4},
        {.kind = message, .id = 5},
        {.kind = message, .id = 6},
        {.kind = message, .id = 7},
        {.kind = message, .id = 8},
        {.kind = message, .id = 9}}},  // beyond its credit
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    FakePeer fake(*party_);
    const OperationId receiving = admit(fake, party_);
    for (const ShmHeader& header : cases[i].headers)
      fake.say(header, cases[i].with_payload ? std::span(payload) : std::span<const std::byte>{});
    party_.expect_failed(receiving, core::Errc::peer_lost, "/fake");
    fake.expect_refused();
    SCOPED_TRACE(i);
  }
}

// The endpoint does not touch memory that the peer could still shrink.
TEST_F(ShmProtocol, AWindowThatIsNotSealedLosesThePeer) {
  const auto memory = [](std::size_t size, int seals) {
    core::FileDescriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
    EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return file;
  };
  std::vector<core::FileDescriptor> files;
  files.push_back(memory(kShmWindowBytes, 0));
  files.push_back(memory(kShmWindowBytes, F_SEAL_GROW));
  files.push_back(memory(kShmWindowBytes - 4096, F_SEAL_SHRINK));
  files.emplace_back(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const core::FileDescriptor& file : files) {
    FakePeer fake(*party_);
    const OperationId receiving = admit(fake, party_);
    fake.say({.kind = ShmFrameKind::bounce, .size = kShmWindowBytes}, {}, file.get());
    party_.expect_failed(receiving, core::Errc::peer_lost, "/fake");
  }
}

TEST_F(ShmProtocol, AnOfferOfMemoryThatIsNotThereLosesThePeer) {
  FakePeer fake(*party_);
  std::uint64_t probe = 42;
  ShmIntroduction introduction = fake.introduction();
  introduction.probe_address = reinterpret_cast<std::uintptr_t>(&probe);
  introduction.probe_value = probe;
  fake.hello(introduction);
  const Connection connection = party_->connect(fake.address()).value();
  EXPECT_EQ(fake.hear(), ShmFrameKind::welcome);
  Bytes bytes(100'000);
  const OperationId receiving = party_.receive(connection.peer, tag(1), view(bytes));
  fake.say({.kind = ShmFrameKind::offer,
            .id = 1,
            .tag = static_cast<std::uint64_t>(tag(1)),
            .size = 100'000,
            .address = 4096});
  party_.expect_failed(receiving, core::Errc::peer_lost, "/fake");
}

// An admitted peer sends frames of every kind with random numbers. The endpoint may drop it at any frame; nothing else
// may happen. Meant for the sanitizers.
TEST_F(ShmProtocol, RandomFramesDoNoHarm) {
  Party window{kind(), options(false), clock_};
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    core::Random random(seed, core::Purpose::test, 1);
    Party& party = seed % 2 == 0 ? party_ : window;
    FakePeer fake(*party);
    const OperationId sentinel = admit(fake, party);
    const Bytes large = pattern(1'000'000, 1);
    Bytes in(1'000'000);
    std::vector<OperationId> operations{sentinel};
    for (unsigned i = 0; i < 3; ++i) {
      operations.push_back(party.send(peer_, tag(i), view(large)));
      operations.push_back(party.receive(peer_, Tag{i}, view(in)));
    }
    const auto small = [&] { return random.below(8) == 0 ? random.below(~std::uint64_t{0}) : random.below(5); };
    const std::uint64_t sizes[] = {0, 1, 10, 8192, 8193, 262'144, 1'000'000, ~std::uint64_t{0}};
    std::uint64_t id = 0;
    for (unsigned i = 0; i < 40; ++i) {
      ShmHeader header{.kind = static_cast<ShmFrameKind>(random.below(15)),
                       .id = random.below(2) == 0 ? ++id : small(),
                       .tag = small(),
                       .size = sizes[random.below(8)],
                       .address = small()};
      if (random.below(2) == 0) header.kind = random.below(2) == 0 ? ShmFrameKind::offer : ShmFrameKind::pull;
      const bool eager = header.kind == ShmFrameKind::message && header.size <= large.size();
      fake.say(header, std::span(large).first(eager ? std::min<std::size_t>(header.size, kShmEagerBytes) : 0));
    }
    party->disconnect(peer_, "enough");
    for (const OperationId operation : operations) (void)party.finish(operation);
  }
  EXPECT_EQ(party_.untaken(), 0U);
}

}  // namespace
}  // namespace troupe::transport::testing
